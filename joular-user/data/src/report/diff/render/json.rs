//! Writes a comparison as one JSON object: both sides, warnings and notices, the total, rows.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::{
    model::{target_text::TargetText, units::MicroJoules},
    report::{
        diff::{Choices, Compared, Comparison, Gate, Measure, Side, Verdict, sessions::Sessions},
        profile::Skipped,
    },
    text::harmless_json,
};

#[derive(Serialize)]
struct Whole<'a> {
    measure: &'static str,
    unit: String,
    by: &'static str,
    /// `sessions`, `runs`, `windows`, or `counts`: times in which requests were counted.
    intervals_from: &'static str,
    intervals_leave_out_sessions: bool,
    warnings: &'a [String],
    notices: &'a [String],
    are_comparable: bool,
    a: OneSide,
    b: OneSide,
    total: Line<'a>,
    /// In `phase_unit`.
    phases: Vec<Line<'a>>,
    phase_unit: String,
    /// Whether B certainly needs more than `--fail-above` allows; `null` if there is no such gate, or nothing can be said.
    is_above: Option<bool>,
    rows: Vec<Line<'a>>,
    /// Runs that cannot be read, of both.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    skipped: &'a [Skipped],
}

#[derive(Serialize)]
struct OneSide {
    data: String,
    /// In the unit of the measure without a prefix; of energy, microjoules.
    amount: u64,
    /// `null`: another measure is compared, here and in `inferred_uj`.
    energy_uj: Option<MicroJoules>,
    inferred_uj: Option<MicroJoules>,
    label: Option<&'static str>,
    ambiguous_readings: u64,
    sources: Vec<String>,
    hosts: Vec<TargetText>,
    runs: usize,
    /// That are told apart: a data set counts as one.
    sessions: usize,
    windows: usize,
    duration_ns: u64,
    cpu_ns: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a TargetText,
    signature: Option<&'a TargetText>,
    module: Option<&'a TargetText>,
    /// As the amounts of the sides.
    a_amount: u64,
    b_amount: u64,
    /// `null`: another measure is compared, here and in what is inferred.
    a_uj: Option<MicroJoules>,
    b_uj: Option<MicroJoules>,
    a_samples: u64,
    b_samples: u64,
    a_inferred_uj: Option<MicroJoules>,
    b_inferred_uj: Option<MicroJoules>,
    a: f64,
    b: f64,
    change: f64,
    change_interval: Option<(f64, f64)>,
    /// `null`: A had nothing.
    percent: Option<f64>,
    percent_interval: Option<(f64, f64)>,
    p: Option<f64>,
    q: Option<f64>,
    verdict: Verdict,
}

pub fn text(comparison: &Comparison, choices: &Choices) -> io::Result<String> {
    let mut text = serde_json::to_string_pretty(&whole(comparison, choices))?;
    text.push('\n');
    Ok(harmless_json(&text))
}

/// The same as a value, with names as they are.
pub fn value(comparison: &Comparison, choices: &Choices) -> io::Result<Value> {
    Ok(serde_json::to_value(whole(comparison, choices))?)
}

fn whole<'a>(comparison: &'a Comparison, choices: &Choices) -> Whole<'a> {
    let line = |row| line(row, choices.measure);
    Whole {
        measure: choices.measure.name(),
        unit: choices.unit(),
        by: choices.row(),
        intervals_from: match (comparison.sessions, comparison.of_runs) {
            _ if comparison.times.is_some() => "counts",
            (Sessions::Known(_), _) => "sessions",
            (_, true) => "runs",
            (_, false) => "windows",
        },
        intervals_leave_out_sessions: comparison.sessions.are_left_out(),
        warnings: &comparison.warnings,
        notices: &comparison.notices,
        are_comparable: comparison.are_comparable,
        a: side(&comparison.a, choices.measure),
        b: side(&comparison.b, choices.measure),
        total: line(&comparison.total),
        phases: comparison.phases.iter().map(line).collect(),
        phase_unit: choices.unit_of_phases(),
        is_above: match comparison.gate(choices) {
            Gate::Exceeded => Some(true),
            Gate::Passed => choices.fail_above.map(|_| false),
            Gate::NotEnoughRuns | Gate::NotComparable | Gate::NoPhases => None,
        },
        rows: comparison.shown(choices).iter().map(line).collect(),
        skipped: &comparison.a.overview.skipped.skipped,
    }
}

fn side(side: &Side, measure: Measure) -> OneSide {
    let overview = &side.overview;
    let mut hosts: Vec<TargetText> = side.runs.iter().map(|run| run.info.host.clone()).collect();
    hosts.sort();
    hosts.dedup();
    OneSide {
        data: side.data.display().to_string(),
        amount: side.total.energy.0,
        energy_uj: energy(side.total.energy, measure),
        inferred_uj: energy(side.total.inferred, measure),
        label: overview.label.map(|label| label.name()),
        ambiguous_readings: overview.ambiguous,
        sources: overview.sources.clone(),
        hosts,
        runs: side.runs_with_windows(),
        sessions: side.sessions_with_windows(),
        windows: side.window_count,
        duration_ns: overview.duration_ns,
        cpu_ns: side.cpu_ns,
    }
}

/// `None`: it is of another measure.
fn energy(energy: MicroJoules, measure: Measure) -> Option<MicroJoules> {
    (measure == Measure::Energy).then_some(energy)
}

fn line(row: &Compared, measure: Measure) -> Line<'_> {
    let change = &row.change;
    Line {
        name: &row.key.name,
        signature: row.key.signature.as_ref(),
        module: row.key.module.as_ref(),
        a_amount: row.a.energy.0,
        b_amount: row.b.energy.0,
        a_uj: energy(row.a.energy, measure),
        b_uj: energy(row.b.energy, measure),
        a_samples: row.a.samples,
        b_samples: row.b.samples,
        a_inferred_uj: energy(row.a.inferred, measure),
        b_inferred_uj: energy(row.b.inferred, measure),
        a: change.a,
        b: change.b,
        change: change.difference(),
        change_interval: change.interval,
        percent: change.ratio().map(|ratio| ratio * 100.0),
        percent_interval: change.relative.map(|(low, high)| (low * 100.0, high * 100.0)),
        p: change.p,
        q: change.q,
        verdict: change.verdict,
    }
}
