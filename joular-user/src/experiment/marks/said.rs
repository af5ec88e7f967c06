//! Reads what a program says by socket and pipe: `begin NAME`, `end NAME`, `end`, `event NAME`, each with
//! `key=value key=value` behind the name.

use joular_data::{
    events::{Mark, MarkFrom, MarkKind},
    model::{
        target_text::TargetText,
        units::{MonotonicNs, Pid},
    },
};

/// Longest line that is read.
pub(super) const MAX_LINE_BYTES: usize = 4096;
/// Longest name of a phase or an event.
pub(super) const MAX_NAME_BYTES: usize = 256;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) kind: MarkKind,
    pub(super) name: Option<TargetText>,
    pub(super) attributes: Option<TargetText>,
}

impl Said {
    /// `None` if the line is none of ours.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        if line.len() > MAX_LINE_BYTES {
            return None;
        }
        let line = String::from_utf8_lossy(line);
        let (word, rest) = first_word(line.trim());
        let kind = MarkKind::ALL.into_iter().find(|kind| kind.name() == word)?;
        let (name, attributes) = first_word(rest);
        let is_named = !name.is_empty();
        if name.len() > MAX_NAME_BYTES || !(is_named || kind == MarkKind::End) {
            return None;
        }
        Some(Self {
            kind,
            name: is_named.then(|| name.into()),
            attributes: (!attributes.is_empty()).then(|| attributes.into()),
        })
    }

    pub(super) fn at(self, at: MonotonicNs, pid: Option<Pid>, from: MarkFrom) -> Mark {
        let Self { kind, name, attributes } = self;
        Mark { at, kind, name, attributes, pid, from }
    }
}

/// The first word of a text, and the rest.
fn first_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_documented() {
        let said = |kind, name: Option<&str>, attributes: Option<&str>| {
            Some(Said { kind, name: name.map(Into::into), attributes: attributes.map(Into::into) })
        };
        for (line, expected) in [
            ("begin load", said(MarkKind::Begin, Some("load"), None)),
            ("  begin\tload  rows=7 of=all \r\n", said(MarkKind::Begin, Some("load"), Some("rows=7 of=all"))),
            ("end load", said(MarkKind::End, Some("load"), None)),
            ("end", said(MarkKind::End, None, None)),
            ("event gc\u{1b}[2J cause=full", said(MarkKind::Event, Some("gc\u{1b}[2J"), Some("cause=full"))),
            ("begin", None),
            ("event ", None),
            ("Begin load", None),
            ("beginload", None),
            ("", None),
        ] {
            assert_eq!(Said::parse(line.as_bytes()), expected, "{line:?}");
        }
    }

    #[test]
    fn huge_lines_and_names_are_none() {
        let line = |bytes: usize| format!("event a {}", "x".repeat(bytes)).into_bytes();
        assert!(Said::parse(&line(4000)).is_some() && Said::parse(&line(5000)).is_none());
        let name = |bytes: usize| format!("begin {}", "x".repeat(bytes)).into_bytes();
        assert!(Said::parse(&name(256)).is_some() && Said::parse(&name(257)).is_none());
        assert_eq!(Said::parse(b"begin \xff").unwrap().name.unwrap().raw(), "\u{fffd}");
    }
}
