//! Writes a comparison as CSV.

use std::fmt::Write as _;

use crate::{
    model::target_text::TargetText,
    report::diff::{Choices, Comparison, Side},
};

/// A row per method, after one for the total. Control characters in names are spelled out, and a
/// name that a spreadsheet would run gets a `'` before it.
pub fn csv(comparison: &Comparison, choices: &Choices) -> String {
    let mut said = String::from(
        "row,name,signature,module,unit,a_uj,b_uj,a_samples,b_samples,a,b,change,change_low,change_high,percent,\
         percent_low,percent_high,p,q,verdict,a_label,b_label,a_ambiguous,b_ambiguous,a_inferred_uj,b_inferred_uj\n",
    );
    let label = |side: &Side| side.overview.label.map_or("", |label| label.name());
    let (a, b) = (&comparison.a, &comparison.b);
    let rows = std::iter::once(("total", &comparison.total));
    for (kind, row) in rows.chain(comparison.shown(choices).iter().map(|row| (choices.by.name(), row))) {
        let change = &row.change;
        let bound = |interval: Option<(f64, f64)>| {
            interval.map_or_else(|| ",".to_owned(), |(low, high)| format!("{low},{high}"))
        };
        let in_percent = |(low, high)| (low * 100.0, high * 100.0);
        let some = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let optional = |text: &Option<TargetText>| text.as_ref().map_or_else(String::new, cell);
        let _ = writeln!(
            said,
            "{kind},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            cell(&row.key.name),
            optional(&row.key.signature),
            optional(&row.key.module),
            choices.per.unit(),
            row.a.energy,
            row.b.energy,
            row.a.samples,
            row.b.samples,
            change.a,
            change.b,
            change.difference(),
            bound(change.interval),
            some(change.ratio().map(|ratio| ratio * 100.0)),
            bound(change.relative.map(in_percent)),
            some(change.p),
            some(change.q),
            change.verdict.name(),
            label(a),
            label(b),
            a.overview.ambiguous > 0,
            b.overview.ambiguous > 0,
            row.a.inferred,
            row.b.inferred,
        );
    }
    said
}

/// A value of a CSV file.
fn cell(text: &TargetText) -> String {
    let text = text.to_string();
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    if text.contains(['"', ',']) || !guard.is_empty() {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_cell_and_no_formula() {
        for (name, expected) in [
            ("a.B.c", "a.B.c"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("two\nlines", "two\\x0alines"),
        ] {
            assert_eq!(cell(&name.into()), expected);
        }
    }
}
