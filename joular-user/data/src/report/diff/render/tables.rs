//! Writes a comparison as CSV and Markdown.

use std::fmt::Write as _;

use super::{percent, percents, sized};
use crate::{
    model::target_text::TargetText,
    report::diff::{Choices, Compared, Comparison, Side},
    text::{Keep, cut},
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

/// The comparison for an issue or a pull request.
pub fn markdown(comparison: &Comparison, choices: &Choices) -> String {
    let total = &comparison.total.change;
    let (unit, factor) = sized(choices.per.unit(), total.a.max(total.b));
    let mut said = format!(
        "| {} | A {unit} | B {unit} | change | % | 95 % interval of % | verdict |\n|---|--:|--:|--:|--:|--:|---|\n",
        choices.by.name()
    );
    let row = |name: String, row: &Compared| {
        let change = &row.change;
        format!(
            "| {name} | {:.4} | {:.4} | {:+.4} | {} | {} | {} |\n",
            change.a * factor,
            change.b * factor,
            change.difference() * factor,
            percent(change.ratio()),
            percents(change.relative),
            change.verdict.name()
        )
    };
    said.push_str(&row("**total**".to_owned(), &comparison.total));
    for (compared, name) in comparison.shown(choices).iter().zip(comparison.names()) {
        said.push_str(&row(code(&name), compared));
    }
    let label = |side: &Side| {
        let ambiguous = if side.overview.ambiguous > 0 { ", ambiguous" } else { "" };
        format!("{}{ambiguous}{}", side.overview.label.map_or("no energy", |label| label.name()), side.inferred())
    };
    let (of_a, of_b) = (label(&comparison.a), label(&comparison.b));
    let _ = writeln!(said, "\nEnergy: {of_a} in A, {of_b} in B. {}.", comparison.basis());
    for notice in &comparison.notices {
        let _ = writeln!(said, "\n**Note:** {}", plain(notice));
    }
    for warning in &comparison.warnings {
        let _ = writeln!(said, "\n**Warning:** {}", plain(warning));
    }
    said
}

/// A name of a sensible length in which no Markdown or HTML can hide.
fn code(name: &TargetText) -> String {
    format!("<code>{}</code>", plain(&cut(&name.to_string(), 200, Keep::End)))
}

/// Text in which nothing is markup: every character that could be becomes an HTML entity.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '<' | '>' | '"' | '\'' | '`' | '|' | '*' | '_' | '[' | ']' | '\\' | '~' | '$' | '@' => {
                let _ = write!(plain, "&#{};", u32::from(c));
            }
            c => plain.push(c),
        }
    }
    plain
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

    #[test]
    fn a_name_is_no_markup() {
        assert_eq!(code(&"a|b<script>".into()), "<code>a&#124;b&#60;script&#62;</code>");
        assert_eq!(code(&"[x](http://y)\n".into()), "<code>&#91;x&#93;(http://y)&#92;x0a</code>");
    }
}
