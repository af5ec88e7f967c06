//! Finds runs that differ from the others of their variant.
//!
//! The measure is the modified z-score, `0.6745 · (x − median) / MAD`, where MAD is the median of the
//! distances to the median, and the threshold is 3.5 (Iglewicz and Hoaglin, *How to Detect and Handle
//! Outliers*, 1993). Mean and standard deviation would not do: an outlier moves both and hides
//! itself. Of few runs the MAD is too uncertain, so there is no verdict with fewer than [`LEAST_RUNS`].
//!
//! An outlier is pointed at and stays in all figures. To leave out runs because they are unusual makes
//! intervals too narrow.

use serde::Serialize;

use super::{Figure, Replicate, stats::median};

/// Fewer runs do not show what is usual.
pub const LEAST_RUNS: usize = 10;

/// Of the modified z-score.
pub const THRESHOLD: f64 = 3.5;

/// The MAD of a normal distribution is this part of its standard deviation.
const MAD_OF_NORMAL: f64 = 0.6745;

/// The mean distance to the median is this part of it, √(2/π).
const MEAN_OF_NORMAL: f64 = 0.797_885;

/// A run that differs from the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Outlier {
    /// [`Replicate::order`] of the run.
    pub order: u32,
    pub figure: Figure,
    pub value: f64,
    /// Of the variant's runs.
    pub median: f64,
    /// Modified z-score: above 0 if the run needed more.
    pub score: f64,
}

/// Outliers of a variant's runs, in their order.
pub fn of(runs: &[Replicate], figure: Figure) -> Vec<Outlier> {
    let Some(values) = figure.of_all(runs).filter(|values| values.len() >= LEAST_RUNS) else { return Vec::new() };
    let median_of_all = median(&values);
    let distances: Vec<f64> = values.iter().map(|value| (value - median_of_all).abs()).collect();
    let spread = spread(&distances);
    let mut found: Vec<Outlier> = runs
        .iter()
        .zip(values)
        .map(|(run, value)| {
            let score = if spread > 0.0 { (value - median_of_all) / spread } else { 0.0 };
            Outlier { order: run.order, figure, value, median: median_of_all, score }
        })
        .filter(|run| run.score.abs() > THRESHOLD)
        .collect();
    found.sort_by_key(|run| run.order);
    found
}

/// The standard deviation that a normal distribution with these distances to its median has. Where more
/// than half of the runs are equal, the MAD is 0 and the mean distance takes its place.
#[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
fn spread(distances: &[f64]) -> f64 {
    let mad = median(distances);
    if mad > 0.0 {
        return mad / MAD_OF_NORMAL;
    }
    distances.iter().sum::<f64>() / distances.len().max(1) as f64 / MEAN_OF_NORMAL
}
