//! Tests that a check against a baseline holds what it promises where sessions differ more than the runs in them: on
//! thousands of simulated checks whose truth is known.
//!
//! `cargo test -p joular-data session_simulation -- --nocapture` prints the tables of docs/measured/statistics.md.

use super::{
    estimate::{Estimate, Replicates},
    sessions::{self, MIN_SESSIONS},
    verdict::{self, Change, LEVEL, Verdict},
};
use crate::noise::Noise;

const CHECKS: u32 = 4_000;

/// Of checks of what did not change, the share that may be called changed.
const MOST_WRONG: f64 = 0.06;

/// The same where the runs of both sides are not alike.
const MOST_OF_OTHERS: f64 = 0.07;

/// The share that may exceed a gate at 5 %: with fewer than three sessions, when it rests on the noise of runs only, and
/// with more.
const MOST_ABOVE: [f64; 2] = [0.07, 0.01];

/// Standard deviation of runs within a session, as a part of the mean.
const OF_RUNS: f64 = 0.02;

const OF_SESSIONS: [f64; 4] = [0.0, 0.01, 0.02, 0.03];

/// A check, as it is simulated.
#[derive(Clone, Copy)]
struct Case {
    sessions: usize,
    /// Standard deviation of sessions, as a part of the mean.
    of_sessions: f64,
    /// Runs of each session of the baseline, and of what is checked.
    runs: [usize; 2],
    /// Standard deviation of the runs of what is checked.
    of_checked: f64,
    /// What is checked needs so much more.
    more: f64,
}

impl Case {
    const fn of(sessions: usize, of_sessions: f64) -> Self {
        Self { sessions, of_sessions, runs: [10, 10], of_checked: OF_RUNS, more: 0.0 }
    }

    /// Estimates of both sides by their runs, and with sessions, if there are enough.
    fn estimates(&self, noise: &mut Noise) -> ([Estimate; 2], Option<[Estimate; 2]>) {
        let [of_a, of_b] = self.runs;
        let mut of_a_session = vec![];
        for session in 0..self.sessions {
            let mean = 100.0 * (1.0 + self.of_sessions * noise.normal());
            of_a_session.extend((0..of_a).map(|_| (session, mean * (1.0 + OF_RUNS * noise.normal()))));
        }
        let mean = 100.0 * (1.0 + self.more) * (1.0 + self.of_sessions * noise.normal());
        let rates_of_b = (0..of_b).map(|_| mean * (1.0 + self.of_checked * noise.normal())).collect();
        let by_runs = |rates: Vec<f64>| {
            Replicates::of_runs(vec![1.0; rates.len()])
                .estimate(&rates.into_iter().enumerate().collect::<Vec<_>>(), 0.0)
        };
        let a = by_runs(of_a_session.iter().map(|(_, rate)| *rate).collect());
        let b = by_runs(rates_of_b);
        ([a, b], sessions::estimates(of_a_session.into_iter(), a, b))
    }

    /// Share of checks for which this holds of the sides' estimates; whether sessions are known.
    fn share(&self, holds: impl Fn([Estimate; 2], bool) -> bool) -> f64 {
        let mut noise = Noise(17);
        let mut count = 0;
        for _ in 0..CHECKS {
            let (by_runs, by_sessions) = self.estimates(&mut noise);
            count += u32::from(holds(by_sessions.unwrap_or(by_runs), by_sessions.is_some()));
        }
        f64::from(count) / f64::from(CHECKS)
    }

    fn is_called_changed(&self) -> f64 {
        self.share(|[a, b], knows_sessions| {
            let mut change = Change::between(a, b);
            verdict::judge(std::iter::once(&mut change), 0.05);
            let verdict = if knows_sessions { change.verdict } else { change.verdict.of_one_session() };
            matches!(verdict, Verdict::More | Verdict::Less)
        })
    }

    /// How often B is found to need more.
    fn is_found(&self) -> f64 {
        self.share(|[a, b], _| b.rate > a.rate && verdict::chance(a, b, 1.0) <= LEVEL)
    }

    fn is_above_the_gate(&self) -> f64 {
        self.share(|[a, b], _| is_above(a, b))
    }

