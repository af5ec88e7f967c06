//! Makes text for people: names made harmless and cut to width, figures with units.

pub mod csv;
pub mod figures;
pub mod latex;
pub mod line;
pub mod signature;
pub mod table;

use std::{
    error::Error,
    fmt::{Display, Write},
};

use jiff::Timestamp;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::model::{
    target_text::{TargetText, escaped, is_spelled_out},
    units::{MicroJoules, UnixMicros},
};

/// A name that cannot fool a terminal or its reader: characters that control a terminal, reorder
/// text or cannot be seen are spelled out. Names come from processes that may be hostile; what
/// keeps one keeps it as a [`TargetText`], which needs no call.
pub fn escape(name: &str) -> String {
    escaped(name).into_owned()
}

/// [`escape`] for texts of several lines: line breaks and tabs stay.
pub fn escape_lines(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(escape).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// An error with all that caused it.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// The same JSON, without a character that a terminal acts on. Those that serde leaves are in
/// strings, where they can be spelled out.
pub fn harmless_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_spelled_out(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// What to keep of a text that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Start,
    /// The name of a method with its class: parameters go first, from the last one on, then the package, from its
    /// beginning on. Of a text without parameters the end stays.
    Name,
}

/// At most `width` terminal columns of an escaped text.
pub fn cut(text: &str, width: usize, keep: Keep) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    match keep {
        Keep::Start => fitting(text.chars(), room).chain(['…']).collect(),
        Keep::Name => {
            let (name, parameters) = text.split_at(parameters_at(text).unwrap_or(text.len()));
            match room.checked_sub(name.width()) {
                Some(left) => name.chars().chain(fitting(parameters.chars(), left)).chain(['…']).collect(),
                None => {
                    let end: Vec<char> = fitting(name.chars().rev(), room).collect();
                    ['…'].into_iter().chain(end.into_iter().rev()).collect()
                }
            }
        }
    }
}

/// As many characters as have room, from the first one on.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> impl Iterator<Item = char> {
    chars.scan(0, move |used, c| {
        *used += c.width().unwrap_or(0);
        (*used <= room).then_some(c)
    })
}

/// Where the parameters of a method begin, in Java or in C++: at a parenthesis that follows a name directly. One in the
/// arguments of a template is part of the name.
fn parameters_at(text: &str) -> Option<usize> {
    let (mut depth, mut before) = (0_i32, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '(' if depth <= 0 && (before.is_alphanumeric() || matches!(before, '_' | '$' | '>')) => return Some(at),
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        before = c;
    }
    None
}

/// A number of things: `1 window`, `2 windows`, `3 processes`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, thing: &str) -> String {
    let ending = match thing {
        _ if number == N::from(1) => "",
        thing if thing.ends_with(['s', 'x']) || thing.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {thing}{ending}")
}

/// Threads of a pool have its name and a number: `http-nio-8080-exec-12` is of `http-nio-8080-exec-*`.
pub fn pool_of(thread: &TargetText) -> TargetText {
    let name = thread.raw().trim_end_matches(|c: char| c.is_ascii_digit());
    if name.is_empty() || name.len() == thread.raw().len() { thread.clone() } else { format!("{name}*").into() }
}

/// Joules to the microjoule, so that a sum can be checked by hand.
pub fn exact_joules(energy: MicroJoules) -> String {
    format!("{}.{:06}", energy.0 / 1_000_000, energy.0 % 1_000_000)
}

/// Mean power over a time; 0 over no time.
#[allow(clippy::cast_precision_loss, reason = "for display")]
pub fn watts(energy: MicroJoules, over_ns: u64) -> f64 {
    if over_ns == 0 { 0.0 } else { energy.0 as f64 * 1e3 / over_ns as f64 }
}

/// Part of a whole in percent; 0 of nothing.
#[allow(clippy::cast_precision_loss, reason = "for display")]
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

pub fn share(part: MicroJoules, whole: MicroJoules) -> f64 {
    percent(part.0, whole.0)
}

