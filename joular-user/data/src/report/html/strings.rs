//! Keeps the texts of a page, each once, and makes them harmless: names come from processes that
//! may be hostile, and may have 64 KiB.

use std::collections::HashMap;

use crate::text::{self, Keep};

/// Longer texts are cut.
const COLUMNS: usize = 400;

#[derive(Debug, Default)]
pub(in crate::report) struct Strings {
    texts: Vec<String>,
    places: HashMap<String, usize>,
}

impl Strings {
    /// A text's place.
    pub(in crate::report) fn place(&mut self, text: &str) -> usize {
        let text = text::cut(&text::escape(text), COLUMNS, Keep::Name);
        if let Some(place) = self.places.get(&text) {
            return *place;
        }
        self.texts.push(text.clone());
        self.places.insert(text, self.texts.len() - 1);
        self.texts.len() - 1
    }

    /// The same; -1 for nothing.
    pub(in crate::report) fn maybe(&mut self, text: Option<&str>) -> i64 {
        text.and_then(|text| i64::try_from(self.place(text)).ok()).unwrap_or(-1)
    }

    pub(in crate::report) fn into_texts(self) -> Vec<String> {
        self.texts
    }
}
