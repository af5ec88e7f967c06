//! Finds whether the machine changed while the experiment ran.
//!
//! Each run's figure is divided by its variant's mean, so that only what runs of one variant differ in is
//! left, as a ratio. Its correlation with the order of the runs, with their temperature and with
//! their frequency, each with its variants' means taken off as well, is tested by Student's t. The degrees of
//! freedom are those of runs less variants less one. Three tests are made, so probabilities are
//! corrected by Holm's method, and what is left has to be below [`LEVEL`]. A warning that comes in one of a
//! hundred sound experiments is one that people go on to read.
//!
//! A drift does not favour a variant when the variants ran in random order. It widens intervals.

use serde::Serialize;

use super::{Figure, Replicate, Variant, ranking::holm};
use crate::report::diff::student;

/// Chance of any warning without a drift.
pub const LEVEL: f64 = 0.01;

/// Fewer degrees of freedom show nothing.
const LEAST_FREEDOM: usize = 3;

/// What runs are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Covariate {
    Order,
    Temperature,
    Frequency,
}

/// A drift that is significant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drift {
    pub with: Covariate,
    /// Of what is left of runs and covariate behind their variants' means.
    pub correlation: f64,
    /// Change of the figure, as a part of its mean, for one run, 1 °C or 1 MHz more.
    pub slope: f64,
    /// The slope, over the whole range that the runs had.
    pub over_range: f64,
    /// Corrected for three tests.
    pub p: f64,
    /// What it is and what to do, for people.
    pub sentence: String,
}

/// Drifts of a figure over all variants' runs, of which only significant ones.
pub fn of(variants: &[Variant], figure: Figure) -> Vec<Drift> {
    let all = [Covariate::Order, Covariate::Temperature, Covariate::Frequency];
    let found = all.map(|with| Association::of(variants, figure, with));
    let corrected = holm(&found.each_ref().map(|found| found.as_ref().map_or(1.0, |found| found.p)));
    let drifts = all.into_iter().zip(found).zip(corrected);
    drifts
        .filter_map(|((with, found), p)| found.filter(|_| p < LEVEL).map(|found| found.drift(with, figure, p)))
        .collect()
}

impl Covariate {
    fn of(self, run: &Replicate) -> Option<f64> {
        let value = match self {
            Self::Order => Some(f64::from(run.order)),
            Self::Temperature => run.temperature_celsius,
            Self::Frequency => run.frequency_mhz,
        };
        value.filter(|value| value.is_finite())
    }
}

struct Association {
    correlation: f64,
    slope: f64,
    range: f64,
    p: f64,
}

#[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
impl Association {
    /// `None` if too few runs have both, or one of them does not vary.
    fn of(variants: &[Variant], figure: Figure, with: Covariate) -> Option<Self> {
        let (mut pairs, mut groups) = (Vec::new(), 0);
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for variant in variants {
            let known = variant.replicates.iter().filter_map(|run| Some((with.of(run)?, figure.of(run)?)));
            let known: Vec<(f64, f64)> = known.collect();
            let count = known.len() as f64;
            let mean = |of: fn(&(f64, f64)) -> f64| known.iter().map(of).sum::<f64>() / count;
            let (middle, level) = (mean(|pair| pair.0), mean(|pair| pair.1));
            if known.len() < 2 || level <= 0.0 {
                continue;
            }
            groups += 1;
            least = known.iter().fold(least, |least, pair| least.min(pair.0));
            most = known.iter().fold(most, |most, pair| most.max(pair.0));
            pairs.extend(known.iter().map(|(x, y)| (x - middle, y / level - 1.0)));
        }
        let freedom = pairs.len().checked_sub(groups + 1).filter(|freedom| *freedom >= LEAST_FREEDOM)? as f64;
        let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
        let (xx, yy, xy) = (sum(|pair| pair.0.powi(2)), sum(|pair| pair.1.powi(2)), sum(|pair| pair.0 * pair.1));
        // What does not vary, but for rounding.
        let largest = least.abs().max(most.abs());
        if xx.sqrt() <= 1e-9 * largest || yy.sqrt() <= 1e-12 {
            return None;
        }
        let correlation = (xy / (xx * yy).sqrt()).clamp(-1.0, 1.0);
        let t = correlation * (freedom / (1.0 - correlation.powi(2))).sqrt();
        Some(Self { correlation, slope: xy / xx, range: most - least, p: student::two_sided(t, freedom) })
    }

    fn drift(self, with: Covariate, figure: Figure, p: f64) -> Drift {
        let over_range = self.slope * self.range;
        let percent = over_range.abs() * 100.0;
        let (more, figure) = (if over_range > 0.0 { "more" } else { "less" }, figure.unit());
        let sentence = match with {
            Covariate::Order => format!(
                "the last run needs {percent:.1} % {more} {figure} than the first: the machine changed meanwhile; \
                 warm up longer, and end what else runs there"
            ),
            Covariate::Temperature => format!(
                "runs at the highest temperature need {percent:.1} % {more} {figure} than at the lowest, {:.0} °C below: \
                 warm up longer, or let the machine cool down between runs",
                self.range
            ),
            Covariate::Frequency => format!(
                "runs at the highest frequency need {percent:.1} % {more} {figure} than at the lowest, {:.0} MHz below: \
                 fix the frequency (governor, turbo) and repeat",
                self.range
            ),
        };
        Drift { with, correlation: self.correlation, slope: self.slope, over_range, p, sentence }
    }
}
