//! Says whether a class of growth changed between two versions, for gates.

use serde::{Deserialize, Serialize};

use super::{Class, Growth};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClassVerdict {
    #[serde(rename = "class changed")]
    Changed,
    #[serde(rename = "same class")]
    Same,
    /// One of both may belong to several classes.
    #[serde(rename = "not certain")]
    NotCertain,
}

impl ClassVerdict {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "class changed",
            Self::Same => "same class",
            Self::NotCertain => "not certain",
        }
    }
}

/// How a class changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassChange {
    pub verdict: ClassVerdict,
    pub before: Class,
    pub after: Class,
    /// Whether it grows faster than before: what a gate refuses. `false` if the class did not certainly change.
    pub is_faster: bool,
}

/// Compares two fits of the same thing. The class changed if no class explains both: neither the chosen ones nor
/// their alternatives. Power laws are of one class where the intervals of their exponents meet.
pub fn compare(before: &Growth, after: &Growth) -> ClassChange {
    let may_be = |growth: &Growth, class: Class| growth.class == class || growth.alternatives.contains(&class);
    let do_meet = Class::ALL.into_iter().any(|class| may_be(before, class) && may_be(after, class));
    let is_same = before.class == after.class && before.is_certain && after.is_certain;
    let powers = (exponents(before), exponents(after));
    let verdict = match powers {
        (Some(a), Some(b)) if a.0 <= b.1 && b.0 <= a.1 => ClassVerdict::Same,
        (Some(_), Some(_)) => ClassVerdict::Changed,
        _ if is_same => ClassVerdict::Same,
        _ if do_meet => ClassVerdict::NotCertain,
        _ => ClassVerdict::Changed,
    };
    let is_faster = verdict == ClassVerdict::Changed && steepness(after) > steepness(before);
    ClassChange { verdict, before: before.class, after: after.class, is_faster }
}

/// The interval of the exponent of a power law.
fn exponents(growth: &Growth) -> Option<(f64, f64)> {
    let exponent = growth.fit()?.exponent?;
    Some((exponent.low, exponent.high))
}

/// What orders classes by growth: the exponent over the range that was measured.
fn steepness(growth: &Growth) -> f64 {
    let (least, most) = growth.range;
    let of_power = growth.fit().and_then(|fit| fit.exponent).map(|exponent| exponent.value);
    of_power.or_else(|| growth.class.exponent_between(least, most)).unwrap_or(f64::INFINITY)
}
