//! Says what energy a value of the parameter will need, and writes formulae.

use serde::{Deserialize, Serialize};

use super::{Class, Fit, Growth, Interval, solve};
use crate::experiment::cells::sized;

/// Energy that a run at a value will need.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    pub value: f64,
    /// J. The 95 % interval has the coefficients' error and the noise of a run in it. Outside of the values that were
    /// measured it spans those of classes that cannot be told from the chosen one.
    pub joules: Interval,
    /// Whether the value is outside of those that were measured: nobody knows whether the growth goes on so.
    pub is_extrapolated: bool,
}

impl Growth {
    /// The energy of a run at a value; `None` where the class has no finite one, and outside of the values that were
    /// measured if no class fits.
    pub fn predict(&self, value: f64) -> Option<Prediction> {
        let is_extrapolated = value < self.range.0 || value > self.range.1;
        if is_extrapolated && !self.has_class {
            return None;
        }
        let mut joules = self.fit()?.predict(value)?;
        for class in self.alternatives.iter().filter(|_| is_extrapolated) {
            let other = self.fits.iter().find(|fit| fit.class == *class).and_then(|fit| fit.predict(value));
            if let Some(other) = other {
                joules.low = joules.low.min(other.low);
                joules.high = joules.high.max(other.high);
            }
        }
        Some(Prediction { value, joules, is_extrapolated })
    }
}

impl Fit {
    /// The energy of a run at a value, as this class says; `None` where it has no finite one.
    pub fn predict(&self, value: f64) -> Option<Interval> {
        let exponent = self.exponent.map_or(1.0, |exponent| exponent.value);
        if !value.is_finite() || value < 0.0 || self.class.refused(&[value, value, value]).is_some() {
            return None;
        }
        let joules =
            self.constant.value + self.grown.value * solve::relative(self.class, value, self.largest, exponent);
        let slope = solve::gradient(self.class, value, self.largest, exponent, self.grown.value);
        let rows = self.covariance.iter().zip(slope);
        let of_coefficients: f64 = rows
            .map(|(row, slope)| {
                slope * row.iter().zip(self.slope_parts(value)).map(|(cell, part)| cell * part).sum::<f64>()
            })
            .sum();
        let error = self.t * (of_coefficients.max(0.0) + (self.noise_of_runs * joules).powi(2)).sqrt();
        let found = Interval { value: joules, low: (joules - error).max(0.0), high: joules + error };
        (joules.is_finite() && error.is_finite()).then_some(found)
    }

    fn slope_parts(&self, value: f64) -> [f64; 3] {
        let exponent = self.exponent.map_or(1.0, |exponent| exponent.value);
        solve::gradient(self.class, value, self.largest, exponent, self.grown.value)
    }

    /// `n²`, or a power law with its exponent.
    pub fn class_text(&self) -> String {
        self.exponent.map_or_else(|| self.class.name().to_owned(), |exponent| format!("n^{:.2}", exponent.value))
    }

    /// `12.3 mJ + 4.56 µJ · n²`. Of what grows so fast that its factor has no figure, the energy at the largest value.
    pub fn formula(&self) -> String {
        let energy = |joules: f64| {
            let (prefix, factor) = sized(joules);
            format!("{:.3} {prefix}J", joules * factor)
        };
        let constant = energy(self.constant.value);
        if self.class == Class::Constant {
            return constant;
        }
        let exponent = self.exponent.map_or(1.0, |exponent| exponent.value);
        let log_factor = self.grown.value.ln() - self.class.log_f(self.largest, exponent);
        let class = self.class_text();
        let grown = match log_factor.exp() {
            factor if factor >= 1e-9 && factor.is_finite() => format!("{} · {class}", energy(factor)),
            factor if factor > 0.0 && factor.is_finite() => format!("{factor:.3e} J · {class}"),
            _ => format!("{} · {class} / ({class} at {})", energy(self.grown.value), self.largest),
        };
        if self.constant.value > 0.0 { format!("{constant} + {grown}") } else { grown }
    }
}