    /// Whether the interval of the relative change has the truth in it.
    fn is_covered(&self) -> f64 {
        self.share(|[a, b], _| {
            Change::between(a, b).relative.is_some_and(|(low, high)| low <= self.more && self.more <= high)
        })
    }
}

/// Whether a gate at 5 % fails.
fn is_above(a: Estimate, b: Estimate) -> bool {
    verdict::chance_above(a, b, 1.05) <= LEVEL
}

#[test]
fn a_check_seldom_calls_the_difference_of_sessions_a_change() {
    for sessions in [1, 2, 3, 5, 8] {
        for of_sessions in OF_SESSIONS {
            let case = Case::of(sessions, of_sessions);
            let (wrong, above) = (case.is_called_changed(), case.is_above_the_gate());
            println!("{sessions} sessions that vary by {of_sessions}: {wrong:.4} wrong, {above:.4} above the gate");
            let most_above = MOST_ABOVE[usize::from(sessions >= MIN_SESSIONS)];
            assert!(wrong <= MOST_WRONG && above <= most_above, "{sessions} sessions, {of_sessions}: {wrong} {above}");
        }
    }
}

/// What `check` did before baselines had sessions. `diff` does so still, and says it.
#[test]
fn sessions_that_are_taken_for_runs_would_err_many_times_as_often() {
    for (of_sessions, range) in OF_SESSIONS.into_iter().zip([0.03..0.06, 0.2..0.35, 0.45..0.6, 0.6..0.75]) {
        let (mut noise, mut wrong) = (Noise(17), 0);
        for _ in 0..CHECKS {
            let ([a, b], _) = Case::of(1, of_sessions).estimates(&mut noise);
            wrong += u32::from(verdict::chance(a, b, 1.0) <= LEVEL);
        }
        let wrong = f64::from(wrong) / f64::from(CHECKS);
        println!("sessions that vary by {of_sessions}, by runs alone: {wrong:.4} wrong");
        assert!(range.contains(&wrong), "{of_sessions}: {wrong}");
    }
}

#[test]
fn runs_that_are_fewer_or_vary_more_than_the_baselines_err_little_more_often() {
    let others = [([10, 3], 1.0), ([3, 10], 1.0), ([1, 3], 1.0), ([10, 3], 2.0), ([10, 10], 3.0)];
    for sessions in [3, 8] {
        for of_sessions in OF_SESSIONS {
            let wrong = others.map(|(runs, times)| {
                let case = Case { runs, of_checked: times * OF_RUNS, ..Case::of(sessions, of_sessions) };
                case.share(|[a, b], _| verdict::chance(a, b, 1.0) <= LEVEL)
            });
            println!("{sessions} sessions that vary by {of_sessions}: {wrong:.4?} wrong of {others:?}");
            assert!(wrong.iter().all(|wrong| *wrong <= MOST_OF_OTHERS), "{sessions} {of_sessions}: {wrong:?}");
        }
    }
}

#[test]
fn a_change_is_found_the_surer_the_more_sessions_there_are() {
    for more in [0.05, 0.1] {
        let mut before = [0.0; 4];
        for sessions in [3, 5, 8] {
            let cases = OF_SESSIONS.map(|of_sessions| Case { more, ..Case::of(sessions, of_sessions) });
            let found = cases.map(|case| case.is_found());
            let above = cases.map(|case| case.is_above_the_gate());
            let covered = cases.map(|case| case.is_covered());
            println!(
                "{sessions} sessions, {more} more: {found:.3?} found, {above:.3?} above the gate, {covered:.3?} covered"
            );
            assert!(found.iter().zip(&before).all(|(found, before)| found >= before), "{sessions} sessions, {more}");
            // What a session multiplies is larger in B, whose sessions are taken to vary as A's do.
            assert!(covered.iter().all(|covered| *covered >= 0.93), "{sessions} sessions, {more}: {covered:?}");
            before = found;
        }
        // Eight sessions that vary by 1 % find a twentieth, and by 2 % a tenth.
        let found = if more < 0.1 { before[1] } else { before[2] };
        assert!(found > 0.9, "{more}: {found}");
    }
}
