//! Decides whether a change is more than noise.
//!
//! The two sides' estimates differ by `d = b − a` with the variance `v_a + v_b`. Welch's t-test,
//! with degrees of freedom by Satterthwaite, says how likely that is by chance. The interval of the
//! relative change is Fieller's: all ratios `ρ` for which `b − ρ·a` is within its error, so that
//! the error of `a` counts too.
//!
//! Of a thousand methods that did not change, fifty would seem to. So rows are called changed such
//! that on average at most 5 % of those called so did not change (Benjamini and Hochberg's false
//! discovery rate).

use serde::Serialize;

use super::{estimate::Estimate, student};

/// One in twenty: the level of tests, the share of false discoveries, the complement of intervals.
pub const LEVEL: f64 = 0.05;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    #[serde(rename = "more")]
    More,
    #[serde(rename = "less")]
    Less,
    /// The change is certain to be smaller than the margin.
    #[serde(rename = "no change")]
    NoChange,
    /// The data set is too short, or too noisy, to say.
    #[serde(rename = "not certain")]
    NotCertain,
    /// Nobody can say how much is noise: there are too few runs, or their windows are too few or all
    /// of one wave.
    #[serde(rename = "not enough runs")]
    NotEnoughRuns,
    /// It would be one of the first three if sessions did not differ, and nobody can say how much they do.
    #[serde(rename = "not enough sessions")]
    NotEnoughSessions,
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::NoChange => "no change",
            Self::NotCertain => "not certain",
            Self::NotEnoughRuns => "not enough runs",
            Self::NotEnoughSessions => "not enough sessions",
        }
    }

    /// What is left to say where nobody knows how much sessions differ.
    #[must_use]
    pub const fn of_one_session(self) -> Self {
        match self {
            Self::More | Self::Less | Self::NoChange => Self::NotEnoughSessions,
            Self::NotCertain | Self::NotEnoughRuns | Self::NotEnoughSessions => self,
        }
    }
}

/// How a consumer changed from A to B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub a: f64,
    pub b: f64,
    /// 95 % interval of `b − a`.
    pub interval: Option<(f64, f64)>,
    /// 95 % interval of `b/a − 1`; `None` also if A may be nothing.
    pub relative: Option<(f64, f64)>,
    /// Chance of such a difference without a change; `None` if not tested.
    pub p: Option<f64>,
    /// The smallest false discovery rate at which it counts as a change.
    pub q: Option<f64>,
    pub verdict: Verdict,
}

impl Change {
    /// The change between two estimates, not judged yet.
    pub fn between(a: Estimate, b: Estimate) -> Self {
        let none = Self {
            a: a.rate,
            b: b.rate,
            interval: None,
            relative: None,
            p: None,
            q: None,
            verdict: Verdict::NotCertain,
        };
        let (Some(of_a), Some(of_b)) = (a.whole_variance(), b.whole_variance()) else { return none };
        let freedom = welch(a, b, 1.0);
        let t = student::quantile(LEVEL, freedom);
        let difference = b.rate - a.rate;
        let error = t * (of_a + of_b).sqrt();
        Self {
            interval: Some((difference - error, difference + error)),
            relative: fieller((a.rate, of_a), (b.rate, of_b), t).map(|(low, high)| (low - 1.0, high - 1.0)),
            p: Some(chance(a, b, 1.0)),
            ..none
        }
    }

    pub fn difference(&self) -> f64 {
        self.b - self.a
    }

    /// `b/a − 1`; `None` if there was nothing in A.
    pub fn ratio(&self) -> Option<f64> {
        (self.a > 0.0).then(|| self.b / self.a - 1.0)
    }

    fn judge(&mut self, margin: f64) {
        let is_change = self.q.is_some_and(|q| q <= LEVEL);
        let is_small = self.relative.is_some_and(|(low, high)| -margin < low && high < margin);
        if self.interval.is_none() {
            self.verdict = Verdict::NotEnoughRuns;
            return;
        }
        self.verdict = match (is_change, is_small) {
            (true, _) if self.difference() > 0.0 => Verdict::More,
            (true, _) => Verdict::Less,
            (false, true) => Verdict::NoChange,
            (false, false) => Verdict::NotCertain,
        };
    }
}

/// Chance of a B at least as far from `factor` times A.
pub fn chance(a: Estimate, b: Estimate, factor: f64) -> f64 {
    let (Some(of_a), Some(of_b)) = (a.whole_variance(), b.whole_variance()) else { return 1.0 };
    let difference = b.rate - factor * a.rate;
    // Equal constants are equal: no 0/0.
    if difference == 0.0 {
        return 1.0;
    }
    student::two_sided(difference / (of_b + factor.powi(2) * of_a).sqrt(), welch(a, b, factor))
}

/// Chance of a B so far above `factor` times A; 1 if B is not above.
pub fn chance_above(a: Estimate, b: Estimate, factor: f64) -> f64 {
    if b.rate > factor * a.rate { chance(a, b, factor) } else { 1.0 }
}

/// Satterthwaite's degrees of freedom of `b − factor · a`. What both sides have from the same replicates is one part.
fn welch(a: Estimate, b: Estimate, factor: f64) -> f64 {
    let square = factor.powi(2);
    let parts = [
        (a.variance.unwrap_or_default() * square, a.freedom),
        (b.variance.unwrap_or_default(), b.freedom),
        (a.shared.estimated * square + b.shared.estimated, a.shared.freedom),
    ];
    let estimated = parts.into_iter().filter(|(variance, _)| *variance > 0.0);
    let squares: f64 = estimated.map(|(variance, freedom)| variance.powi(2) / freedom).sum();
    let whole = a.whole_variance().unwrap_or_default() * square + b.whole_variance().unwrap_or_default();
    if squares > 0.0 { whole.powi(2) / squares } else { a.freedom.min(b.freedom) }
}

