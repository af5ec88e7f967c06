//! Sums up the runs of each value: their mean, and how much they vary.
//!
//! Classes are fitted to the means, one for each value, so that what all runs of a value share counts as one deviation and
//! not as many. What runs of one value differ in is noise whatever the class is ("pure error"), so it says how far a
//! class may be off by chance.

use super::Point;

/// Energies are whole microjoules, so each is off by up to a half: a uniform error has the variance 1/12.
const ROUNDING: f64 = 1e-12 / 12.0;

/// Where less than this part of a sample is expected, one that comes all the same must not decide.
pub(super) const LEAST_OF_GRAIN: f64 = 0.5;

/// Bounds of ρ.
pub(super) const NOISE: (f64, f64) = (1e-7, 1e3);

/// More than Newton's steps take.
const STEPS: usize = 50;

/// Fewer degrees of freedom do not say how much runs vary.
const LEAST_FREEDOM: usize = 4;

/// An energy, of a run or the mean of those of a value, and its variance but for what a class is off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Energy {
    pub(super) value: f64,
    pub(super) joules: f64,
    /// The energy that a sample stands for, J; of a mean, that divided by its runs. 0 if the energy is exact.
    pub(super) grain: f64,
    /// Square of what runs vary by, as a part of the energy; of a mean, that divided by its runs.
    pub(super) varies: f64,
}

impl Energy {
    /// The variance around a model, which is off by a part `noise` besides. What sampling leaves open is in proportion to
    /// the energy that there is, so the model's counts. By the energy that was found, points that came out low by chance
    /// would weigh more.
    pub(super) fn variance(&self, model: f64, noise: f64) -> f64 {
        self.grain * model.max(LEAST_OF_GRAIN * self.grain) + ROUNDING + (self.varies + noise.powi(2)) * model.powi(2)
    }
}

/// Runs of several values.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Of each value, in their order.
    pub(super) means: Vec<Energy>,
    pub(super) each: Vec<Energy>,
    /// Runs less values; `None` if these are too few to say how much runs vary.
    pub(super) freedom: Option<f64>,
}

impl Runs {
    /// Takes points whose distinct values these are.
    #[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
    pub(super) fn of(points: &[Point], values: &[f64]) -> Self {
        let (mut means, mut each, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for value in values {
            let there: Vec<&Point> = points.iter().filter(|point| point.value == *value).collect();
            let count = there.len().max(1) as f64;
            let mean = there.iter().map(|point| point.joules).sum::<f64>() / count;
            // A variance is a sample's energy times the energy that was found, or the square of the former if none was.
            let grain = |variance: f64| if variance > 0.0 { variance / mean.max(variance.sqrt()) } else { 0.0 };
            let energy = |joules, grain| Energy { value: *value, joules, grain, varies: 0.0 };
            each.extend(there.iter().map(|point| energy(point.joules, grain(point.variance))));
            let of_all = there.iter().map(|point| grain(point.variance)).sum::<f64>() / count;
            means.push(energy(mean, of_all / count));
            counts.push(count);
        }
        let replicates = points.len().saturating_sub(values.len());
        let freedom = (replicates >= LEAST_FREEDOM).then_some(replicates as f64);
        if let Some(freedom) = freedom {
            let around: Vec<f64> = each.iter().filter_map(|run| mean_at(&means, run.value)).collect();
            let varies = noise_of(&each, &around, freedom).powi(2);
            means.iter_mut().zip(counts).for_each(|(mean, count)| mean.varies = varies / count);
        }
        Self { means, each, freedom }
    }
}

fn mean_at(means: &[Energy], value: f64) -> Option<f64> {
    means.iter().find(|mean| mean.value == value).map(|mean| mean.joules)
}

/// ρ at which the squares of what is left, each as a part of its variance, have this sum. With as many as there are
/// energies, it is about the likeliest.
///
/// One divided by the sum is concave in `ρ²`, so Newton's steps from below do not go beyond. Without other variances it is a
/// straight line, and one step is enough.
pub(super) fn noise_of(energies: &[Energy], model: &[f64], sum: f64) -> f64 {
    let (least, most) = (NOISE.0.powi(2), NOISE.1.powi(2));
    if sum <= 0.0 {
        return NOISE.1;
    }
    let mut square = least;
    for _ in 0..STEPS {
        let (mut found, mut slope) = (0.0, 0.0);
        for (energy, model) in energies.iter().zip(model) {
            let variance = energy.variance(*model, square.sqrt());
            let part = (energy.joules - model).powi(2) / variance;
            found += part;
            slope += part * model.powi(2) / variance;
        }
        let step = found * (found / sum - 1.0) / slope;
        // Nothing is left to explain, or no noise in proportion to the energy explains it.
        if step.is_nan() || step <= 1e-9 * square {
            break;
        }
        square = (square + step).min(most);
    }
    square.sqrt()
}

/// Sum of the squares of what is left, each as a part of its variance.
pub(super) fn squares(energies: &[Energy], model: &[f64], noise: f64) -> f64 {
    let each = energies.iter().zip(model);
    each.map(|(energy, model)| (energy.joules - model).powi(2) / energy.variance(*model, noise)).sum()
}
