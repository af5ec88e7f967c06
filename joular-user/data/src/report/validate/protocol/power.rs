//! Averages what each step draws, by round.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Mean, Span, Step, fit::Fit};

/// The power of a span inside a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) step: Step,
    /// From 0.
    pub(super) round: usize,
    /// Windows that a mark cuts short must count as little as they are long.
    us: f64,
    /// By joular-bpf, and by the meter if it knows it; W.
    recorded: f64,
    meter: Option<f64>,
}

impl Measured {
    pub(super) fn of(step: Step, span: &Span, meter: Option<f64>) -> Self {
        Self { step, round: span.visit, us: span.us(), recorded: span.watts(), meter }
    }
}

/// Who measures power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Instrument {
    Domains,
    Meter,
}

impl Instrument {
    pub(super) const ALL: [Self; 2] = [Self::Domains, Self::Meter];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Domains => "domains",
            Self::Meter => "meter",
        }
    }

    const fn watts(self, measured: &Measured) -> Option<f64> {
        match self {
            Self::Domains => Some(measured.recorded),
            Self::Meter => measured.meter,
        }
    }
}

/// Mean power by step and round, W.
#[derive(Debug)]
pub(super) struct Means(BTreeMap<(Step, usize), f64>);

impl Means {
    /// Of what an instrument says, or of any other figure.
    pub(super) fn of(measured: &[Measured], figure: impl Fn(&Measured) -> Option<f64>) -> Self {
        let mut sums: BTreeMap<(Step, usize), (f64, f64)> = BTreeMap::new();
        for one in measured {
            if let Some(figure) = figure(one) {
                let (sum, us) = sums.entry((one.step, one.round)).or_default();
                (*sum, *us) = (*sum + figure * one.us, *us + one.us);
            }
        }
        Self(sums.into_iter().map(|(at, (sum, us))| (at, sum / us)).collect())
    }

    pub(super) fn by(measured: &[Measured], instrument: Instrument) -> Self {
        Self::of(measured, |one| instrument.watts(one))
    }

    pub(super) fn at(&self, step: Step, round: usize) -> Option<f64> {
        self.0.get(&(step, round)).copied()
    }

    fn mean(&self, step: Step) -> Option<Mean> {
        let rounds: Vec<f64> = self.0.range((step, 0)..=(step, usize::MAX)).map(|(_, watts)| *watts).collect();
        Mean::of(&rounds)
    }
}

/// Rounds of which something was measured.
pub(super) fn rounds(measured: &[Measured]) -> usize {
    measured.iter().map(|one| one.round + 1).max().unwrap_or(0)
}

/// Steps of rounds of which nothing was measured: means leave them out.
pub(super) fn missing(measured: &[Measured]) -> usize {
    let found: BTreeSet<(Step, usize)> = measured.iter().map(|one| (one.step, one.round)).collect();
    (Step::all().len() * rounds(measured)).saturating_sub(found.len())
}

/// What a step draws, W: means of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct StepPower {
    pub(super) step: Step,
    #[serde(rename = "recorded_w")]
    pub(super) recorded: Mean,
    #[serde(rename = "meter_w")]
    pub(super) meter: Option<Mean>,
    /// By how much the meter shows more than one line for all steps.
    #[serde(rename = "beyond_line_w")]
    pub(super) beyond_line: Option<Mean>,
}

pub(super) fn of_steps(measured: &[Measured], fit: Option<&Fit>) -> Vec<StepPower> {
    let [recorded, meter] = Instrument::ALL.map(|instrument| Means::by(measured, instrument));
    let beyond = Means::of(measured, |one| {
        let line = fit.map(|fit| fit.offset.value + fit.gain.value * one.recorded)?;
        Some(one.meter? - line)
    });
    let power = |step| {
        Some(StepPower {
            step,
            recorded: recorded.mean(step)?,
            meter: meter.mean(step),
            beyond_line: beyond.mean(step),
        })
    };
    Step::all().into_iter().filter_map(power).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_cut_short_counts_as_little_as_it_is_long() {
        let span = |length_us: i64, energy_uj| Span {
            start_us: 0,
            end_us: length_us,
            energy_uj,
            windows: 1,
            phase: Some(1),
            visit: 0,
            run: 0,
            busy_ns: 0,
            cpu_ns: 0,
        };
        // 10 W for a second; and a counter that advanced a little later.
        let measured = [span(1_000_000, 10_000_000), span(4_000, 400_000)];
        let measured = measured.map(|span| Measured::of(Step::Idle, &span, Some(2.0)));
        let [recorded, meter] = Instrument::ALL.map(|by| Means::by(&measured, by).at(Step::Idle, 0).unwrap());
        assert!((recorded - 10.4 / 1.004).abs() < 1e-9 && (meter - 2.0).abs() < 1e-12, "{recorded} {meter}");
        // Of 24 steps.
        assert_eq!(missing(&measured), 23);
        assert_eq!((rounds(&measured), Means::by(&measured, Instrument::Meter).mean(Step::Idle)), (1, None));
    }
}
