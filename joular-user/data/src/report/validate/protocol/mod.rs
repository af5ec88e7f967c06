//! Says what a recording of the validation protocol shows: `joular-bpf validate --protocol`.
//!
//! A recording has the steps as phases ([`steps`]). Each round has all of them, so every figure is the
//! mean of as many values as there are rounds, with Student's interval. [`power`] compares what each step draws by joular-bpf
//! and by the meter. [`pairs`] compares how the energy of two programs side by side was divided ([`given`]) with what each
//! draws alone. [`render`] writes the report. docs/validation.md explains it to users.

mod given;
mod pairs;
mod power;
mod render;
mod steps;

use std::path::Path;

use serde::Serialize;

pub use self::steps::{PAIRS, Program, Step};
use self::{
    pairs::Pair,
    power::{Measured, StepPower},
};
use super::{
    PERIODS_PER_SPAN, Request, ValidateError,
    align::{self, Alignment},
    curve::Curve,
    fit::{self, Fit, Interval, LEAST_SPANS, OUTSIDE, Point},
    meter::MeterLog,
    phases::{self, Gains, HeldOut},
    recorded::{self, Recorded, Span},
};
use crate::{events::RunInfo, model::domain::Label, report::diff::student};

/// Fewer do not show how rounds vary.
pub const MIN_ROUNDS: usize = 2;

/// What a recording of the protocol shows.
#[derive(Debug)]
pub struct Protocol {
    info: RunInfo,
    domains: Vec<(String, String)>,
    label: Option<Label>,
    rounds: usize,
    /// Steps of rounds of which nothing was measured.
    missing: usize,
    /// Of the first step, s.
    step_s: f64,
    /// Least and greatest, °C.
    celsius: Option<(f64, f64)>,
    steps: Vec<StepPower>,
    pairs: Vec<Pair>,
    by_meter: Option<ByMeter>,
}

/// What a meter adds.
#[derive(Debug)]
struct ByMeter {
    readings: usize,
    period_us: i64,
    /// Percent of its reading, as its maker states it.
    class: Option<f64>,
    alignment: Alignment,
    fit: Fit,
    gains: Option<Gains>,
    held_out: Option<HeldOut>,
}

/// Reads a recording of the protocol, and the meter's log if there is one.
///
/// # Errors
/// If one cannot be read, the recording is of something else, or has too little.
pub fn run(root: &Path, reference: Option<&Path>, request: &Request) -> Result<Protocol, ValidateError> {
    let log = reference.map(|path| MeterLog::open(path, request.utc_offset_s)).transpose()?;
    let runs = recorded::allowed(root, &request.filter)?;
    let recorded = Recorded::read(&runs, &request.filter, &request.domains)?;
    let given = given::read(&runs, &request.filter)?;
    Protocol::of(&recorded, log.as_ref(), &given, request)
}

impl Protocol {
    fn of(
        recorded: &Recorded,
        log: Option<&MeterLog>,
        given: &given::Given,
        request: &Request,
    ) -> Result<Self, ValidateError> {
        let steps: Vec<Option<Step>> = recorded.phases.iter().map(|path| Step::parse(path.raw())).collect();
        let step_of = |span: &Span| steps.get(span.phase?).copied().flatten();
        let info = recorded.infos.first().filter(|_| steps.iter().any(Option::is_some)).cloned();
        let info = info.ok_or(ValidateError::NoProtocol)?;
        let whole = recorded.spans(0);
        let windows: Vec<Measured> =
            whole.iter().filter_map(|span| Some(Measured::of(step_of(span)?, span, None))).collect();
        let (by_meter, measured) = match log {
            None => (None, windows),
            Some(log) => {
                let (found, measured) = by_meter(recorded, log, request, step_of)?;
                (Some(found), measured)
            }
        };
        let rounds = power::rounds(&measured);
        if rounds < MIN_ROUNDS {
            return Err(ValidateError::FewRounds { found: rounds });
        }
        let fit = by_meter.as_ref().map(|by| &by.fit);
        let first = whole.iter().find_map(|span| Some((step_of(span)?, span.phase, span.visit)));
        let length = |of: (Step, Option<usize>, usize)| {
            let inside = whole.iter().filter(|span| (span.phase, span.visit) == (of.1, of.2));
            inside.map(|span| seconds(span.end_us - span.start_us)).sum()
        };
        let temperatures = || recorded.temperatures();
        Ok(Self {
            domains: recorded.domains.iter().cloned().collect(),
            label: recorded.label,
            rounds,
            missing: power::missing(&measured),
            step_s: first.map_or(0.0, length),
            celsius: temperatures().reduce(f64::min).zip(temperatures().reduce(f64::max)),
            steps: power::of_steps(&measured, fit),
            pairs: pairs::all(&measured, &given.shares(recorded, &steps)),
            by_meter,
            info,
        })
    }

