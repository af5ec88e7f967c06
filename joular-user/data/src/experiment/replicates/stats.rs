//! Computes mean, spread and interval of a figure over runs.

use serde::Serialize;

use crate::report::diff::{estimate::Estimate, student, verdict::LEVEL};

/// A figure over the runs of a variant, in the figure's unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stats {
    /// How many runs there are.
    pub n: usize,
    pub mean: f64,
    /// Of single runs, with n − 1; 0 of one run.
    pub stddev: f64,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// 95 % interval of the mean (Student); `None` with fewer than 2 runs.
    pub interval: Option<(f64, f64)>,
}

#[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
impl Stats {
    /// Of finite values, one a run; all 0 if there is none.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let mut stats = Self {
            n: values.len(),
            mean,
            stddev: (squares / (count - 1.0).max(1.0)).sqrt(),
            median: median(values),
            min: values.iter().copied().reduce(f64::min).unwrap_or_default(),
            max: values.iter().copied().reduce(f64::max).unwrap_or_default(),
            interval: None,
        };
        let estimate = stats.estimate();
        stats.interval = estimate.variance.map(|variance| {
            let error = student::quantile(LEVEL, estimate.freedom) * variance.sqrt();
            (mean - error, mean + error)
        });
        stats
    }

    /// The mean with its variance, `None` with fewer than 2 runs. Those of
    /// [`crate::report::diff::estimate::Replicates::of_runs`] are the same, from 3 runs on.
    pub fn estimate(&self) -> Estimate {
        let freedom = self.n.saturating_sub(1) as f64;
        let variance = (self.n > 1).then(|| self.stddev.powi(2) / self.n as f64);
        Estimate::new(self.mean, variance, freedom)
    }
}

/// The value in the middle, or halfway between the two there; 0 of nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |place: usize| sorted.get(place).copied().unwrap_or_default();
    f64::midpoint(at(sorted.len().saturating_sub(1) / 2), at(sorted.len() / 2))
}
