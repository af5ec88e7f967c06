//! Takes into account that runs of different sessions differ more than runs of one.
//!
//! A session is what is recorded at one time: after one start of the machine, at one temperature, beside the same
//! neighbours. Its runs share all that. So however many runs a session has, its mean is one draw of a session.
//!
//! If A has `k` sessions, session `j` with `m_j` runs whose mean rate is `M_j`, then
//!
//! ```text
//! R_A = Σ M_j / k        S² = Σ (M_j − R_A)² / (k − 1)        h = Σ (1/m_j) / k
//! ```
//!
//! and `S²` is expected to be `σ_s² + σ_A²·h`, of sessions and of runs within them (the one-way random model: Searle,
//! Casella and McCulloch, *Variance Components*, 1992). B is one more session, of `n` runs, so it differs from the mean
//! of A's as a new value differs from the mean of a sample:
//!
//! ```text
//! var(R_B − ρ·R_A) = S²·(1 + ρ²/k) + (s_B²/n − s_A²·h)
//! ```
//!
//! `S²` has `k − 1` degrees of freedom, `s_B²` has `n − 1`, and `s_A²` so many that they are left out. Satterthwaite
//! (*An approximate distribution of estimates of variance components*, 1946) combines them. The second part is what B's
//! runs add if they are fewer or vary more; it is taken as 0 where it would be negative. `S²` is never taken as less
//! than `s_A²·h`: means of sessions do not vary less than their runs let them.

use std::collections::BTreeMap;

use super::{
    estimate::{Estimate, Shared},
    side::Side,
};
use crate::{model::units::UnixMicros, report::profile::Run};

/// From so many sessions on, they show how sessions differ. Two would give intervals six times as wide as many do.
pub const MIN_SESSIONS: usize = 3;

/// What is known of the difference between the sessions of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sessions {
    /// Runs of A and B took turns, so what a session changes, it changes in both.
    Shared,
    /// A has this many sessions, which show it.
    Known(usize),
    /// A is a baseline of this many sessions, which do not show it.
    TooFew(usize),
    /// A and B are data sets that were recorded one after the other.
    Apart,
}

impl Sessions {
    pub fn of(a: &Side, b: &Side) -> Self {
        match a.sessions_with_windows() {
            count if count >= MIN_SESSIONS => Self::Known(count),
            0 | 1 if took_turns(&a.runs, &b.runs) => Self::Shared,
            count if a.is_baseline => Self::TooFew(count),
            _ => Self::Apart,
        }
    }

    /// Whether intervals leave out how sessions differ.
    pub const fn are_left_out(self) -> bool {
        matches!(self, Self::TooFew(_) | Self::Apart)
    }

    /// What restricts a statement on the difference of A and B.
    pub const fn reservation(self) -> &'static str {
        if self.are_left_out() { ", unless sessions differ by that much" } else { "" }
    }
}

/// Whether both were recorded in turns, as `run --variant` does. Each of its rounds has runs of both, and so at least
/// one change of sides.
fn took_turns(a: &[Run], b: &[Run]) -> bool {
    let starts = |runs: &[Run]| runs.iter().map(|run| run.info.started).collect::<Vec<UnixMicros>>();
    let [mut of_a, mut of_b] = [starts(a), starts(b)];
    of_a.sort_unstable();
    of_b.sort_unstable();
    if of_a == of_b {
        return true;
    }
    let fewest = of_a.len().min(of_b.len());
    let mut order: Vec<(UnixMicros, bool)> =
        of_a.into_iter().map(|start| (start, false)).chain(of_b.into_iter().map(|start| (start, true))).collect();
    order.sort_unstable();
    let changes = order.windows(2).filter(|pair| matches!(pair, [one, next] if one.1 != next.1)).count();
    changes >= fewest.max(2)
}