#[allow(clippy::cast_precision_loss, reason = "for display")]
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// UTC, to the second.
pub fn time(moment: UnixMicros) -> String {
    Timestamp::from_microsecond(moment.0)
        .map_or_else(|_| format!("{moment} µs"), |moment| moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_several() {
        let written = [(0, "run"), (1, "run"), (2, "process"), (1, "branch"), (3, "branch")];
        let written = written.map(|(number, thing)| count(number, thing));
        assert_eq!(written, ["0 runs", "1 run", "2 processes", "1 branch", "3 branches"]);
    }

    #[test]
    fn nothing_in_a_name_reaches_the_terminal_as_control() {
        for (name, expected) in [
            ("java", "java"),
            ("a\x1b[2Jb", "a\\x1b[2Jb"),
            ("line\nbreak\r", "line\\x0abreak\\x0d"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("c1\u{9b}31m", "c1\\u{9b}31m"),
            ("naïve 日本", "naïve 日本"),
        ] {
            assert_eq!(escape(name), expected);
            assert_eq!(escape(&escape(name)), expected, "a text that was escaped stays as it is");
        }
        assert_eq!(escape_lines("a\tb\n\x1b[2J\r\n"), "a\tb\n\\x1b[2J\\x0d\n");
    }

    #[test]
    fn nothing_in_json_reorders_or_controls_and_all_of_it_is_there() {
        let name = "a\u{202e}b\u{9b}c\u{e0001}d\\\n\x1b\"";
        let json = harmless_json(&serde_json::to_string(name).unwrap());
        assert!(json.is_ascii(), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
    }

    #[test]
    fn texts_are_cut_by_the_columns_that_they_take() {
        for (text, width, keep, expected) in [
            ("abc", 3, Keep::Start, "abc"),
            ("abcd", 3, Keep::Start, "ab…"),
            ("abcd", 3, Keep::Name, "…cd"),
            ("日本語", 4, Keep::Start, "日…"),
            ("日本語", 4, Keep::Name, "…語"),
            ("abc", 0, Keep::Start, ""),
        ] {
            assert_eq!(cut(text, width, keep), expected);
        }
    }

    #[test]
    fn a_method_keeps_its_name_and_class_longer_than_its_parameters_and_package() {
        const SEARCH: &str = "java.util.Arrays.binarySearch(long, Long[], int, int)";
        for (name, width, expected) in [
            (SEARCH, 53, SEARCH),
            (SEARCH, 40, "java.util.Arrays.binarySearch(long, Lon…"),
            (SEARCH, 30, "java.util.Arrays.binarySearch…"),
            (SEARCH, 20, "…Arrays.binarySearch"),
            ("a.B.<init>(int, int)", 12, "a.B.<init>(…"),
            ("a.B.C$$Lambda.run", 13, "…$$Lambda.run"),
            ("PhaseChaitin::color(LRG&) [clone .part.0]", 24, "PhaseChaitin::color(LRG…"),
            ("Map<int (*)(long)>::get(int)", 24, "Map<int (*)(long)>::get…"),
            ("(anonymous namespace)::walk(int)", 10, "…ce)::walk"),
            ("operator<(A, B)", 9, "…r<(A, B)"),
            ("java worker (idle)", 8, "… (idle)"),
        ] {
            assert_eq!(cut(name, width, Keep::Name), expected, "{name}");
        }
    }

    #[test]
    fn joules_are_exact() {
        assert_eq!(exact_joules(MicroJoules(1_000_001)), "1.000001");
        assert_eq!(exact_joules(MicroJoules(u64::MAX)), "18446744073709.551615");
    }

    #[test]
    fn nothing_divides_by_zero() {
        assert_eq!((watts(MicroJoules(1), 0), percent(1, 0)), (0.0, 0.0));
    }

    proptest::proptest! {
        #[test]
        fn any_name_is_harmless_and_fits(name: String, width in 0usize..200) {
            let safe = escape(&name);
            assert!(!safe.chars().any(is_spelled_out));
            for keep in [Keep::Start, Keep::Name] {
                assert!(cut(&safe, width, keep).width() <= width);
            }
        }
    }
}
