//! Finds values under names that tell: `name=value`, `name: value`, `"name": "value"`, and `--name value` within a text.
//!
//! A text is gone through once. What stands between two separators may be a name, and a value may come after it.

use std::ops::Range;

use super::{
    names::{bare, is_option, last_part},
    values::{Before, Text},
};

/// What JVMs are told where a package is opened to all. The package's name may hold a telling word.
const NO_SECRET: &str = "ALL-UNNAMED";
/// `=` in a part of a URL.
const ENCODED_EQUALS: [&[u8]; 2] = [b"%3D", b"%3d"];

/// What ends a name.
#[derive(Clone, Copy)]
enum Separator {
    /// With its length.
    Equals(usize),
    Colon,
    Quote(u8),
    Space,
    Other(u8),
}

impl Separator {
    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        match *bytes.get(at)? {
            b'=' => Some(Self::Equals(1)),
            b'%' if ENCODED_EQUALS.iter().any(|encoded| bytes.get(at..at + 3) == Some(encoded)) => {
                Some(Self::Equals(3))
            }
            b':' => Some(Self::Colon),
            quote @ (b'"' | b'\'' | b'`') => Some(Self::Quote(quote)),
            byte if byte <= b' ' => Some(Self::Space),
            byte @ (b';' | b'&' | b',' | b'?' | b'{' | b'}' | b'(' | b')' | b'|' | b'<' | b'>') => {
                Some(Self::Other(byte))
            }
            _ => None,
        }
    }

    const fn len(self) -> usize {
        if let Self::Equals(length) = self { length } else { 1 }
    }

    /// What it is to the name after it.
    const fn before(self) -> Before {
        match self {
            Self::Equals(_) => Before::Mark(b'='),
            Self::Colon => Before::Mark(b':'),
            Self::Quote(quote) => Before::Quote(quote),
            Self::Space => Before::Space,
            Self::Other(byte) => Before::Mark(byte),
        }
    }
}

/// Adds values whose names tell, each with its name. `tells` gets names without dashes.
pub(super) fn find(text: &Text<'_>, tells: &dyn Fn(&str) -> bool, mut add: impl FnMut(&str, Range<usize>)) {
    let bytes = text.bytes();
    let (mut at, mut start, mut before) = (0, 0, Before::Start);
    while at < bytes.len() {
        let Some(separator) = Separator::at(bytes, at) else {
            at += 1;
            continue;
        };
        let name = last_part(text.part(start..at));
        let is_telling = !name.is_empty() && tells(bare(name));
        let value = if is_telling { value(text, name, at, separator, before) } else { None };
        let after = at + separator.len();
        let value = value.filter(|(range, _)| !range.is_empty() && text.part(range.clone()) != NO_SECRET);
        (at, before) = match value {
            // An option's value may be an option itself, whose value comes next.
            Some((range, true)) => {
                add(name, range);
                (after, separator.before())
            }
            Some((range, false)) => {
                let end = range.end;
                add(name, text.without_quotes(range));
                (end, before)
            }
            None => (after, separator.before()),
        };
        start = at;
    }
}

/// The value of a name that ends at `at`, and whether it is the word after an option.
fn value(text: &Text<'_>, name: &str, at: usize, separator: Separator, before: Before) -> Option<(Range<usize>, bool)> {
    let bytes = text.bytes();
    let after = at + separator.len();
    let plain = |begin: usize| Some((begin..text.value_end(begin, before), false));
    match separator {
        Separator::Equals(_) => {
            // As at the end of Base64.
            let is_padding = text.part(after..bytes.len()).bytes().take(2).all(|byte| byte == b'=');
            if is_padding { None } else { plain(after) }
        }
        Separator::Colon => {
            let is_spaced = bytes.get(after).is_some_and(|byte| *byte <= b' ');
            let begin = text.skip_space(after);
            match before {
                Before::Mark(b'{' | b',' | b';' | b'&' | b'?' | b'(' | b'|')
                    if !bytes.get(begin..)?.starts_with(b"//") && !text.is_port(begin) =>
                {
                    plain(begin)
                }
                _ if is_spaced || text.is_header => Some((text.header_value(begin, before), false)),
                _ => None,
            }
        }
        Separator::Quote(quote) if before == Before::Quote(quote) => {
            let begin = text.skip_space(after);
            let begin = match bytes.get(begin..)? {
                [b'=', b'>', ..] => begin + 2,
                [b':' | b'=', ..] => begin + 1,
                _ => return None,
            };
            let begin = text.skip_space(begin);
            Some((text.json_value(begin), false))
        }
        Separator::Space => {
            let begin = text.skip_space(after);
            match bytes.get(begin..)? {
                [b'=', rest @ ..] if rest.first() != Some(&b'=') => plain(text.skip_space(begin + 1)),
                [b':', space, ..] if *space <= b' ' => {
                    Some((text.header_value(text.skip_space(begin + 1), before), false))
                }
                [b'-', b'-'] => None,
                [b'-', b'-', space, ..] if *space <= b' ' => None,
                _ if is_option(name) => Some((text.word(begin), true)),
                _ => None,
            }
        }
        Separator::Quote(_) | Separator::Other(_) => None,
    }
}
