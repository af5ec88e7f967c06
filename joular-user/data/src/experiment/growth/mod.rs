//! Fits how energy grows with a parameter: constant, log n, n, n log n, n², n³, 2ⁿ, or a power law.
//!
//! **Fit.** Every class is `a + b·f(n)` with `a ≥ 0` and `b ≥ 0`: a start-up cost and what grows. Energies
//! span decades, and runs vary by a part of what they need. So a point's variance is what sampling left
//! open, which is known and grows with the energy, and `(ρ · the model's energy)²` with an unknown `ρ`. Coefficients and `ρ` are found in turns
//! until they stay ([`solve`]). Each class has its own `ρ`: a class that does not fit needs much noise.
//!
//! **Choice.** The criterion is Akaike's with the correction for few points, AICc (Hurvich and Tsai,
//! 1989): how likely the points are, less the number of fitted coefficients. Leaving one value out would be the
//! other way. But of a dozen values the largest decides about the class; leaving it out asks for an
//! extrapolation, and the result depends on that one value. AICc also gives odds: `exp(Δ/2)` to one.
//!
//! **The simpler one.** `constant` is in all other classes, with `b = 0`, and each named class looks like some
//! power law. So a growing class is chosen only if it is better than `constant` by [`CLEARLY`], and the
//! power law only if it is better by that than each named class and no fitting class's exponent lies in its interval.
//!
//! **How sure.** Classes within [`APART`] of the chosen one cannot be told from it: they are its
//! `alternatives`. `simulation.rs` counts how often the class is right and the interval of a prediction holds.

mod choose;
mod class;
mod compare;
mod predict;
#[cfg(test)]
mod simulation;
mod solve;
pub mod sweep;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::{
    class::Class,
    compare::{ClassChange, ClassVerdict, compare},
    predict::Prediction,
    sweep::{Curve, Sweep, SweepError},
};
pub use crate::report::validate::Interval;

/// How much better than a simpler class, in AICc: odds of 7 to 1.
pub const CLEARLY: f64 = 4.0;

/// Classes that differ by less in AICc cannot be told apart: odds of 19 to 1.
pub const APART: f64 = 5.9;

/// Fewer distinct values have no shape.
pub const LEAST_VALUES: usize = 4;

/// Fewer points leave nothing to judge three coefficients by.
pub const LEAST_POINTS: usize = 6;

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
    #[error("fitting growth: there are {found} runs: measure {LEAST_POINTS} or more, by more values or repetitions")]
    TooFewPoints { found: usize },
    #[error("fitting growth: {value} is not a value of a parameter: give finite ones that are not below 0")]
    Value { value: f64 },
    #[error(
        "fitting growth: at {value} the energy is {joules} J with the variance {variance} J²: both must be finite and not below 0"
    )]
    Energy { value: f64, joules: f64, variance: f64 },
}

/// A class, fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    pub class: Class,
    /// What is needed whatever the parameter is, J.
    pub constant: Interval,
    /// What grows, at the largest value of the parameter, J. Divided by `f` of that value it is `b`.
    pub grown: Interval,
    /// The power law's `c`.
    pub exponent: Option<Interval>,
    /// ρ: standard deviation of runs, as a part of the model's energy.
    pub noise: f64,
    /// Part of the weighted variance that the model explains.
    pub r_squared: f64,
    /// Smaller is better.
    pub aicc: f64,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub class: Class,
    pub why: String,
}

/// How energy grows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// The class that was chosen.
    pub class: Class,
    /// All classes that could be fitted, the smallest AICc first.
    pub fits: Vec<Fit>,
    pub refused: Vec<Refused>,
    /// Weight of the chosen class against the next one, 0 to 1; 1 if there is none.
    pub weight: f64,
    /// Classes that cannot be told from the chosen one, the likeliest first.
    pub alternatives: Vec<Class>,
    /// Whether the class is sure: there are no alternatives.
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
        if points.len() < LEAST_POINTS {
            return Err(GrowthError::TooFewPoints { found: points.len() });
        }
        Ok(choose::choose(points, &values))
    }

    /// The chosen class, as it was fitted.
    pub fn fit(&self) -> Option<&Fit> {
        self.fits.iter().find(|fit| fit.class == self.class)
    }

    /// The class with its alternatives: `n²`, `n² (or n³: not certain)`.
    pub fn described(&self) -> String {
        let class = self.fit().map_or_else(|| self.class.name().to_owned(), Fit::class_text);
        if self.is_certain {
            return class;
        }
        let others: Vec<&str> = self.alternatives.iter().map(|class| class.name()).collect();
        format!("{class} (or {}: not certain)", others.join(", "))
    }
}
