//! Defines what JSON lines say of marks and phases.

use joular_data::{attribution::window_report::WindowReport, events, model::target_text::TargetText, totals::Totals};
use serde::Serialize;

/// Something that a program said.
#[derive(Serialize)]
pub(super) struct Mark<'a> {
    kind: &'static str,
    name: Option<&'a TargetText>,
    attributes: Option<&'a TargetText>,
    pid: Option<u32>,
    said_by: &'static str,
    /// Time from the mark to the window's end.
    before_end_ns: u64,
}

/// All phases of a path over a run.
#[derive(Serialize)]
pub(super) struct Phase<'a> {
    phase: &'a str,
    times: u64,
    windows: u64,
    length_ns: u64,
    energy_uj: u64,
    /// How far off that may be because energy counters lag: half of an interval of 95 %. `null` if it is not
    /// known how often they advance.
    energy_lag_joules: Option<f64>,
    /// Whether `energy_lag_joules` is the least that it may be.
    energy_lag_is_least: bool,
    cpu_ns: u64,
}

pub(super) fn marks(report: &WindowReport) -> Vec<Mark<'_>> {
    let end_ns = report.start.0.saturating_add(report.length_ns);
    report.marks.iter().map(|mark| mark_of(mark, end_ns)).collect()
}

fn mark_of(mark: &events::Mark, end_ns: u64) -> Mark<'_> {
    Mark {
        kind: mark.kind.name(),
        name: mark.name.as_ref(),
        attributes: mark.attributes.as_ref(),
        pid: mark.pid.map(|pid| pid.0),
        said_by: mark.from.name(),
        before_end_ns: end_ns.saturating_sub(mark.at.0),
    }
}

/// In the order of first beginning.
pub(super) fn of_run(totals: &Totals) -> Vec<Phase<'_>> {
    let tallies = totals.phases.tallies().into_iter();
    tallies
        .map(|(phase, tally)| Phase {
            phase,
            times: tally.times,
            windows: tally.windows,
            length_ns: tally.length_ns,
            energy_uj: tally.energy.0,
            energy_lag_joules: tally.lag.map(|lag| lag.joules()),
            energy_lag_is_least: tally.lag.is_some_and(|lag| lag.is_least),
            cpu_ns: tally.cpu_ns,
        })
        .collect()
}
