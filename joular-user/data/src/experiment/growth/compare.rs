//! Says whether a class of growth changed between two versions, for gates.

use serde::{Deserialize, Serialize};

use super::{Class, Fit, Growth, Interval};
use crate::report::diff::{student, verdict::LEVEL};

/// What a growth must need more at the largest value to matter, as a part of what it needed before.
pub const MATERIAL: f64 = 0.1;

/// Ends of ranges that differ by a smaller factor are the same.
const SAME_END: f64 = 1.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClassVerdict {
    #[serde(rename = "class changed")]
    Changed,
    #[serde(rename = "same class")]
    Same,
    /// See [`Doubt`].
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

/// Why two growths cannot be compared for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    Ranges,
    NotRepeated,
    NoClass,
    SeveralClasses,
}

impl Doubt {
    /// Whether the classes could have been told apart, had the growths differed enough.
    pub const fn is_of_shape(self) -> bool {
        matches!(self, Self::SeveralClasses)
    }

    /// What it is and what to do.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Ranges => "the sweeps have different ranges of n: repeat one of them with the values of the other",
            Self::NotRepeated => {
                "too few runs of each value to tell noise from shape: use --repeat 3 or more in both sweeps"
            }
            Self::NoClass => {
                "no class fits within the runs' noise: compare the energy at one value with `joular-bpf diff`, or leave \
                 out values at which the program works otherwise, such as those in which the JIT still compiles"
            }
            Self::SeveralClasses => "several classes fit: take more values, a wider range, or more runs",
        }
    }
}

/// How a class changed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassChange {
    pub verdict: ClassVerdict,
    pub before: Class,
    pub after: Class,
    /// If the verdict is not certain.
    pub doubt: Option<Doubt>,
    /// The largest chance at which growths of one class would seem to be of two; 1 if the verdict is another.
    pub chance: f64,
    /// Whether it grows faster than before. `false` if the class did not change.
    pub is_faster: bool,
    /// Energy at the largest value as fitted, as a part of that before.
    pub at_largest: f64,
}

impl ClassChange {
    /// Whether it grows faster and needs clearly more: what a gate refuses.
    pub fn is_worse(&self) -> bool {
        self.is_faster && self.needs_more()
    }

    /// Whether it needs more by [`MATERIAL`] at the largest value.
    pub fn needs_more(&self) -> bool {
        self.at_largest > 1.0 + MATERIAL
    }
}

/// Compares two growths of the same thing. The class changed if no class explains both: it is neither the chosen one nor an
/// alternative on both sides, and the odds against the class that explains both best are 19 to 1.
pub fn compare(before: &Growth, after: &Growth) -> ClassChange {
    let chance = chance(before, after);
    let is_same = before.class == after.class && !do_powers_differ(before, after);
    let doubt = doubt(before, after);
    let (verdict, doubt) = match doubt {
        Some(doubt) => (ClassVerdict::NotCertain, Some(doubt)),
        None if !do_meet(before, after) && chance <= LEVEL => (ClassVerdict::Changed, None),
        None if is_same && before.is_certain && after.is_certain => (ClassVerdict::Same, None),
        None => (ClassVerdict::NotCertain, Some(Doubt::SeveralClasses)),
    };
    let is_changed = verdict == ClassVerdict::Changed;
    ClassChange {
        verdict,
        before: before.class,
        after: after.class,
        doubt,
        chance: if is_changed { chance } else { 1.0 },
        is_faster: is_changed && steepness(after) > steepness(before),
        at_largest: at_largest(after) / at_largest(before),
    }
}

fn doubt(before: &Growth, after: &Growth) -> Option<Doubt> {
    let is_near = |a: f64, b: f64| a.max(b) <= SAME_END * a.min(b);
    if !is_near(before.range.0, after.range.0) || !is_near(before.range.1, after.range.1) {
        return Some(Doubt::Ranges);
    }
    if !before.is_tested() || !after.is_tested() {
        return Some(Doubt::NotRepeated);
    }
    (!before.has_class || !after.has_class).then_some(Doubt::NoClass)
}

/// Whether a class may be that of both.
fn do_meet(before: &Growth, after: &Growth) -> bool {
    let may_be = |growth: &Growth, class: Class| growth.class == class || growth.alternatives.contains(&class);
    let mut both = Class::ALL.into_iter().filter(|class| may_be(before, *class) && may_be(after, *class));
    both.any(|class| class != Class::Power || !do_powers_differ(before, after))
}

/// Of growths of one class, no more than this part has such odds for two. The likelihood of what was found, divided by that
/// under the class that explains both best, exceeds a number with at most the chance of one in that number (Markov).
fn chance(before: &Growth, after: &Growth) -> f64 {
    if let Some(chance) = chance_of_powers(before, after) {
        return chance;
    }
    let behind = |growth: &Growth, class: Class| {
        // Any class is a constant if it does not grow. But a constant that may grow by little only is of no other class.
        let is_flat = growth.class == Class::Constant && !growth.alternatives.contains(&class);
        if is_flat && class != Class::Constant {
            return None;
        }
        let of = |class: Class| growth.fits.iter().find(|fit| fit.class == class).map(|fit| fit.lenient_aic);
        Some((of(class)? - of(growth.class)?).max(0.0))
    };
    let named = Class::ALL.into_iter().filter(|class| *class != Class::Power);
    let of_both = named.filter_map(|class| Some(behind(before, class)? + behind(after, class)?));
    (-of_both.fold(f64::INFINITY, f64::min) / 2.0).exp()
}

/// Chance that exponents of one power law differ so; `None` if both are not power laws.
#[allow(clippy::cast_precision_loss, reason = "numbers of values")]
fn chance_of_powers(before: &Growth, after: &Growth) -> Option<f64> {
    let ((a, of_a), (b, of_b)) = (power(before)?, power(after)?);
    let error = |exponent: Interval, fit: &Fit| (exponent.high - exponent.low) / 2.0 / fit.t;
    // Of the values of a side, three are taken by its coefficients.
    let freedom = before.values.min(after.values) as f64 - 3.0;
    Some(student::two_sided((b.value - a.value) / error(a, of_a).hypot(error(b, of_b)), freedom))
}

fn do_powers_differ(before: &Growth, after: &Growth) -> bool {
    let both = power(before).zip(power(after));
    both.is_some_and(|((a, _), (b, _))| a.low > b.high || b.low > a.high)
}

/// The exponent of a power law.
fn power(growth: &Growth) -> Option<(Interval, &Fit)> {
    let fit = growth.fit()?;
    Some((fit.exponent?, fit))
}

fn at_largest(growth: &Growth) -> f64 {
    growth.fit().map_or(0.0, |fit| fit.constant.value + fit.grown.value)
}

/// What orders classes by growth: the exponent over the range that was measured.
fn steepness(growth: &Growth) -> f64 {
    let (least, most) = growth.range;
    let of_power = power(growth).map(|(exponent, _)| exponent.value);
    of_power.or_else(|| growth.class.exponent_between(least, most)).unwrap_or(f64::INFINITY)
}
