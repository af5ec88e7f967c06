//! Defines the classes of growth, each a function of the parameter `n`, computed in logarithms.

use serde::{Deserialize, Serialize};

/// How energy grows with a parameter: `a + b·f(n)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    #[serde(rename = "constant")]
    Constant,
    #[serde(rename = "log n")]
    Logarithmic,
    #[serde(rename = "n")]
    Linear,
    #[serde(rename = "n log n")]
    Linearithmic,
    #[serde(rename = "n^2")]
    Quadratic,
    #[serde(rename = "n^3")]
    Cubic,
    #[serde(rename = "2^n")]
    Exponential,
    /// `n^c` with a fitted exponent.
    #[serde(rename = "n^c")]
    Power,
}

/// Of three values at least, `2ⁿ` must be more than this many halvings of the largest: else it only says
/// that the last value differs from the others.
const MOST_HALVINGS: f64 = 40.0;

impl Class {
    /// From the slowest growth to the fastest; the power law last.
    pub const ALL: [Self; 8] = [
        Self::Constant,
        Self::Logarithmic,
        Self::Linear,
        Self::Linearithmic,
        Self::Quadratic,
        Self::Cubic,
        Self::Exponential,
        Self::Power,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Logarithmic => "log n",
            Self::Linear => "n",
            Self::Linearithmic => "n log n",
            Self::Quadratic => "n²",
            Self::Cubic => "n³",
            Self::Exponential => "2ⁿ",
            Self::Power => "nᶜ",
        }
    }

    /// Whether the two differ by no more than a logarithm. A hierarchy of caches looks like one, so nobody can tell for certain
    /// which of both it is.
    pub(super) const fn is_near(self, other: Self) -> bool {
        matches!((self, other), (Self::Linear, Self::Linearithmic) | (Self::Linearithmic, Self::Linear))
    }

    /// Fitted numbers, the noise among them.
    pub(super) const fn parameters(self) -> u32 {
        match self {
            Self::Constant => 2,
            Self::Power => 4,
            _ => 3,
        }
    }

    /// The logarithm of `f(n)`; −∞ where it is 0. `exponent` is the power law's.
    pub(super) fn log_f(self, n: f64, exponent: f64) -> f64 {
        match self {
            Self::Constant => f64::NEG_INFINITY,
            Self::Logarithmic => n.ln().ln(),
            Self::Linear => n.ln(),
            Self::Linearithmic => n.ln() + n.ln().ln(),
            Self::Quadratic => 2.0 * n.ln(),
            Self::Cubic => 3.0 * n.ln(),
            Self::Exponential => n * std::f64::consts::LN_2,
            Self::Power => exponent * n.ln(),
        }
    }

    /// Why it cannot be fitted to these values, which are sorted, distinct and not below 0.
    pub(super) fn refused(self, values: &[f64]) -> Option<&'static str> {
        let (Some(least), Some(most)) = (values.first(), values.last()) else { return Some("there are no values") };
        match self {
            Self::Logarithmic | Self::Linearithmic if *least < 1.0 => Some("the logarithm of a value is below 0"),
            Self::Power if *least <= 0.0 => Some("a value is not above 0"),
            Self::Exponential if values.iter().rev().nth(2).is_none_or(|third| most - third > MOST_HALVINGS) => {
                Some("the values are too far apart")
            }
            _ => None,
        }
    }

    /// The exponent that it has as a power law between two values, if it looks like one.
    pub(super) fn exponent_between(self, least: f64, most: f64) -> Option<f64> {
        match self {
            Self::Constant => Some(0.0),
            Self::Exponential | Self::Power => None,
            // From where the logarithm is above 0.
            _ => {
                let least = least.max(std::f64::consts::E);
                let slope = (self.log_f(most, 1.0) - self.log_f(least, 1.0)) / (most.ln() - least.ln());
                slope.is_finite().then_some(slope)
            }
        }
    }
}
