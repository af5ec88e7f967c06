//! Reads lines of bounded length.

use std::io::{self, BufRead};

/// Longer lines are not kept.
pub const MOST_BYTES: usize = 1 << 20;

/// A line of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its end.
    Whole(Vec<u8>),
    /// It had more than [`MOST_BYTES`], which were passed over.
    TooLong,
}

/// The next line; `None` at the end. A last line need not end.
///
/// # Errors
/// If the input cannot be read.
pub fn next(input: &mut impl BufRead) -> io::Result<Option<Line>> {
    let (mut line, mut is_too_long, mut is_any) = (Vec::new(), false, false);
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        if available.is_empty() {
            break;
        }
        is_any = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = available.get(..end.unwrap_or(available.len())).unwrap_or(available);
        is_too_long |= line.len() + part.len() > MOST_BYTES;
        if is_too_long {
            line = Vec::new();
        } else {
            line.extend_from_slice(part);
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(is_any.then_some(if is_too_long { Line::TooLong } else { Line::Whole(line) }))
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], buffer: usize) -> Vec<Line> {
        let mut input = BufReader::with_capacity(buffer, bytes);
        std::iter::from_fn(|| next(&mut input).unwrap()).collect()
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_owned())
    }

    #[test]
    fn what_is_too_long_is_passed_over_and_the_next_line_is_whole() {
        let fits = "x".repeat(MOST_BYTES);
        for (text, expected) in [
            (String::new(), vec![]),
            ("\n".to_owned(), vec![whole("")]),
            ("a\nb".to_owned(), vec![whole("a"), whole("b")]),
            (format!("{fits}\nb\n"), vec![whole(&fits), whole("b")]),
            (format!("{fits}x\nb\n"), vec![Line::TooLong, whole("b")]),
            (format!("{fits}{fits}{fits}"), vec![Line::TooLong]),
        ] {
            assert!(all(text.as_bytes(), 8192) == expected, "a text of {} bytes", text.len());
        }
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(text in "[a-c\n]{0,40}", buffer in 1_usize..9) {
            let expected: Vec<Line> = text.strip_suffix('\n').unwrap_or(&text).split('\n').map(whole).collect();
            let expected = if text.is_empty() { Vec::new() } else { expected };
            prop_assert_eq!(all(text.as_bytes(), buffer), expected);
        }
    }
}
