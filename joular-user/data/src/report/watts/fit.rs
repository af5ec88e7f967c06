//! Finds how many watts each group of threads draws per CPU second, from windows in which they ran for different times.
//!
//! ```text
//! energy of a window = Σ watts of a group · CPU time of the group + error
//! watts of a group   = common watts + deviation,  deviations ~ N(0, τ²)
//! ```
//!
//! Windows that say little leave a group near the common watts, windows that say much move it. How much deviations vary
//! is found where the windows are likeliest (restricted likelihood; Patterson and Thompson, 1971), and the watts by
//! Henderson's mixed model equations (1975). No group draws less than nothing.
//!
//! An interval is at least as wide as that of watts that are fitted without the common ones (least squares), so where
//! windows do not tell groups apart it is wide, however near the common watts they are put. Errors of windows that follow
//! each other are alike, for example as a processor warms up. So intervals come from blocks of windows that are left out
//! in turns (Künsch's jackknife, 1989), where these are wider.

use super::matrix::{dot, inverse, solve};
use crate::report::diff::{student, verdict::LEVEL};

/// Blocks of windows that are left out in turns.
pub(super) const BLOCKS: usize = 20;
/// Windows per group and at all, below which nothing is said.
pub(super) const WINDOWS_PER_GROUP: usize = 4;
pub(super) const LEAST_WINDOWS: usize = 60;
/// Of the squares of energy, what is rounding: no fit leaves less.
const ROUNDING: f64 = 1e-12;
/// Ratios of the error's variance to that of deviations that are tried: quarters of powers of ten, from the first to the
/// last, times the mean square of times.
const RATIOS: (i32, i32, i32) = (-28, 24, 4);

/// A window: energy, and CPU seconds by group.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub joules: f64,
    pub cpu_s: Vec<f64>,
}

/// Watts of a group, with the bounds of the 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watts {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Parallel to the groups.
    pub groups: Vec<Watts>,
    /// What all groups draw on average, as far as windows tell.
    pub common: f64,
    /// How likely chance alone makes groups as different as they look, if all draw the same.
    pub equal: f64,
}

/// Sums of products of a part of the windows.
#[derive(Clone, Debug)]
struct Moments {
    windows: f64,
    energy: f64,
    with_energy: Vec<f64>,
    times: Vec<Vec<f64>>,
}

impl Moments {
    fn none(groups: usize) -> Self {
        Self { windows: 0.0, energy: 0.0, with_energy: vec![0.0; groups], times: vec![vec![0.0; groups]; groups] }
    }

    fn of<'a>(groups: usize, observations: impl Iterator<Item = &'a Observation>) -> Self {
        let mut sums = Self::none(groups);
        for Observation { joules, cpu_s } in observations {
            sums.windows += 1.0;
            sums.energy += joules * joules;
            for (place, time) in cpu_s.iter().enumerate() {
                sums.with_energy[place] += time * joules;
                sums.times[place].iter_mut().zip(cpu_s).for_each(|(sum, other)| *sum += time * other);
            }
        }
        sums
    }

    fn without(&self, other: &Self) -> Self {
        let less = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one - other).collect();
        Self {
            windows: self.windows - other.windows,
            energy: self.energy - other.energy,
            with_energy: less(&self.with_energy, &other.with_energy),
            times: self.times.iter().zip(&other.times).map(|(one, other)| less(one, other)).collect(),
        }
    }

    /// The mixed model equations: the common watts first, then the groups' deviations.
    fn equations(&self, ratio: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
        let sums: Vec<f64> = self.times.iter().map(|row| row.iter().sum()).collect();
        let mut matrix = vec![[&[sums.iter().sum()], &sums[..]].concat()];
        for (place, row) in self.times.iter().enumerate() {
            let mut row = [&[sums[place]], &row[..]].concat();
            row[place + 1] += ratio;
            matrix.push(row);
        }
        (matrix, [&[self.with_energy.iter().sum()], &self.with_energy[..]].concat())
    }

    /// −2 × the logarithm of the restricted likelihood.
    fn deviance(&self, ratio: f64) -> Option<f64> {
        let (matrix, right) = self.equations(ratio);
        let (solution, determinant) = solve(&matrix, &right)?;
        let squares = (self.energy - dot(&solution, &right)).max(ROUNDING * self.energy);
        let variance = squares / (self.windows - 1.0);
        #[allow(clippy::cast_precision_loss, reason = "a number of groups")]
        let groups = self.times.len() as f64;
        Some((self.windows - 1.0) * variance.ln() + determinant - groups * ratio.ln())
    }

    /// The ratio at which the windows are likeliest.
    fn likeliest(&self) -> Option<f64> {
        #[allow(clippy::cast_precision_loss, reason = "a number of groups")]
        let scale = (0..self.times.len()).map(|place| self.times[place][place]).sum::<f64>() / self.times.len() as f64;
        let (first, last, per_ten) = RATIOS;
        let tried = (first..=last).map(|step| scale * 10_f64.powf(f64::from(step) / f64::from(per_ten)));
        let known = tried.filter_map(|ratio| Some((self.deviance(ratio)?, ratio)));
        known.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, ratio)| ratio)
    }

    /// Common watts, and those of groups, none of them negative.
    fn watts(&self, ratio: f64) -> Option<(f64, Vec<f64>)> {
        let (matrix, right) = self.equations(ratio);
        let (solution, _) = solve(&matrix, &right)?;
        let (common, deviations) = solution.split_first()?;
        let mut watts: Vec<f64> = deviations.iter().map(|deviation| (common + deviation).max(0.0)).collect();
        if deviations.iter().all(|deviation| common + deviation >= 0.0) {
            return Some((*common, watts));
        }
        // Each in turn takes its best value beside the others: it converges, because the sum of squares is convex.
        for _ in 0..1_000 {
            let mut moved = 0.0_f64;
            for place in 0..watts.len() {
                let row = &self.times[place];
                let others = dot(row, &watts) - row[place] * watts[place];
                let best = (self.with_energy[place] + ratio * common - others) / (row[place] + ratio);
                moved = moved.max((best.max(0.0) - watts[place]).abs());
                watts[place] = best.max(0.0);
            }
            if moved <= 1e-9 * common.abs() {
                break;
            }
        }
        Some((*common, watts))
    }

    /// Each group's watts are fitted without the common ones: the sum of squares that is left, and variances. Where times
    /// depend on each other these are huge.
    #[allow(clippy::cast_precision_loss, reason = "a number of groups")]
    fn least_squares(&self) -> Option<(f64, Vec<f64>)> {
        let mut times = self.times.clone();
        (0..times.len()).for_each(|place| times[place][place] *= 1.0 + 1e-9);
        let (free, _) = solve(&times, &self.with_energy)?;
        let squares = (self.energy - dot(&free, &self.with_energy)).max(ROUNDING * self.energy);
        let variance = squares / (self.windows - times.len() as f64);
        Some((squares, inverse(&times)?.iter().enumerate().map(|(place, row)| variance * row[place]).collect()))
    }

    /// The sum of squares that is left when all groups have the same watts.
    fn squares_if_equal(&self) -> f64 {
        let all: f64 = self.times.iter().flatten().sum();
        self.energy - self.with_energy.iter().sum::<f64>().powi(2) / all
    }
}