/// All ratios of `b` to `a`, each with its variance, that are within `t` errors.
fn fieller((a, of_a): (f64, f64), (b, of_b): (f64, f64), t: f64) -> Option<(f64, f64)> {
    let square = a.powi(2) - t.powi(2) * of_a;
    if square <= 0.0 {
        return None;
    }
    let rest = b.powi(2) - t.powi(2) * of_b;
    let root = (a.powi(2) * b.powi(2) - square * rest).max(0.0).sqrt();
    Some(((a * b - root) / square, (a * b + root) / square))
}

/// The smallest false discovery rate at which each counts as found, by Benjamini and Hochberg.
/// Those without a chance are not tested and do not count.
pub fn discovery_rates(chances: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut tested: Vec<(usize, f64)> =
        chances.iter().enumerate().filter_map(|(at, chance)| chance.map(|chance| (at, chance))).collect();
    tested.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut rates = vec![None; chances.len()];
    let mut least = 1.0_f64;
    #[allow(clippy::cast_precision_loss, reason = "numbers of methods")]
    let all = tested.len() as f64;
    let mut rank = all;
    for (at, chance) in tested {
        least = least.min(chance * all / rank);
        rank -= 1.0;
        if let Some(rate) = rates.get_mut(at) {
            *rate = Some(least);
        }
    }
    rates
}

/// Judges changes that are tested together.
pub fn judge<'a>(changes: impl Iterator<Item = &'a mut Change>, margin: f64) {
    let mut changes: Vec<&mut Change> = changes.collect();
    let chances: Vec<Option<f64>> = changes.iter().map(|change| change.p).collect();
    for (change, rate) in changes.iter_mut().zip(discovery_rates(&chances)) {
        change.q = rate;
        change.judge(margin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::diff::estimate::Shared;

    fn estimate(rate: f64, error: f64) -> Estimate {
        Estimate::new(rate, Some(error * error), 30.0)
    }

    fn verdict(a: Estimate, b: Estimate) -> Verdict {
        let mut change = Change::between(a, b);
        judge(std::iter::once(&mut change), 0.05);
        change.verdict
    }

    #[test]
    fn a_verdict_tells_change_from_noise_and_noise_from_calm() {
        let unknown = Estimate::new(1.0, None, 0.0);
        for (a, b, expected) in [
            (estimate(10.0, 0.1), estimate(11.0, 0.1), Verdict::More),
            (estimate(11.0, 0.1), estimate(10.0, 0.1), Verdict::Less),
            (estimate(10.0, 0.1), estimate(10.1, 0.1), Verdict::NoChange),
            (estimate(10.0, 1.0), estimate(10.1, 1.0), Verdict::NotCertain),
            (estimate(0.0, 0.1), estimate(1.0, 0.1), Verdict::More),
            (estimate(1.0, 0.1), estimate(0.0, 0.1), Verdict::Less),
            (estimate(5.0, 0.0), estimate(5.0, 0.0), Verdict::NoChange),
            (unknown, estimate(5.0, 0.1), Verdict::NotEnoughRuns),
        ] {
            assert_eq!(verdict(a, b), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn variance_that_both_sides_have_from_the_same_sessions_counts_its_freedom_once() {
        let of = |variance, shared| {
            let shared = Shared { variance: shared, estimated: shared, freedom: 2.0 };
            Estimate { shared, ..Estimate::new(1.0, Some(variance), 30.0) }
        };
        assert!((welch(of(0.0, 1.0), of(0.0, 3.0), 1.0) - 2.0).abs() < 1e-12);
        // 4 with 2 degrees of freedom and 1 with 30: 25 / (16/2 + 1/30).
        assert!((welch(of(0.0, 1.0), of(1.0, 3.0), 1.0) - 25.0 / (8.0 + 1.0 / 30.0)).abs() < 1e-12);
    }

    #[test]
    fn the_relative_interval_is_where_the_test_turns() {
        let (a, b) = (estimate(10.0, 0.7), estimate(12.0, 0.4));
        let (low, high) = fieller((10.0, 0.49), (12.0, 0.16), 2.0).unwrap();
        for ratio in [low, high] {
            let distance = (b.rate - ratio * a.rate).abs() / (0.16 + ratio * ratio * 0.49).sqrt();
            assert!((distance - 2.0).abs() < 1e-9, "{ratio}: {distance}");
        }
        assert!(low < 1.2 && 1.2 < high);
        assert_eq!(fieller((1.0, 1.0), (1.0, 1.0), 2.0), None, "A may be nothing");
    }

    #[test]
    fn rates_of_discovery_are_those_of_the_paper() {
        // Benjamini and Hochberg (1995), 15 hypotheses of which they reject four.
        let chances = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        let rates = discovery_rates(&chances.map(Some));
        assert_eq!(rates.iter().filter(|rate| rate.unwrap() <= 0.05).count(), 4);
        assert!((rates[0].unwrap() - 0.0015).abs() < 1e-12);
        let with_untested = discovery_rates(&[Some(0.04), None, Some(0.03)]);
        assert_eq!(with_untested, [Some(0.04), None, Some(0.04)]);
    }
}
