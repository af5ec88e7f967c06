//! Compares a data set with a wattmeter's log, for `joular-bpf validate`.
//!
//! [`recorded`] has the power of the data set's domains in spans of windows, [`meter`] reads the log
//! and [`curve`] averages it over any span. [`align`] finds how far the meter's clock is ahead, and
//! [`fit`] how the meter's watts follow from joular-bpf's, with honest intervals, and [`phases`] whether one gain holds for all
//! loads. docs/trust.md explains the result to users. [`board`] fits the model of a board to the same spans. [`protocol`] says what a recording of the validation protocol shows.

mod align;
mod board;
mod curve;
mod fit;
pub mod meter;
mod phases;
pub mod protocol;
mod recorded;
mod render;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod verdict;

use std::{path::Path, time::Duration};

use thiserror::Error;

use self::{
    align::Alignment,
    curve::Curve,
    fit::{Fit, LEAST_SPANS, Point},
    meter::{MeterError, MeterLog},
    phases::{Gains, HeldOut},
    recorded::{Recorded, Span},
};
pub use self::{
    board::{BoardError, BoardFit},
    fit::Interval,
};
use super::profile::Filter;
use crate::{
    dataset::error::DataSetError,
    model::{domain::Label, target_text::TargetText},
    text::escape,
};

/// A span has at least so many of the meter's periods, so that what happens between two readings
/// weighs little.
const PERIODS_PER_SPAN: i64 = 2;

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which runs and windows; only hosts, runs and times count.
    pub filter: Filter,
    /// Domains to sum; none: all.
    pub domains: Vec<String>,
    /// How far the clocks may be apart.
    pub most_shift: Duration,
    /// How far the meter's times are ahead of UTC where they do not say their zone, in seconds.
    pub utc_offset_s: i64,
    /// The meter's limit of error, percent of its reading, as its maker states it.
    pub meter_class: Option<f64>,
    /// Whether the meter's power is also fitted to the use of CPUs, as the model of a board.
    pub fits_board: bool,
    pub is_json: bool,
}

/// Why there is nothing to compare.
#[derive(Debug, Error)]
pub enum ValidateError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error(transparent)]
    Meter(#[from] MeterError),
    #[error("the data set has several hosts ({0}), and a meter measures one: name it with --host")]
    Hosts(String),
    #[error("no window of the selection has energy of these domains{}", if known.is_empty() { String::new() } else { format!(": there are {known}") })]
    NoDomain { known: String },
    #[error(
        "only {found} spans of windows have readings of the meter, {LEAST_SPANS} are needed: the run is from {run}, the log \
         from {log}: check --utc-offset, or log for the whole of a longer run"
    )]
    TooFew { found: usize, run: String, log: String },
    #[error("the power of the recorded domains does not vary: validate needs a run with changing load")]
    Constant,
    #[error("fitting the model of a board: {0}")]
    Board(#[from] BoardError),
    #[error("the data set has no step of the protocol: record it with validate --protocol")]
    NoProtocol,
    #[error("only {found} rounds of the protocol are there, {} are needed", protocol::MIN_ROUNDS)]
    FewRounds { found: usize },
}

/// What a comparison found.
#[derive(Clone, Debug)]
pub struct Validation {
    host: TargetText,
    runs: usize,
    /// Domain and source, each once.
    domains: Vec<(String, String)>,
    left_out: Vec<String>,
    label: Option<Label>,
    readings: usize,
    blank: u64,
    period_us: i64,
    is_zone_assumed: bool,
    windows: u64,
    windows_used: u64,
    spans: usize,
    /// Usual length of a span, µs.
    span_us: i64,
    alignment: Alignment,
    most_shift: Duration,
    meter_class: Option<f64>,
    fit: Fit,
    /// Of the phases in `gains`, with the first for what is in none.
    phases: Vec<TargetText>,
    /// `None`: there are not two phases whose gains could be told.
    gains: Option<Gains>,
    held_out: Option<HeldOut>,
    /// If it was asked for.
    pub board: Option<BoardFit>,
}

/// Compares the data set at `root` with a meter's log.
///
/// # Errors
/// If either cannot be read, or they have too little in common.
pub fn run(root: &Path, reference: &Path, request: &Request) -> Result<Validation, ValidateError> {
    let log = MeterLog::open(reference, request.utc_offset_s)?;
    let runs = recorded::allowed(root, &request.filter)?;
    let recorded = Recorded::read(&runs, &request.filter, &request.domains)?;
    let found = compare(&recorded, &log, request.most_shift)?;
    let board = request.fits_board.then(|| {
        let spans = recorded.spans(log.period_us().saturating_mul(PERIODS_PER_SPAN));
        board::fit(&spans, &Curve::of(&log), found.alignment.shift_us)
    });
    Ok(Validation { meter_class: request.meter_class, board: board.transpose()?, ..found })
}

fn compare(recorded: &Recorded, log: &MeterLog, most_shift: Duration) -> Result<Validation, ValidateError> {
    let period_us = log.period_us();
    let spans = recorded.spans(period_us.saturating_mul(PERIODS_PER_SPAN));
    let curve = Curve::of(log);
    let most_us = i64::try_from(most_shift.as_micros()).unwrap_or(i64::MAX);
    let alignment = align::align(&spans, &curve, most_us);
    let points = align::points(&spans, &curve, alignment.shift_us);
    if points.len() < LEAST_SPANS {
        return Err(too_few(points.len(), recorded, &curve));
    }
    let (spans, points): (Vec<Span>, Vec<Point>) = points.into_iter().unzip();
    let fit = fit::fit(&points).ok_or(ValidateError::Constant)?;
    let of_spans: Vec<Option<usize>> = spans.iter().map(|span| span.phase).collect();
    let runs: Vec<usize> = spans.iter().map(|span| span.run).collect();
    let mut lengths: Vec<i64> = spans.iter().map(|span| span.end_us - span.start_us).collect();
    lengths.sort_unstable();
    Ok(Validation {
        host: recorded.hosts.iter().next().cloned().unwrap_or_default(),
        runs: recorded.runs(),
        domains: recorded.domains.iter().cloned().collect(),
        left_out: recorded.left_out.iter().cloned().collect(),
        label: recorded.label,
        readings: log.readings.len(),
        blank: log.blank,
        period_us,
        is_zone_assumed: log.is_zone_assumed,
        windows: recorded.windows(),
        windows_used: spans.iter().map(|span| span.windows).sum(),
        spans: spans.len(),
        span_us: lengths.get(lengths.len() / 2).copied().unwrap_or(0),
        alignment,
        most_shift,
        meter_class: None,
        fit,
        phases: recorded.phases.clone(),
        gains: phases::gains(&points, &of_spans),
        held_out: phases::held_out(&points, &runs),
        board: None,
    })
}

fn too_few(found: usize, recorded: &Recorded, curve: &Curve) -> ValidateError {
    let run = recorded.span_us().map(times).unwrap_or_default();
    let log = curve.span_us().map(times).unwrap_or_default();
    ValidateError::TooFew { found, run, log }
}

/// From when to when, for people.
fn times((first_us, last_us): (i64, i64)) -> String {
    let time = |at_us| jiff::Timestamp::from_microsecond(at_us).map_or_else(|_| at_us.to_string(), |at| at.to_string());
    format!("{} to {}", escape(&time(first_us)), escape(&time(last_us)))
}
