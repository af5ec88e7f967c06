//! Fits how energy grows with a parameter: constant, log n, n, n log n, n², n³, 2ⁿ, or a power law.
//!
//! **Fit.** Every class is `a + b·f(n)` with `a ≥ 0` and `b ≥ 0`: a start-up cost and what grows. Classes are fitted to the
//! means of values, one for each ([`runs`]). A mean's variance is what sampling left open, which is known and grows with the
//! energy, what runs of one value vary by, and `(ρ · the model's energy)²` with an unknown `ρ`: what runs of a value share,
//! and what the class is off by. Coefficients and `ρ` are found in turns until they stay ([`solve`]).
//!
//! **Choice.** The criterion is Akaike's with the correction for few runs, AICc (Hurvich and Tsai,
//! 1989): how likely the means are, less the number of fitted coefficients. Leaving one value out would be the
//! other way. But of a dozen values the largest decides about the class; leaving it out asks for an
//! extrapolation, and the result depends on that one value. AICc also gives odds: `exp(Δ/2)` to one.
//!
//! **The simpler one.** `constant` is in all other classes, with `b = 0`, and each named class looks like some
//! power law. So a growing class is chosen only if it is better than `constant` by [`CLEARLY`], and the
//! power law only if it is better by that than each named class and no fitting class's exponent lies in its interval.
//!
//! **Lack of fit.** What runs of one value vary by is known whatever the class is. If the means are further from a class than
//! that allows, the class does not fit: an F test (Draper and Smith, *Applied Regression Analysis*, 1998, section 2.1;
//! NIST/SEMATECH e-Handbook of Statistical Methods, 4.4.4.6). If no class fits, an exponent for the upper half of the
//! values says how energy grows there.
//!
//! **How sure.** Classes within [`APART`] of the chosen one cannot be told from it: they are its `alternatives`. For this,
//! every value may be off by what caches, collectors and clock frequencies do ([`ALLOWED`]): a class is not excluded because
//! real machines deviate. `n` and `n log n` are never told apart: a hierarchy of caches costs a logarithm, too. `simulation.rs`
//! counts how often the class is right and the interval of a prediction holds.

mod choose;
mod class;
mod compare;
mod predict;
mod runs;
#[cfg(test)]
mod simulation;
mod solve;
pub mod sweep;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod worlds;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::{
    class::Class,
    compare::{ClassChange, ClassVerdict, Doubt, MATERIAL, compare},
    predict::Prediction,
    sweep::{Curve, Judged, Sweep, SweepError},
};
pub use crate::report::validate::Interval;

/// How much better than a simpler class, in AICc: odds of 7 to 1.
pub const CLEARLY: f64 = 4.0;

/// Classes that differ by less in AICc cannot be told apart: odds of 19 to 1.
pub const APART: f64 = 5.9;

/// What a class may be off by at each value, as a part of the energy, and still not be excluded: ordinary caches,
/// collectors and clock frequencies make as much.
pub const ALLOWED: f64 = 0.1;

/// What a class may be off by at each value and still fit, however little runs vary.
pub const CLOSE: f64 = 0.01;

/// A class does not fit if a fitting one is so far off with this chance only. One of a hundred fitting curves is said to
/// have no class: that costs a verdict, and no false one comes of it.
pub const UNFIT: f64 = 0.01;

/// A class is not certain if a fitting one is so far off with this chance only.
pub const DOUBTFUL: f64 = 0.05;

/// Fewer distinct values have no shape.
pub const LEAST_VALUES: usize = 5;

/// A measured energy at a value of the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The parameter, n: not below 0.
    pub value: f64,
    pub joules: f64,
    /// What sampling leaves open, J²; 0 if the energy is exact.
    pub variance: f64,
}

/// Why points cannot be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum GrowthError {
    #[error("fitting growth: there are {found} distinct values of the parameter: measure at {LEAST_VALUES} or more")]
    TooFewValues { found: usize },
    #[error("fitting growth: {value} is not a value of a parameter: give finite ones that are not below 0")]
    Value { value: f64 },
    #[error(
        "fitting growth: at {value} the energy is {joules} J with the variance {variance} J²: both must be finite and not below 0"
    )]
    Energy { value: f64, joules: f64, variance: f64 },
}

