//! Says where a value ends that may be secret.
//!
//! That depends on what stands before its name: in a list of pairs that `;` separates, a comma is part of a value. Where
//! it is open whether something is part of a value, it is.

use std::ops::Range;

/// First words of a header's value, before the secret.
const SCHEMES: [&str; 5] = ["Bearer", "Basic", "Digest", "Token", "Negotiate"];

const MAX_PORT_DIGITS: usize = 5;
/// Texts within texts within texts escape quotes of theirs so often, and not more.
const MAX_ESCAPES: usize = 7;

/// What stands before a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// The text begins.
    Start,
    Space,
    Quote(u8),
    Mark(u8),
}

/// A text in which secrets are looked for.
pub(super) struct Text<'a> {
    pub(super) text: &'a str,
    /// Whether it is one argument, whole: then its spaces belong to it. Else it may be any text.
    pub(super) is_argument: bool,
    /// Whether it is the header of a request.
    pub(super) is_header: bool,
}

const fn is_space(byte: u8) -> bool {
    byte <= b' '
}

const fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

impl<'a> Text<'a> {
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub(super) fn part(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// The first place from `at` on that meets a condition, or the end.
    fn find(&self, at: usize, is_wanted: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes().get(at..).unwrap_or_default();
        rest.iter().position(|byte| is_wanted(*byte)).map_or(self.text.len(), |length| at + length)
    }

    pub(super) fn skip_space(&self, at: usize) -> usize {
        self.find(at, |byte| !is_space(byte))
    }

    /// The word that begins here, with quotes and spaces in them.
    pub(super) fn word(&self, begin: usize) -> Range<usize> {
        begin..self.find(self.after_quoted(begin).unwrap_or(begin), is_space)
    }

    /// Where a value ends that begins at `begin`, after a name that comes after `before`.
    pub(super) fn value_end(&self, begin: usize, before: Before) -> usize {
        if self.is_argument && before == Before::Start {
            return self.text.len();
        }
        let at = self.after_quoted(begin).unwrap_or(begin);
        match before {
            Before::Start | Before::Space => self.find(at, is_space),
            Before::Quote(quote) => self.closing(begin, quote),
            Before::Mark(b';') => self.end_in_list(at, b";"),
            Before::Mark(b',') => self.end_in_list(at, b","),
            Before::Mark(b'&' | b'?') => self.end_in_list(at, b"&"),
            Before::Mark(_) => self.end_in_list(at, b",;&|"),
        }
    }

    /// The quote that ends what is in quotes: one that nothing of a word follows.
    fn closing(&self, mut at: usize, quote: u8) -> usize {
        loop {
            at = self.find(at, |byte| byte == quote);
            match self.bytes().get(at + 1) {
                Some(next) if next.is_ascii_alphanumeric() => at += 1,
                _ => return at,
            }
        }
    }

    /// Whether a port begins here, and nothing after it.
    pub(super) fn is_port(&self, begin: usize) -> bool {
        let end = self.find(begin, |byte| !byte.is_ascii_digit());
        let is_end = self.bytes().get(end).is_none_or(|byte| is_space(*byte) || b"/,;?&)}]\"'".contains(byte));
        (1..=MAX_PORT_DIGITS).contains(&(end - begin)) && is_end
    }

    /// Where a value ends in a list: where the next pair begins. What is between two separators and is not a pair belongs to
    /// the value before it.
    fn end_in_list(&self, mut at: usize, separators: &[u8]) -> usize {
        let is_end = |byte: u8| separators.contains(&byte) || (is_space(byte) && !self.is_argument);
        let bytes = self.bytes();
        loop {
            at = self.find(at, is_end);
            let Some(byte) = bytes.get(at) else { return at };
            if is_space(*byte) {
                return at;
            }
            let next = self.find(at + 1, |byte| is_end(byte) || byte == b'=');
            let name = self.part(at + 1..next);
            let is_name = !name.is_empty()
                && name.trim().chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '[' | ']'));
            let has_value = bytes.get(next) == Some(&b'=')
                && bytes.get(next + 1).is_some_and(|byte| *byte != b'=' && !is_end(*byte));
            if (is_name && has_value) || at + 1 == bytes.len() {
                return at;
            }
            at += 1;
            at = at.max(if bytes.get(next) == Some(&b'=') { next + 1 } else { next });
        }
    }

    /// The value of a header: the rest of the line. In a text without ends, its words.
    pub(super) fn header_value(&self, begin: usize, before: Before) -> Range<usize> {
        if let Before::Quote(quote) = before {
            return begin..self.find(begin, |byte| byte == quote || matches!(byte, b'\n' | b'\r'));
        }
        if self.is_argument {
            return begin..self.find(begin, |byte| matches!(byte, b'\n' | b'\r'));
        }
        let first = self.word(begin);
        let is_scheme = SCHEMES.iter().any(|scheme| scheme.eq_ignore_ascii_case(self.part(first.clone())));
        if is_scheme { begin..self.word(self.skip_space(first.end)).end } else { first }
    }

    /// A value of JSON.
    pub(super) fn json_value(&self, begin: usize) -> Range<usize> {
        if let Some(end) = self.after_quoted(begin) {
            return begin..end;
        }
        let bytes = self.bytes();
        if !matches!(bytes.get(begin), Some(b'[' | b'{')) {
            return begin..self.find(begin, |byte| is_space(byte) || matches!(byte, b',' | b'}' | b']'));
        }
        let (mut at, mut depth) = (begin, 0_usize);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth -= 1,
                byte if is_quote(*byte) => {
                    at = self.after_quoted(at).unwrap_or(bytes.len());
                    continue;
                }
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
        begin..at
    }

    /// The end of a part in quotes that begins here, its last quote included. The quotes may themselves be escaped, by
    /// as many backslashes at the end as at the beginning. Where none ends it, it goes on to the end.
    fn after_quoted(&self, begin: usize) -> Option<usize> {
        let bytes = self.bytes();
        let opening = self.find(begin, |byte| byte != b'\\');
        let escapes = Some(opening - begin).filter(|escapes| *escapes <= MAX_ESCAPES)?;
        let quote = *bytes.get(opening).filter(|byte| is_quote(**byte))?;
        let mut before = 0;
        for (at, byte) in bytes.iter().enumerate().skip(opening + 1) {
            match *byte {
                b'\\' => before += 1,
                byte if byte == quote && before == escapes => return Some(at + 1),
                _ => before = 0,
            }
        }
        Some(bytes.len())
    }

    /// A value without the quotes around it.
    pub(super) fn without_quotes(&self, range: Range<usize>) -> Range<usize> {
        let value = self.part(range.clone());
        let escapes = value.len() - value.trim_start_matches('\\').len();
        let marks = value.get(..=escapes).filter(|marks| marks.ends_with(['"', '\'', '`']));
        match marks {
            Some(marks) if value.len() >= 2 * marks.len() && value.ends_with(marks) => {
                range.start + marks.len()..range.end - marks.len()
            }
            _ => range,
        }
    }
}
