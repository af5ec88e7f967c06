//! Writes a comparison for a terminal: both sides, warnings, the total, rows.

use std::fmt::Write as _;

use super::{percent, percents, sized};
use crate::{
    model::target_text::TargetText,
    report::diff::{Change, Choices, Compared, Comparison, Measure, Side, identity::View},
    text::{Keep, count, cut, escape, seconds},
};

/// Columns for the name of a row.
const NAME_WIDTH: usize = 80;

// Writing to a String cannot fail.
pub fn text(comparison: &Comparison, choices: &Choices) -> String {
    let mut said = String::new();
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let _ = writeln!(said, "{name}  {}", described(side, choices.measure));
    }
    let change = &comparison.total.change;
    let (unit, factor) = sized(&choices.unit(), choices.measure, change.a.max(change.b));
    let view = if choices.view == View::Total { ", each with what it calls" } else { "" };
    let _ = writeln!(said, "{unit} by {}{view}; {}.", choices.row(), comparison.basis());
    let _ = writeln!(said, "Of rows called more or less at most 5 % are not, on average (Benjamini-Hochberg).");
    for notice in &comparison.notices {
        let _ = writeln!(said, "note: {notice}");
    }
    for warning in &comparison.warnings {
        let _ = writeln!(said, "warning: {warning}");
    }
    let _ = writeln!(
        said,
        "\n{:>12} {:>12} {:>12} {:>8}  {:>19}  {:<19}  {}",
        format!("A {unit}"),
        format!("B {unit}"),
        "change",
        "%",
        "95 % interval of %",
        "verdict",
        choices.row()
    );
    let _ = writeln!(said, "{}  total", figures(change, factor));
    let shown = comparison.shown(choices);
    if !comparison.phases.is_empty() {
        said.push_str(&phases(comparison, choices));
        let _ = writeln!(said, "\nRows, {unit}");
    }
    for (row, name) in shown.iter().zip(comparison.names()) {
        let name = cut(&place(&name, row), NAME_WIDTH, Keep::Name);
        let _ = writeln!(said, "{}  {name}", figures(&row.change, factor));
    }
    let hidden = comparison.rows.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(said, "and {hidden} more with smaller changes: --top 0 shows all");
    }
    said
}

/// Phases come first, because there are few.
fn phases(comparison: &Comparison, choices: &Choices) -> String {
    let (unit, factor) = comparison.unit_of_phases(choices);
    let mut said = format!("\nPhases, {unit}\n");
    for row in comparison.shown_phases(choices) {
        let _ = writeln!(said, "{}  {}", figures(&row.change, factor), row.key.name);
    }
    let hidden = comparison.phases.len() - comparison.shown_phases(choices).len();
    if hidden > 0 {
        let _ = writeln!(said, "and {hidden} more phases: --top 0 shows all");
    }
    said
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

fn figures(change: &Change, factor: f64) -> String {
    format!(
        "{:>12.4} {:>12.4} {:>+12.4} {:>8}  {:>19}  {:<19}",
        change.a * factor,
        change.b * factor,
        change.difference() * factor,
        percent(change.ratio()),
        percents(change.relative),
        change.verdict.name()
    )
}

/// Adds the file of code outside of Java.
fn place(name: &TargetText, row: &Compared) -> String {
    match &row.key.module {
        Some(module) => format!("{name} ({module})"),
        None => name.to_string(),
    }
}
