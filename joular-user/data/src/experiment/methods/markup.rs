//! Writes words of ours and texts of others as one paragraph.

use crate::{
    model::target_text::TargetText,
    text::{latex, table},
};

/// What a paragraph is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    Markdown,
    Latex,
}

/// A paragraph that grows.
#[derive(Debug)]
pub(super) struct Paragraph {
    markup: Markup,
    said: String,
}

impl Paragraph {
    pub(super) const fn new(markup: Markup) -> Self {
        Self { markup, said: String::new() }
    }

    /// Words of ours, which have no markup.
    pub(super) fn words(&mut self, words: &str) -> &mut Self {
        match self.markup {
            Markup::Markdown => self.said.push_str(words),
            Markup::Latex => self.said.push_str(&latex::escape(words)),
        }
        self
    }

    /// A whole sentence of ours, with a space before it.
    pub(super) fn sentence(&mut self, words: &str) -> &mut Self {
        if !self.said.is_empty() {
            self.said.push(' ');
        }
        self.words(words)
    }

    /// A text of the machine or of the user, in which nothing is markup.
    pub(super) fn code(&mut self, text: impl Into<TargetText>) -> &mut Self {
        let text = text.into();
        self.said.push_str(&match self.markup {
            Markup::Markdown => table::code(&text),
            Markup::Latex => latex::code(&text),
        });
        self
    }

    /// Several of them: `a`, `b` and `c`.
    pub(super) fn codes<T: Into<TargetText>>(&mut self, texts: impl IntoIterator<Item = T>) -> &mut Self {
        let mut texts = texts.into_iter().peekable();
        let mut is_first = true;
        while let Some(text) = texts.next() {
            if !is_first {
                self.words(if texts.peek().is_some() { ", " } else { " and " });
            }
            is_first = false;
            self.code(text);
        }
        self
    }

    pub(super) fn end(self) -> String {
        self.said + "\n"
    }
}
