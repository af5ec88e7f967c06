//! Defines power as a polynomial of CPU use, for models of whole machines.
//!
//! All is in integers, so that a replay computes the same energy everywhere: factors in nW, use in
//! parts of 10⁹. What rounding costs is below 1 µW for the models of boards that are published.

use serde::{Deserialize, Serialize};

/// Most factors of a curve: a polynomial of degree 9.
pub const MOST_FACTORS: usize = 10;

/// Largest factor, either way: 1 GW, so that no sum overflows.
const MOST_FACTOR_WATTS: f64 = 1e9;

const NW_PER_WATT: f64 = 1e9;
const NW_PER_UW: i128 = 1000;

/// Full use.
const WHOLE: i128 = 1_000_000_000;

/// Steps of use at which [`UseCurve::largest_fall_uw`] looks.
const STEPS: u64 = 10_000;

/// Power of a machine by the use of all its CPUs together, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UseCurve {
    /// nW, for use to the power of 0, 1, 2, …
    factors_nw: [i64; MOST_FACTORS],
}

impl UseCurve {
    /// From factors in watts: for use to the power of 0, 1, 2, …; `None` if there is none, there are
    /// more than [`MOST_FACTORS`], or one is beyond ±1 GW.
    #[allow(clippy::cast_possible_truncation, reason = "at most 10^18 after the range check")]
    pub fn of_watts(factors: &[f64]) -> Option<Self> {
        let mut curve = Self::default();
        if factors.is_empty() || factors.len() > MOST_FACTORS {
            return None;
        }
        for (factor_nw, watts) in curve.factors_nw.iter_mut().zip(factors) {
            (-MOST_FACTOR_WATTS..=MOST_FACTOR_WATTS).contains(watts).then_some(())?;
            *factor_nw = (watts * NW_PER_WATT).round() as i64;
        }
        Some(curve)
    }

    /// Power at a use of `busy` of `capacity`, nW; below 0 if the curve is. More than all is all, and
    /// of nothing nothing is busy.
    pub fn power_nw(&self, busy: u64, capacity: u64) -> i128 {
        let busy = i128::from(busy.min(capacity));
        let used = (busy * WHOLE).checked_div(i128::from(capacity)).unwrap_or(0);
        // Horner: below 10 × 2^63 in size at each step, and below 2^97 before the division.
        self.factors_nw.iter().rev().fold(0, |power, factor| power * used / WHOLE + i128::from(*factor))
    }

    /// The same in µW, rounded to the nearest; 0 where the curve is below 0.
    pub fn power_uw(&self, busy: u64, capacity: u64) -> u64 {
        let power_uw = (self.power_nw(busy, capacity) + NW_PER_UW / 2) / NW_PER_UW;
        u64::try_from(power_uw.max(0)).unwrap_or(u64::MAX)
    }

    /// The most that it is where use is between 0 and 1, µW.
    pub fn largest_uw(&self) -> u64 {
        (0..=STEPS).map(|step| self.power_uw(step, STEPS)).max().unwrap_or(0)
    }

    /// How far the curve falls, as use grows from 0 to 1: the most that it is below an earlier power, µW.
    pub fn largest_fall_uw(&self) -> u64 {
        let powers = (0..=STEPS).map(|step| self.power_uw(step, STEPS));
        let (_, fall_uw) = powers
            .fold((0, 0), |(most, fall): (u64, u64), power| (most.max(power), fall.max(most.saturating_sub(power))));
        fall_uw
    }

    /// Whether it is above 0 wherever use is between 0 and 1.
    pub fn is_positive(&self) -> bool {
        (0..=STEPS).all(|step| self.power_nw(step, STEPS) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(factors: &[f64]) -> UseCurve {
        UseCurve::of_watts(factors).unwrap()
    }

    #[test]
    fn power_is_the_polynomial_of_use() {
        // 2 + 3u − u² + 4u³ W.
        let cubic = curve(&[2.0, 3.0, -1.0, 4.0]);
        for (busy, capacity, expected_uw) in [
            (0, 8, 2_000_000),
            (1, 10, 2_294_000),
            (4, 8, 3_750_000),
            (8, 8, 8_000_000),
            (9, 8, 8_000_000),
            (0, 0, 2_000_000),
            (7, 0, 2_000_000),
            (u64::MAX, u64::MAX, 8_000_000),
        ] {
            assert_eq!(cubic.power_uw(busy, capacity), expected_uw, "{busy}/{capacity}");
        }
        assert_eq!(curve(&[-1.0, 0.5]).power_uw(1, 1), 0, "no power is below 0");
        assert_eq!(curve(&[-1.0, 0.5]).power_nw(1, 1), -500_000_000);
    }

    #[test]
    fn falls_are_seen_wherever_they_are() {
        for (factors, expected_uw) in [
            (&[2.0, 3.0][..], 0),
            (&[2.0], 0),
            // Its top is at a half, its end as high as its begin.
            (&[1.0, 4.0, -4.0], 1_000_000),
            (&[5.0, -2.0], 2_000_000),
            (&[1.0, 0.0, 1.0], 0),
        ] {
            assert_eq!(curve(factors).largest_fall_uw(), expected_uw, "{factors:?}");
        }
    }

    #[test]
    fn the_top_may_be_anywhere() {
        for (factors, expected_uw) in [(&[2.0, 3.0][..], 5_000_000), (&[1.0, 4.0, -4.0], 2_000_000), (&[-1.0], 0)] {
            assert_eq!(curve(factors).largest_uw(), expected_uw, "{factors:?}");
        }
    }

    #[test]
    fn positive_is_positive_everywhere() {
        for (factors, expected) in
            [(&[0.1][..], true), (&[0.0, 1.0], false), (&[1.0, -4.1, 4.1], false), (&[1.0, -3.0, 3.0], true)]
        {
            assert_eq!(curve(factors).is_positive(), expected, "{factors:?}");
        }
    }

    #[test]
    fn factors_that_no_machine_has_are_refused() {
        for factors in [&[][..], &[1.0; 11], &[f64::NAN], &[1.0, f64::INFINITY], &[1e10], &[1.0, -1e10]] {
            assert_eq!(UseCurve::of_watts(factors), None, "{factors:?}");
        }
        assert!(UseCurve::of_watts(&[1e9; MOST_FACTORS]).is_some());
    }

    proptest::proptest! {
        /// Recordings may hold any factors.
        #[test]
        fn no_curve_overflows(factors_nw: [i64; MOST_FACTORS], busy: u64, capacity: u64) {
            let curve = UseCurve { factors_nw };
            let _ = (curve.power_nw(busy, capacity), curve.power_uw(busy, capacity));
        }

        #[test]
        #[allow(clippy::cast_precision_loss, reason = "to compare with floating point")]
        fn integers_are_as_good_as_floating_point(factors in proptest::collection::vec(-10.0_f64..10.0, 1..=MOST_FACTORS), part in 0_u64..=1000) {
            let used = f64::from(u32::try_from(part).unwrap()) / 1000.0;
            let expected: f64 = factors.iter().rev().fold(0.0, |power, factor| power * used + factor);
            let found = curve(&factors).power_nw(part, 1000);
            proptest::prop_assert!((expected * 1e9 - found as f64).abs() < 100.0, "{expected} W, {found} nW");
        }
    }
}
