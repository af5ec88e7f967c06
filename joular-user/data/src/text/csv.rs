//! Writes comma-separated values (RFC 4180), for spreadsheets and scripts.
//!
//! Names come from processes that may be hostile. Characters that control a terminal are spelled
//! out as everywhere ([`escape`]), and a text that a spreadsheet would take for a formula gets an
//! apostrophe before it.

use super::escape;

/// What a spreadsheet takes for the beginning of a formula, in wide characters too.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// A line of cells, with its end.
pub fn line(cells: impl IntoIterator<Item = String>) -> String {
    let quoted = cells.into_iter().map(|cell| {
        let needs_quotes = cell.contains([',', '"', '\r', '\n']);
        if needs_quotes { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

/// A text that is harmless in a terminal and a spreadsheet.
pub fn name(text: &str) -> String {
    let safe = escape(text);
    if safe.trim_start().starts_with(FORMULA) { format!("'{safe}") } else { safe }
}

/// A figure; empty if there is none.
pub fn figure(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_a_formula_or_a_control() {
        for (text, expected) in [
            ("com.acme.Shop.sell", "com.acme.Shop.sell"),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            (" =1+1", "' =1+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("＝1", "'＝1"),
            ("\t=1", "\\x09=1"),
            ("a\x1b[2J\n", "a\\x1b[2J\\x0a"),
        ] {
            assert_eq!(name(text), expected);
        }
    }

    #[test]
    fn cells_with_separators_are_quoted() {
        assert_eq!(line(["a,b", "say \"x\"", "", "c"].map(String::from)), "\"a,b\",\"say \"\"x\"\"\",,c\r\n");
    }
}
