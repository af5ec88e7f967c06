//! Writes cells of tables: names that leave room, units that fit.

use crate::{
    model::target_text::TargetText,
    text::{Keep, cut},
};

/// Columns of a terminal for a name in a sentence.
const NAME_WIDTH: usize = 60;

/// A name of a width that leaves room for figures.
pub fn text_name(name: &TargetText) -> String {
    cut(&name.to_string(), NAME_WIDTH, Keep::Name)
}

/// A prefix of a unit that makes figures up to `largest` readable, and the factor for it.
pub fn sized(largest: f64) -> (&'static str, f64) {
    // What rounds to the next prefix's 1 has it.
    match largest.abs() * 1.000_000_5 {
        size if size >= 1e6 => ("M", 1e-6),
        size if size >= 1e4 => ("k", 1e-3),
        size if size >= 1.0 || size <= 0.0 => ("", 1.0),
        size if size >= 1e-3 => ("m", 1e3),
        size if size >= 1e-6 => ("µ", 1e6),
        _ => ("n", 1e9),
    }
}

/// A number that was computed, without digits that only computing made. What is very large or small has a power of ten.
pub fn number(value: f64) -> String {
    let rounded: f64 = format!("{value:.11e}").parse().unwrap_or(value);
    if rounded == 0.0 || (1e-6..1e15).contains(&rounded.abs()) { rounded.to_string() } else { format!("{rounded:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_where_computing_begins() {
        for (value, expected) in [
            (0.0, "0"),
            (2_000_000.0, "2000000"),
            (2.3 * 10.0, "23"),
            (0.1 + 0.2, "0.3"),
            (0.7, "0.7"),
            (1e80, "1e80"),
            (1.5e-9, "1.5e-9"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn figures_are_shown_in_a_unit_that_fits_them() {
        let sizes = [12.0, 0.012, 3e-5, 0.0, 25_000.0, 2e-8, 0.999_999_9].map(sized);
        assert_eq!(sizes, [("", 1.0), ("m", 1e3), ("µ", 1e6), ("", 1.0), ("k", 1e-3), ("n", 1e9), ("", 1.0)]);
    }
}