/// Fits windows in the order of time; `None` if they are too few, or times depend on each other.
pub fn fit(observations: &[Observation]) -> Option<Fit> {
    let groups = observations.first()?.cpu_s.len();
    if groups == 0 || observations.len() < LEAST_WINDOWS.max(WINDOWS_PER_GROUP * groups) {
        return None;
    }
    let length = observations.len().div_ceil(BLOCKS);
    let blocks: Vec<Moments> = observations.chunks(length).map(|block| Moments::of(groups, block.iter())).collect();
    let all = Moments::of(groups, observations.iter());
    let ratio = all.likeliest()?;
    let (common, values) = all.watts(ratio)?;
    let (squares, spread) = all.least_squares()?;
    let left_out: Vec<Vec<f64>> = blocks.iter().filter_map(|block| Some(all.without(block).watts(ratio)?.1)).collect();
    #[allow(clippy::cast_precision_loss, reason = "a number of blocks")]
    let count = left_out.len() as f64;
    let t = student::quantile(LEVEL, count - 1.0);
    let watts = |(place, value): (usize, &f64)| {
        let mean = left_out.iter().map(|values| values[place]).sum::<f64>() / count;
        let squares: f64 = left_out.iter().map(|values| (values[place] - mean).powi(2)).sum();
        let by_blocks = squares * (count - 1.0) / count;
        let error = t * by_blocks.max(spread[place]).sqrt();
        Watts { value: *value, low: (value - error).max(0.0), high: value + error }
    };
    let groups = values.iter().enumerate().map(watts).collect();
    Some(Fit { groups, common, equal: equality(&all, squares, observations, &values) })
}

/// The F test of equal watts, which leave `free` of the squares where each group has its own. Errors of neighbouring windows
/// that are alike count for fewer.
fn equality(all: &Moments, free: f64, observations: &[Observation], watts: &[f64]) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a number of groups")]
    let groups = watts.len() as f64;
    let errors: Vec<f64> = observations.iter().map(|of| of.joules - dot(&of.cpu_s, watts)).collect();
    let neighbours: f64 = errors.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let alike = (neighbours / dot(&errors, &errors).max(f64::MIN_POSITIVE)).clamp(0.0, 0.95);
    let freedom = (all.windows - groups) * (1.0 - alike) / (1.0 + alike);
    let more = (all.squares_if_equal() - free).max(0.0);
    student::beyond_f(more / free * freedom / (groups - 1.0), groups - 1.0, freedom)
}

/// Each group's part of all energy: a window's is divided by CPU time, or by CPU time and watts.
pub(super) fn shares(observations: &[Observation], watts: Option<&[f64]>) -> Vec<f64> {
    let mut sums = vec![0.0; observations.first().map_or(0, |first| first.cpu_s.len())];
    for Observation { joules, cpu_s } in observations {
        let weigh = |(place, time): (usize, &f64)| time * watts.map_or(1.0, |watts| watts[place]);
        let weights: Vec<f64> = cpu_s.iter().enumerate().map(weigh).collect();
        let all: f64 = weights.iter().sum();
        if all > 0.0 {
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += joules * weight / all);
        }
    }
    let all: f64 = sums.iter().sum();
    sums.iter().map(|sum| sum / all).collect()
}
