//! Writes a comparison for a terminal: what is compared, both sides, warnings, the total, rows.

use std::fmt::Write as _;

use super::{percent, percents, sized};
use crate::{
    model::target_text::TargetText,
    report::diff::{Change, Choices, Compared, Comparison, Measure, Side, identity::View},
    text::{
        count, escape, seconds,
        table::{Column, Table},
    },
};

// Writing to a String cannot fail.
pub fn text(comparison: &Comparison, choices: &Choices, width: Option<usize>) -> String {
    let change = &comparison.total.change;
    let (unit, factor) = sized(&choices.unit(), choices.measure, change.a.max(change.b));
    let (figure, by) = (choices.figure(), choices.row());
    let view = if choices.view == View::Total { ", each with what it calls" } else { "" };
    let mut said = format!("{figure}, in {unit}, by {by}{view}; {}.\n", comparison.basis());
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let _ = writeln!(said, "{name}  {}", described(side, choices.measure));
    }
    let _ = writeln!(said, "Of rows called more or less at most 5 % are not, on average (Benjamini-Hochberg).");
    for notice in &comparison.notices {
        let _ = writeln!(said, "note: {notice}");
    }
    for warning in &comparison.warnings {
        let _ = writeln!(said, "warning: {warning}");
    }
    said.push('\n');
    if !comparison.phases.is_empty() {
        said.push_str(&phases(comparison, choices, width));
        said.push('\n');
    }
    let shown = comparison.shown(choices);
    let named = shown.iter().zip(comparison.names()).map(|(row, name)| (row, place(name, row)));
    let rows = std::iter::once((&comparison.total, "total".into())).chain(named);
    said.push_str(&table(rows.collect(), by, &unit, factor).text(width));
    let hidden = comparison.rows.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(said, "and {hidden} more with smaller changes: --top 0 shows all");
    }
    said
}

/// Phases come first, because there are few.
fn phases(comparison: &Comparison, choices: &Choices, width: Option<usize>) -> String {
    let (unit, factor) = comparison.unit_of_phases(choices);
    let shown = comparison.shown_phases(choices);
    let rows = shown.iter().map(|row| (row, row.key.name.clone()));
    let mut said = table(rows.collect(), "phase", &unit, factor).text(width);
    let hidden = comparison.phases.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(said, "and {hidden} more phases: --top 0 shows all");
    }
    said
}

/// Rows with their names; figures in a unit that has this factor.
fn table(rows: Vec<(&Compared, TargetText)>, what: &str, unit: &str, factor: f64) -> Table {
    let changes = || rows.iter().map(|(row, _)| &row.change);
    let figure = |value: f64| format!("{:.4}", value * factor);
    Table {
        columns: vec![
            Column::figures(&format!("A {unit}"), changes(), |change: &Change| figure(change.a)),
            Column::figures(&format!("B {unit}"), changes(), |change| figure(change.b)),
            Column::figures("change", changes(), |change| format!("{:+.4}", change.difference() * factor))
                .expendable(4),
            Column::figures("%", changes(), |change| percent(change.ratio())).expendable(1),
            Column::figures("95 % interval of %", changes(), |change| percents(change.relative)).expendable(3),
            Column::words("verdict", changes(), |change| change.verdict.name().to_owned()).expendable(2),
        ],
        heading: what.to_owned(),
        names: rows.into_iter().map(|(_, name)| name).collect(),
    }
}

pub(super) fn described(side: &Side, measure: Measure) -> String {
    let overview = &side.overview;
    let sources: Vec<String> = overview.sources.iter().map(|source| escape(source)).collect();
    let ambiguous = if overview.ambiguous > 0 { ", AMBIGUOUS" } else { "" };
    let label = overview.label.map_or("no energy", |label| label.name());
    let energy = format!(" ({label}{ambiguous}: {}{})", sources.join(", "), side.moved());
    format!(
        "{}: {}{}, {}, {}, {:.1} s, {:.1} CPU s",
        escape(&side.data.display().to_string()),
        side.amount(measure),
        if measure == Measure::Energy { energy } else { String::new() },
        side.counted(),
        count(side.window_count, "window"),
        seconds(overview.duration_ns),
        seconds(side.cpu_ns),
    )
}

/// Adds the file of code outside of Java.
fn place(name: TargetText, row: &Compared) -> TargetText {
    match &row.key.module {
        Some(module) => format!("{name} ({module})").into(),
        None => name,
    }
}
