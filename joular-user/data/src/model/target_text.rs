//! Holds a text that a target chose: a method's name, a command line, a thread's name.
//!
//! Targets may be hostile: their texts can hold characters that control a terminal, break lines or
//! reorder what is around them. [`TargetText`] is written escaped wherever it is formatted, and it
//! does not turn into a `str` by itself. So a place that shows it cannot forget to escape it.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use serde::{Deserialize, Serialize};

/// A text of a target's choice. `Display` and `Debug` write it as [`crate::text::escape`] does.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TargetText(String);

impl TargetText {
    /// The text as the target has it. It is for comparing, hashing and parsing, for data files
    /// (Parquet, recordings) and for formats that escape on their own (JSON by serde, protobuf).
    /// People and terminals get the text by `Display`.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// [`Self::raw`], without a copy.
    pub fn into_raw(self) -> String {
        self.0
    }
}

impl fmt::Display for TargetText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&escaped(&self.0))
    }
}

impl fmt::Debug for TargetText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*escaped(&self.0), f)
    }
}

impl From<&str> for TargetText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for TargetText {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl PartialEq<str> for TargetText {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for TargetText {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<String> for TargetText {
    fn eq(&self, other: &String) -> bool {
        self.0 == *other
    }
}

/// A text without a character that controls a terminal, reorders text or cannot be seen: those are
/// spelled out. A text without any is not copied.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_spelled_out) else { return Cow::Borrowed(text) };
    let (harmless, rest) = text.split_at(first);
    let mut safe = String::with_capacity(text.len() + 8);
    safe.push_str(harmless);
    for c in rest.chars() {
        if c.is_ascii_control() {
            // Writing to a String cannot fail.
            let _ = write!(safe, "\\x{:02x}", u32::from(c));
        } else if is_spelled_out(c) {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

pub(crate) fn is_spelled_out(c: char) -> bool {
    // Most characters are ASCII: one comparison decides.
    !matches!(c, ' '..='~') && (c.is_control() || is_invisible(c))
}

/// Formatting characters: bidirectional controls, zero-width characters,
/// line separators, variation selectors, tags.
const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            // No characters at all, to XML.
            | '\u{fffe}'..='\u{ffff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_wherever_it_is_formatted() {
        for (raw, shown, quoted) in [
            ("", "", r#""""#),
            ("java", "java", r#""java""#),
            ("naïve 日本", "naïve 日本", r#""naïve 日本""#),
            ("a\x1b[2Jb", r"a\x1b[2Jb", r#""a\\x1b[2Jb""#),
            ("line\nbreak\r\t", r"line\x0abreak\x0d\x09", r#""line\\x0abreak\\x0d\\x09""#),
            ("\u{202e}evil", r"\u{202e}evil", r#""\\u{202e}evil""#),
            ("c1\u{9b}31m", r"c1\u{9b}31m", r#""c1\\u{9b}31m""#),
            ("\u{115f}", r"\u{115f}", r#""\\u{115f}""#),
            ("\"; rm", "\"; rm", r#""\"; rm""#),
        ] {
            let text = TargetText::from(raw);
            assert_eq!(text.to_string(), shown);
            assert_eq!(format!("{text:?}"), quoted);
            assert_eq!(text.raw(), raw);
            assert_eq!(text, raw);
            assert_eq!(text.clone().into_raw(), raw);
        }
    }

    #[test]
    fn widths_are_those_of_the_escaped_text() {
        let text = TargetText::from("a\n");
        assert_eq!(format!("[{text:>8}]"), r"[   a\x0a]");
        assert_eq!(format!("[{text:<8}]"), r"[a\x0a   ]");
        assert_eq!(format!("[{text:-^9}]"), r"[--a\x0a--]");
        assert_eq!(format!("[{text:.3}]"), r"[a\x]");
        assert_eq!(format!("[{:6}]", TargetText::from("java")), "[java  ]");
    }

    #[test]
    fn data_files_have_the_text_as_it_is() {
        let raw = "a\x1b\u{202e}";
        let text = TargetText::from(raw);
        assert_eq!(postcard::to_allocvec(&text).unwrap(), postcard::to_allocvec(raw).unwrap());
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(json, serde_json::to_string(raw).unwrap());
        assert_eq!(serde_json::from_str::<TargetText>(&json).unwrap(), text);
    }

    proptest::proptest! {
        #[test]
        fn nothing_formatted_controls_or_hides(raw: String, width in 0usize..40) {
            let text = TargetText::from(raw);
            for shown in [format!("{text}"), format!("{text:?}"), format!("{text:>width$}")] {
                proptest::prop_assert!(!shown.chars().any(|c| c.is_control() || is_invisible(c)), "{}", shown);
            }
        }
    }
}
