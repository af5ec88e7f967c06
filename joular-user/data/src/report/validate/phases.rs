//! Fits a gain for each phase of a run, tests whether the gains are equal, and says how far a fit is off where it was not
//! fitted.
//!
//! One gain for a mix of loads is no load's: a load of memory may raise the meter by more for each watt of joular-bpf than one of
//! arithmetic does. So `meter = offset + gain of the phase × here + b · (before − here) + c · (after − here)` is fitted, with one
//! offset, because that is there at any load. Spans count that have their neighbours in the same phase.
//!
//! Gains are unequal if one differs from the mean of the others by more than chance explains. There are as many such
//! differences as phases, and their chances are multiplied by that (Bonferroni).

use super::fit::{self, Interval, LEAST_SPANS, Point};
use crate::report::diff::student;

/// Fewer spans of a phase do not show its gain.
const LEAST_OF_PHASE: usize = 12;

/// Phases that are compared; further ones are left out, those with fewest spans first.
const MOST_PHASES: usize = 12;

/// Parts of a single run, of which each is predicted by a fit of the others.
const PARTS: usize = 5;

/// A phase's gain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseGain {
    pub phase: usize,
    pub spans: usize,
    pub gain: Interval,
}

/// Gains of phases, most spans first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gains {
    pub phases: Vec<PhaseGain>,
    /// How likely chance alone makes them as different as they are found.
    pub chance: f64,
    /// Phases that are not compared: they have too few spans, or there are too many phases.
    pub left_out: usize,
}

impl Gains {
    /// Whether one gain for all is wrong.
    pub fn are_unequal(&self) -> bool {
        self.chance < fit::OUTSIDE
    }
}

/// The gains of at least two phases; `None` if fewer can be told. `phases` has each point's, `None` for a point in none, or
/// next to another.
pub fn gains(points: &[Point], phases: &[Option<usize>]) -> Option<Gains> {
    let spans_of = |phase: usize| phases.iter().filter(|of| **of == Some(phase)).count();
    let mut known: Vec<usize> = phases.iter().flatten().copied().collect();
    known.sort_unstable();
    known.dedup();
    let count = known.len();
    known.retain(|phase| spans_of(*phase) >= LEAST_OF_PHASE);
    known.sort_by_key(|phase| std::cmp::Reverse(spans_of(*phase)));
    known.truncate(MOST_PHASES);
    let left_out = count - known.len();
    let used: Vec<(&Point, usize)> = points
        .iter()
        .zip(phases)
        .filter_map(|(point, phase)| Some((point, known.iter().position(|known| Some(*known) == *phase)?)))
        .collect();
    if known.len() < 2 || used.len() < LEAST_SPANS {
        return None;
    }
    let column =
        |of: &dyn Fn(&Point, usize) -> f64| used.iter().map(|(point, at)| of(point, *at)).collect::<Vec<f64>>();
    let meter = column(&|point, _| point.meter);
    let mut columns = vec![column(&|_, _| 1.0)];
    columns.push(column(&|point, _| point.before - point.here));
    columns.push(column(&|point, _| point.after - point.here));
    let common = columns.len();
    columns.extend((0..known.len()).map(|at| column(&|point, of| if of == at { point.here } else { 0.0 })));
    let all: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let left = fit::rest(&meter, &all);
    let weights: Vec<Vec<f64>> = (common..columns.len()).map(|of| fit::weights_of(&all, of)).collect::<Option<_>>()?;
    let scale = fit::scale(used.len(), columns.len());
    let errors = |weights: &[f64]| weights.iter().zip(&left).map(|(weight, left)| weight * left).collect::<Vec<f64>>();
    let gain = |weights: &Vec<f64>| fit::interval(fit::product(weights, &meter), &errors(weights), scale);
    let chance = (0..known.len()).map(|of| {
        let contrast = contrast(&weights, of);
        let (variance, freedom) = fit::variance_of_sum(&errors(&contrast));
        let difference = fit::product(&contrast, &meter);
        student::two_sided(difference / (variance * scale).sqrt(), freedom)
    });
    let chance = chance.fold(1.0, f64::min) * f64::from(u32::try_from(known.len()).unwrap_or(u32::MAX));
    let phases = known.iter().zip(&weights).map(|(phase, weights)| PhaseGain {
        phase: *phase,
        spans: spans_of(*phase),
        gain: gain(weights),
    });
    Some(Gains { phases: phases.collect(), chance: chance.min(1.0), left_out })
}

/// What gives a phase's gain less the mean of the others'.
fn contrast(weights: &[Vec<f64>], of: usize) -> Vec<f64> {
    let others = f64::from(u32::try_from(weights.len() - 1).unwrap_or(u32::MAX));
    let length = weights.first().map_or(0, Vec::len);
    let at = |place: usize| {
        weights
            .iter()
            .enumerate()
            .map(|(phase, weights)| {
                let weight = weights.get(place).copied().unwrap_or(0.0);
                if phase == of { weight } else { -weight / others }
            })
            .sum()
    };
    (0..length).map(at).collect()
}

/// How far a fit is off where it was not fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct HeldOut {
    /// Whether each run was predicted by the others; else each fifth of a run.
    pub is_of_runs: bool,
    /// Root of the mean square of the errors, W.
    pub rmse_w: f64,
    /// The part of the meter's variation about its mean that was predicted; below 0 if the mean alone predicts better.
    pub predicted: f64,
    /// Mean error in the thirds of spans with least, middle and most power by joular-bpf, W: meter − fit.
    pub by_load_w: [f64; 3],
}

/// Predicts each run by a fit of the others, or each fifth of a single one; `None` where these cannot be fitted. `runs` has each
/// point's.
pub fn held_out(points: &[Point], runs: &[usize]) -> Option<HeldOut> {
    let is_of_runs = runs.iter().any(|run| Some(run) != runs.first());
    let length = points.len().div_ceil(PARTS).max(1);
    let part_of = |at: usize| if is_of_runs { runs.get(at).copied().unwrap_or(0) } else { at / length };
    let mut parts: Vec<usize> = (0..points.len()).map(part_of).collect();
    parts.dedup();
    let mut errors: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for part in parts {
        let of = |is_in: bool| {
            points.iter().enumerate().filter(move |(at, _)| (part_of(*at) == part) == is_in).map(|(_, of)| of)
        };
        let others: Vec<Point> = of(false).copied().collect();
        let line = fit::line(&others)?;
        errors.extend(of(true).map(|point| (point.here, point.meter - line.predict(point))));
    }
    let count = |of: usize| f64::from(u32::try_from(of).unwrap_or(u32::MAX)).max(1.0);
    let squares: f64 = errors.iter().map(|(_, error)| error * error).sum();
    let mean = points.iter().map(|point| point.meter).sum::<f64>() / count(points.len());
    let about_mean: f64 = points.iter().map(|point| (point.meter - mean).powi(2)).sum();
    errors.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let third = |of: usize| {
        let bounds = |of: usize| of * errors.len() / 3;
        let part = errors.get(bounds(of)..bounds(of + 1)).unwrap_or_default();
        part.iter().map(|(_, error)| error).sum::<f64>() / count(part.len())
    };
    Some(HeldOut {
        is_of_runs,
        rmse_w: (squares / count(points.len())).sqrt(),
        predicted: if about_mean > 0.0 { 1.0 - squares / about_mean } else { 0.0 },
        by_load_w: [third(0), third(1), third(2)],
    })
}
