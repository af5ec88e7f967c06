//! Writes a comparison as one page: the verdict, the rows, and flame graphs of both sides and of what changed.
//!
//! The graphs are of one tree. Their figures are a side's amounts, each multiplied by what makes the side's total of
//! them: so the graphs have the unit and the totals of the tables, whatever is divided by.

use serde::Serialize;

use super::{Choices, Compared, Comparison, Side, percents, sized, summary, text};
use crate::{
    dataset::error::DataSetError,
    model::{domain::Label, target_text::TargetText},
    report::{
        diff::{Change, Measure, Verdict, View},
        html::{
            Markup,
            columns::{self, Pair},
            document,
            strings::Strings,
        },
        profile::{App, Filter, Profile},
        tree::{Branches, Shape},
    },
    text::{Keep, cut},
};

/// Nodes of the tree that all graphs are of.
const NODES: usize = 60_000;
/// Rows of the table: more than anyone looks through.
const ROWS: usize = 2_000;
/// Of names in a sentence.
const NAME_COLUMNS: usize = 100;

#[derive(Debug, Serialize)]
struct Figures<'a> {
    verdict: String,
    /// In short: `more`.
    verdict_name: &'static str,
    /// What was compared, in words: `energy of a run`.
    metric: String,
    /// What the gate says, if there is one.
    gate: Option<String>,
    /// How each side's energy came about; none for bytes and counts.
    labels: Vec<&'static str>,
    sides: [String; 2],
    by: &'static str,
    unit: String,
    basis: String,
    notices: &'a [String],
    warnings: &'a [String],
    total: Line,
    rows: Vec<Line>,
    rows_left_out: usize,
    phases: Vec<Line>,
    phase_unit: String,
    kinds: Vec<(&'static str, String)>,
    /// `None`: there is nothing to draw.
    pair: Option<Pair>,
    strings: Vec<String>,
}

/// Figures in the unit of the table.
#[derive(Debug, Serialize)]
struct Line {
    name: usize,
    detail: i64,
    a: f64,
    b: f64,
    change: f64,
    /// Per cent; `None`: A had nothing.
    percent: Option<f64>,
    interval: Option<(f64, f64)>,
    /// The same as text.
    range: String,
    verdict: &'static str,
    is_above: bool,
    samples: u64,
}

pub(super) fn page(
    comparison: &Comparison,
    choices: &Choices,
    [filter_a, filter_b]: [&Filter; 2],
    app: Option<&App>,
    before: &Markup,
) -> Result<Vec<u8>, DataSetError> {
    let mut strings = Strings::default();
    let change = &comparison.total.change;
    let (unit, factor) = sized(&choices.unit(), choices.measure, change.a.max(change.b));
    let pair = match (profile(&comparison.a, filter_a, app)?, profile(&comparison.b, filter_b, app)?) {
        (Some(a), Some(b)) => pair([a, b], change, choices.measure, (&unit, factor), &mut strings),
        _ => None,
    };
    let (phase_unit, phase_factor) = comparison.unit_of_phases(choices);
    let names = comparison.names();
    let named = comparison.rows.iter().zip(&names).take(ROWS);
    let is_of_energy = choices.measure == Measure::Energy;
    let label = |side: &Side| side.overview.label.map_or("no energy source", Label::words);
    let sides = [&comparison.a, &comparison.b];
    let figures = Figures {
        verdict: sentence(change.verdict, choices.margin),
        verdict_name: change.verdict.name(),
        metric: metric(choices),
        gate: summary::gate(comparison, choices, short).map(|(word, reason)| format!("{word}: {reason}")),
        labels: sides.into_iter().filter(|_| is_of_energy).map(label).collect(),
        sides: sides.map(|side| text::described(side, choices.measure)),
        by: choices.row(),
        basis: comparison.basis(),
        notices: &comparison.notices,
        warnings: &comparison.warnings,
        total: line(&comparison.total, &"total".into(), factor, &mut strings),
        rows: named.map(|(row, name)| line(row, name, factor, &mut strings)).collect(),
        rows_left_out: comparison.rows.len().saturating_sub(ROWS),
        phases: comparison.phases.iter().map(|row| line(row, &row.key.name, phase_factor, &mut strings)).collect(),
        phase_unit,
        kinds: columns::kinds(),
        pair,
        unit,
        strings: strings.into_texts(),
    };
    Ok(document::page_with(&document::COMPARISON, &figures, &[("before", before.as_str())]))
}

/// `None` of a baseline, which has no call paths.
fn profile(side: &Side, filter: &Filter, app: Option<&App>) -> Result<Option<Profile>, DataSetError> {
    side.store.as_ref().map(|store| Profile::of_store(store, filter, app)).transpose()
}

fn pair(
    [a, b]: [Profile; 2],
    total: &Change,
    measure: Measure,
    (unit, factor): (&str, f64),
    strings: &mut Strings,
) -> Option<Pair> {
    let mut branches = Branches::new(Shape::default(), measure);
    branches.add(&b);
    branches.add_base(&a);
    let tree = branches.tree();
    let before = tree.nodes.first().map_or(0, |root| root.base_total);
    let now = tree.total().of(measure);
    let factors = [per_amount(total.a * factor, before), per_amount(total.b * factor, now)];
    (before > 0 || now > 0).then(|| Pair::of(&tree, NODES, factors, unit.to_owned(), strings))
}

/// What one microjoule, byte or event is of a figure.
#[allow(clippy::cast_precision_loss, reason = "for a picture")]
fn per_amount(figure: f64, amount: u64) -> f64 {
    if amount > 0 && figure.is_finite() { figure / amount as f64 } else { 0.0 }
}

fn line(row: &Compared, name: &TargetText, factor: f64, strings: &mut Strings) -> Line {
    let Compared { key, change, .. } = row;
    Line {
        name: strings.place(name.raw()),
        detail: strings.maybe(key.module.as_ref().map(TargetText::raw)),
        a: change.a * factor,
        b: change.b * factor,
        change: change.difference() * factor,
        percent: change.ratio().map(|ratio| ratio * 100.0),
        interval: change.relative.map(|(low, high)| (low * 100.0, high * 100.0)),
        range: percents(change.relative),
        verdict: change.verdict.name(),
        is_above: row.exceeds,
        samples: row.a.samples.saturating_add(row.b.samples),
    }
}

fn short(name: &TargetText) -> String {
    cut(&name.to_string(), NAME_COLUMNS, Keep::Name)
}

fn sentence(verdict: Verdict, margin: f64) -> String {
    match verdict {
        Verdict::More => "B needs more than A".to_owned(),
        Verdict::Less => "B needs less than A".to_owned(),
        Verdict::NoChange => format!("B needs as much as A, within {:.3} %", margin * 100.0).replace(".000", ""),
        Verdict::NotCertain => "It is not certain that anything changed".to_owned(),
        Verdict::NotEnoughRuns => "There are not enough runs to tell".to_owned(),
        Verdict::NotEnoughSessions => "There are not enough sessions to tell".to_owned(),
    }
}

fn metric(choices: &Choices) -> String {
    let view = if choices.view == View::Total { ", each row with what it calls" } else { "" };
    format!("{}{view}", choices.figure())
}