    const fn is_simulated(&self) -> bool {
        matches!(self.info.energy_source.as_bytes(), b"simulated")
    }
}

/// What a meter shows: of the whole recording, and of each span inside a step.
fn by_meter(
    recorded: &Recorded,
    log: &MeterLog,
    request: &Request,
    step_of: impl Fn(&Span) -> Option<Step>,
) -> Result<(ByMeter, Vec<Measured>), ValidateError> {
    let spans = recorded.spans(log.period_us().saturating_mul(PERIODS_PER_SPAN));
    let curve = Curve::of(log);
    let most_us = i64::try_from(request.most_shift.as_micros()).unwrap_or(i64::MAX);
    let alignment = align::align(&spans, &curve, most_us);
    let inside = align::points(&spans, &curve, alignment.shift_us);
    let inside: Vec<(Step, Span, Point)> =
        inside.into_iter().filter_map(|(span, point)| Some((step_of(&span)?, span, point))).collect();
    if inside.len() < LEAST_SPANS {
        return Err(super::too_few(inside.len(), recorded, &curve));
    }
    let points: Vec<Point> = inside.iter().map(|(.., point)| *point).collect();
    let programs: Vec<Option<usize>> = inside.iter().map(|(step, ..)| alone(*step).map(|of| of as usize)).collect();
    let rounds: Vec<usize> = inside.iter().map(|(_, span, _)| span.visit).collect();
    let found = ByMeter {
        readings: log.readings.len(),
        period_us: log.period_us(),
        class: request.meter_class,
        alignment,
        fit: fit::fit(&points).ok_or(ValidateError::Constant)?,
        gains: phases::gains(&points, &programs),
        held_out: phases::held_out(&points, &rounds),
    };
    let measured = inside.iter().map(|(step, span, point)| Measured::of(*step, span, Some(point.meter))).collect();
    Ok((found, measured))
}

/// The program that runs in a step, if it is one.
const fn alone(step: Step) -> Option<Program> {
    match step {
        Step::Load(program, _) | Step::Alone(program) => Some(program),
        Step::Idle | Step::Pair(..) => None,
    }
}

#[allow(clippy::cast_precision_loss, reason = "times for people")]
fn seconds(us: i64) -> f64 {
    us as f64 / 1e6
}

/// A figure with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Mean {
    value: f64,
    /// Half of the interval.
    within: f64,
}

impl Mean {
    /// Of one value for each round, which do not depend on each other; `None`: there are fewer than two.
    #[allow(clippy::cast_precision_loss, reason = "a few rounds")]
    fn of(values: &[f64]) -> Option<Self> {
        if values.len() < MIN_ROUNDS {
            return None;
        }
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|one| (one - value).powi(2)).sum::<f64>() / (count - 1.0);
        Some(Self { value, within: student::quantile(OUTSIDE, count - 1.0) * (variance / count).sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_has_students_interval() {
        let mean = Mean::of(&[9.0, 10.0, 11.0]).unwrap();
        // t of two degrees of freedom is 4.303.
        assert!((mean.value - 10.0).abs() < 1e-12 && (mean.within - 4.303 / 3.0_f64.sqrt()).abs() < 1e-3, "{mean:?}");
        assert_eq!((Mean::of(&[]), Mean::of(&[1.0])), (None, None));
        assert_eq!(Mean::of(&[2.0, 2.0]), Some(Mean { value: 2.0, within: 0.0 }));
    }
}
