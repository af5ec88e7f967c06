//! Writes a comparison as Markdown that can stand under a pull request: the verdict first, then the
//! figures, then what was compared and what speaks against it.

use std::fmt::Write as _;

use super::{percent, percents, sized};
use crate::{
    model::target_text::TargetText,
    report::diff::{Choices, Compared, Comparison, Gate, Measure, View},
    text::{Keep, cut, escape, seconds},
};

/// So many names of what exceeds the gate stand in the first line.
const NAMED: usize = 3;

pub fn markdown(comparison: &Comparison, choices: &Choices) -> String {
    let mut said = format!("{}\n\n", verdict(comparison, choices));
    let total = &comparison.total.change;
    let (unit, factor) = sized(&choices.unit(), choices.measure, total.a.max(total.b));
    said.push_str(&heading(choices.row(), &unit));
    said.push_str(&row("**total**", &comparison.total, factor));
    let shown = comparison.shown(choices);
    for (compared, name) in shown.iter().zip(comparison.names()) {
        said.push_str(&row(&code(&name), compared, factor));
    }
    let hidden = comparison.rows.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(said, "\nRows that changed most come first; {hidden} more are not shown.");
    }
    if !comparison.phases.is_empty() {
        said.push_str(&phases(comparison, choices));
    }
    said.push_str(&compared(comparison, choices));
    for notice in &comparison.notices {
        let _ = writeln!(said, "\n**Note:** {}", plain(notice));
    }
    for warning in &comparison.warnings {
        let _ = writeln!(said, "\n**Warning:** {}", plain(warning));
    }
    said
}

/// What the gate says, or the verdict on the total if there is none.
fn verdict(comparison: &Comparison, choices: &Choices) -> String {
    let change = &comparison.total.change;
    let (unit, factor) = sized(&choices.unit(), choices.measure, change.a.max(change.b));
    let interval =
        change.relative.map_or_else(String::new, |interval| format!(" (95 % interval {} %)", percents(Some(interval))));
    let total = format!(
        "{:.4} → {:.4} {unit}, {} %{interval}: {}",
        change.a * factor,
        change.b * factor,
        percent(change.ratio()),
        change.verdict.name()
    );
    match gate(comparison, choices, code) {
        Some((word, reason)) => format!("**{word}:** {reason}. {}: {total}", choices.figure()),
        None => format!("**{}:** {total}", choices.figure()),
    }
}

/// What the gate says in a word, and why, if there is one. `named` writes the names of rows.
pub(super) fn gate(
    comparison: &Comparison,
    choices: &Choices,
    named: fn(&TargetText) -> String,
) -> Option<(&'static str, String)> {
    let allowed = format!("{:.4} % above A", choices.fail_above? * 100.0).replace(".0000", "");
    Some(match comparison.gate(choices) {
        Gate::Passed => ("Passed", format!("nothing is certainly more than {allowed}")),
        Gate::Exceeded => {
            let what = exceeding(comparison, choices, named);
            ("Failed", format!("{what} certainly more than {allowed}{}", comparison.sessions.reservation()))
        }
        Gate::NotEnoughRuns => ("Undecided", "there are not enough runs".to_owned()),
        Gate::NotComparable => ("Undecided", "A and B were made differently".to_owned()),
        Gate::NoPhases => ("Undecided", "no program named a phase".to_owned()),
    })
}

/// `the total is`, or the names of some rows.
fn exceeding(comparison: &Comparison, choices: &Choices, named: fn(&TargetText) -> String) -> String {
    let rows: Vec<&Compared> = comparison.judged(choices.fail_on).iter().filter(|row| row.exceeds).collect();
    let names: Vec<String> = rows.iter().take(NAMED).map(|row| named(&row.key.name)).collect();
    let more = if rows.len() > NAMED { format!(" and {} more", rows.len() - NAMED) } else { String::new() };
    format!("{}{more} {}", names.join(", "), if rows.len() == 1 { "is" } else { "are" })
}

fn heading(what: &str, unit: &str) -> String {
    format!(
        "| {what} | A {unit} | B {unit} | change | % | 95 % interval of % | verdict |\n|---|--:|--:|--:|--:|--:|---|\n"
    )
}

fn row(name: &str, row: &Compared, factor: f64) -> String {
    let change = &row.change;
    let above = if row.exceeds { ", above the gate" } else { "" };
    format!(
        "| {name} | {:.4} | {:.4} | {:+.4} | {} | {} | {}{above} |\n",
        change.a * factor,
        change.b * factor,
        change.difference() * factor,
        percent(change.ratio()),
        percents(change.relative),
        change.verdict.name()
    )
}

fn phases(comparison: &Comparison, choices: &Choices) -> String {
    let (unit, factor) = comparison.unit_of_phases(choices);
    let mut said = format!("\n{}", heading("phase", &unit));
    let shown = comparison.shown_phases(choices);
    for phase in shown {
        said.push_str(&row(&code(&phase.key.name), phase, factor));
    }
    let hidden = comparison.phases.len() - shown.len();
    if hidden > 0 {
        let _ = writeln!(said, "\n{hidden} more phases are not shown.");
    }
    said
}

/// Both sides, and what the intervals rest on.
fn compared(comparison: &Comparison, choices: &Choices) -> String {
    let mut said = String::from("\n**What was compared**\n\n");
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let overview = &side.overview;
        let ambiguous = if overview.ambiguous > 0 { ", ambiguous" } else { "" };
        let sources: Vec<String> = overview.sources.iter().map(|source| escape(source)).collect();
        let kept = if side.is_baseline { "baseline " } else { "" };
        let label = overview.label.map_or("no energy", |label| label.name());
        let energy = format!(", {label}{ambiguous} ({}){}", plain(&sources.join(", ")), side.moved());
        let _ = writeln!(
            said,
            "- {name}: {kept}<code>{}</code>: {}{}; {}, {:.1} s, {:.1} CPU s",
            plain(&escape(&side.data.display().to_string())),
            side.amount(choices.measure),
            if choices.measure == Measure::Energy { energy } else { String::new() },
            side.counted(),
            seconds(overview.duration_ns),
            seconds(side.cpu_ns),
        );
    }
    let view = if choices.view == View::Total { ", each with what it calls" } else { "" };
    let _ = writeln!(said, "- Rows: {} by {}{view}. {}.", choices.unit(), choices.row(), comparison.basis());
    said
}

/// A name of a sensible length in which no Markdown or HTML can hide.
fn code(name: &TargetText) -> String {
    format!("<code>{}</code>", plain(&cut(&name.to_string(), 200, Keep::Name)))
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
    fn a_name_is_no_markup() {
        assert_eq!(code(&"a|b<script>".into()), "<code>a&#124;b&#60;script&#62;</code>");
        assert_eq!(code(&"[x](http://y)\n".into()), "<code>&#91;x&#93;(http://y)&#92;x0a</code>");
    }
}