/// A class, fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    pub class: Class,
    /// What is needed whatever the parameter is, J.
    pub constant: Interval,
    /// What grows, at the largest value of the parameter, J. Divided by `f` of that value it is `b`.
    pub grown: Interval,
    /// The power law's `c`.
    pub exponent: Option<Interval>,
    /// ρ: standard deviation of runs around the model, as a part of its energy.
    pub noise: f64,
    /// What values' means are off by, beyond what runs of one value vary by, as a part of the model's energy.
    pub off: f64,
    /// Chance that a class which fits is so far off; `None` without enough repeated runs.
    pub lack_of_fit: Option<f64>,
    /// Part of the weighted variance that the model explains.
    pub r_squared: f64,
    /// Smaller is better.
    pub aicc: f64,
    /// Akaike's criterion if each value may be off by [`ALLOWED`]. The variance is hardly fitted then, so there is no
    /// correction for few points.
    lenient_aic: f64,
    /// Of constant, grown and exponent, for predictions; 0 for what is not fitted.
    covariance: [[f64; 3]; 3],
    /// ρ of a further run, for predictions: larger than `noise` where sampling hides it.
    noise_of_runs: f64,
    /// Student's t for intervals.
    t: f64,
    /// The largest value of the parameter.
    largest: f64,
}

/// A class that was not fitted, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    pub class: Class,
    pub why: String,
}

/// The exponent of growth over a part of the values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LocalExponent {
    /// The smallest value of that part. It ends with the largest one.
    pub from: f64,
    /// Slope of the logarithm of what grows on the logarithm of n.
    pub exponent: Interval,
}

/// How energy grows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// The class that was chosen; the nearest one if [`Self::has_class`] is `false`.
    pub class: Class,
    /// Whether the class fits within what runs of one value vary by, or there were too few repeated runs to say.
    pub has_class: bool,
    /// Without a class: how energy grows at large values, if they tell.
    pub local: Option<LocalExponent>,
    /// All classes that could be fitted, the smallest AICc first.
    pub fits: Vec<Fit>,
    pub refused: Vec<Refused>,
    /// Weight of the chosen class against the next one, 0 to 1; 1 if there is none.
    pub weight: f64,
    /// Classes that cannot be told from the chosen one, the likeliest first.
    pub alternatives: Vec<Class>,
    /// Whether the answer is sure: the class fits, and there is no alternative but one that differs by a logarithm.
    pub is_certain: bool,
    /// The smallest and the largest value of the parameter.
    pub range: (f64, f64),
    pub points: usize,
    pub values: usize,
}

impl Growth {
    /// Fits all classes and chooses one.
    ///
    /// # Errors
    /// If there are too few values or points, or one of them is not a number that can be.
    pub fn of(points: &[Point]) -> Result<Self, GrowthError> {
        for point in points {
            let Point { value, joules, variance } = *point;
            if !value.is_finite() || value < 0.0 {
                return Err(GrowthError::Value { value });
            }
            if ![joules, variance].iter().all(|figure| figure.is_finite() && *figure >= 0.0) {
                return Err(GrowthError::Energy { value, joules, variance });
            }
        }
        let mut values: Vec<f64> = points.iter().map(|point| point.value).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        if values.len() < LEAST_VALUES {
            return Err(GrowthError::TooFewValues { found: values.len() });
        }
        Ok(choose::choose(points, &values))
    }

    /// The chosen class, as it was fitted.
    pub fn fit(&self) -> Option<&Fit> {
        self.fits.iter().find(|fit| fit.class == self.class)
    }

    /// Whether runs were repeated often enough to say whether the class fits.
    pub fn is_tested(&self) -> bool {
        self.fit().is_some_and(|fit| fit.lack_of_fit.is_some())
    }

    /// The class with its alternatives: `n²`, `n or n log n`, `n² (or n³: not certain)`; or that there is none.
    pub fn described(&self) -> String {
        if !self.has_class {
            let local = self.local.map_or_else(String::new, |local| format!("; {local}"));
            return format!("no class fits within the runs' noise{local}");
        }
        let class = self.fit().map_or_else(|| self.class.name().to_owned(), Fit::class_text);
        let others: Vec<&str> = self.alternatives.iter().map(|class| class.name()).collect();
        match (self.is_certain, others.is_empty(), self.is_tested()) {
            (true, true, _) => class,
            (true, false, _) => format!("{class} or {}", others.join(" or ")),
            (false, false, _) => format!("{class} (or {}: not certain)", others.join(", ")),
            (false, true, false) => format!("{class} (not certain: too few repeated runs)"),
            (false, true, true) => format!("{class} (not certain: it hardly fits)"),
        }
    }
}

impl std::fmt::Display for LocalExponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Interval { value, low, high } = self.exponent;
        write!(f, "about n^{value:.2} ({low:.2}–{high:.2}) from n = {} on", self.from)
    }
}
