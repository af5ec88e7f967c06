//! Builds markup in which every text of others is text.

use std::fmt::{Display, Write as _};

use crate::text::escape;

/// Markup. What is not written in the code of the program can only be put in as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup(String);

impl Markup {
    /// Of a constant.
    pub fn of(markup: &'static str) -> Self {
        Self(markup.to_owned())
    }

    /// Adds markup of the program's code.
    pub fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds a text between tags, or as a value in double quotes.
    pub fn text(&mut self, text: impl Display) -> &mut Self {
        for c in escape(&text.to_string()).chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                c => self.0.push(c),
            }
        }
        self
    }

    /// Adds a figure with so many digits behind its point.
    pub fn figure(&mut self, value: f64, digits: usize) -> &mut Self {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{value:.digits$}");
        self
    }

    pub fn add(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup_or_leaves_its_quotes() {
        let mut markup = Markup::of("<a title=\"");
        markup.text("\" onclick='x' <b>&\u{202e}\n").raw("\">").figure(1.25, 1).raw("</a>");
        let expected = r#"<a title="&quot; onclick=&#39;x&#39; &lt;b&gt;&amp;\u{202e}\x0a">1.2</a>"#;
        assert_eq!(markup.as_str(), expected);
    }
}