/// The estimates of A, by the mean of its sessions, and of B, as one session more. `from` and `to` are those by their
/// runs; `rates` are those of A's runs, with the number of each run's session. `None`: there are not enough sessions.
#[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
pub fn estimates(rates: impl Iterator<Item = (usize, f64)>, from: Estimate, to: Estimate) -> Option<[Estimate; 2]> {
    let (of_runs_a, of_runs_b) = (from.variance?, to.variance?);
    let mut sessions: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (session, rate) in rates {
        sessions.entry(session).or_default().push(rate);
    }
    if sessions.len() < MIN_SESSIONS {
        return None;
    }
    let count = sessions.len() as f64;
    let (mut means, mut squares, mut freedom, mut inverse) = (Vec::new(), 0.0, 0.0, 0.0);
    for rates in sessions.values() {
        let runs = rates.len() as f64;
        let mean = rates.iter().sum::<f64>() / runs;
        squares += rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
        freedom += runs - 1.0;
        inverse += 1.0 / runs / count;
        means.push(mean);
    }
    let mean = means.iter().sum::<f64>() / count;
    let between = means.iter().map(|of_one| (of_one - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let within = if freedom > 0.0 { squares / freedom * inverse } else { 0.0 };
    let of_session = between.max(within);
    let of_a = of_session / count;
    let shared = |variance, estimated| Shared { variance, estimated, freedom: count - 1.0 };
    // What A's runs vary by, as if they were of one session, is the least: samples are few, too.
    let rest_of_a = (of_runs_a - of_a).max(0.0);
    Some([
        Estimate { rate: mean, variance: Some(rest_of_a), freedom: count - 1.0, shared: shared(of_a, of_a) },
        Estimate { shared: shared(of_session - within.min(of_runs_b), of_session), ..to },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::RunInfo;

    fn runs(starts: &[i64]) -> Vec<Run> {
        let run =
            |start: &i64| Run { info: RunInfo { started: UnixMicros(*start), ..RunInfo::default() }, ..Run::default() };
        starts.iter().map(run).collect()
    }

    #[test]
    fn runs_took_turns_if_sides_change_as_often_as_there_are_rounds() {
        for (a, b, expected) in [
            (&[1, 4, 5][..], &[2, 3, 6][..], true),
            // The order of an experiment with the fewest changes.
            (&[1, 4, 5, 8], &[2, 3, 6, 7], true),
            (&[1, 2, 3], &[4, 5, 6], false),
            // A was gone on with after B.
            (&[1, 2, 3, 7, 8, 9], &[4, 5, 6], false),
            (&[1], &[2], false),
            (&[1], &[1], true),
            (&[1, 2], &[1, 2], true),
        ] {
            assert_eq!(took_turns(&runs(a), &runs(b)), expected, "{a:?} {b:?}");
        }
    }

    fn estimate(rate: f64, variance: f64, freedom: f64) -> Estimate {
        Estimate::new(rate, Some(variance), freedom)
    }

    #[test]
    fn a_session_is_one_replicate_however_many_runs_it_has() {
        // Means 10, 12 and 14, of 2, 2 and 4 runs, whose squares about their means are 2, 2 and 4.
        let rates = [(0, 9.0), (0, 11.0), (1, 11.0), (1, 13.0), (2, 13.0), (2, 13.0), (2, 15.0), (2, 15.0)];
        let (from, to) = (estimate(12.5, 0.5, 7.0), estimate(12.0, 1.0, 3.0));
        let [a, b] = estimates(rates.into_iter(), from, to).unwrap();
        assert_eq!((a.rate, a.shared.freedom, b.rate, b.freedom), (12.0, 2.0, 12.0, 3.0));
        assert!((a.shared.variance - 4.0 / 3.0).abs() < 1e-12 && a.variance == Some(0.0), "{a:?}");
        // 8 of 5 degrees of freedom, and a mean of 5/12 of 1/m.
        let within = 8.0 / 5.0 * (0.5 + 0.5 + 0.25) / 3.0;
        assert_eq!((b.shared.estimated, b.variance), (4.0, Some(1.0)));
        assert!((b.shared.variance - (4.0 - within)).abs() < 1e-12, "{b:?}");
        assert_eq!(estimates(rates[..4].iter().copied(), from, to), None, "two sessions");
    }

    #[test]
    fn sessions_vary_no_less_than_their_runs_let_them() {
        let rates = (0..3).flat_map(|session| [(session, 9.0), (session, 11.0)]);
        let [a, b] = estimates(rates, estimate(10.0, 0.2, 5.0), estimate(10.0, 1.0, 1.0)).unwrap();
        assert!((b.whole_variance().unwrap() - 1.0).abs() < 1e-12 && b.shared.estimated == 1.0, "{b:?}");
        assert!((a.shared.variance - 1.0 / 3.0).abs() < 1e-12, "{a:?}");
    }
}
