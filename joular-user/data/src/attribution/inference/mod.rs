//! Divides what a thread spent in light windows, in which few samples hit it or none, by samples of several windows.
//!
//! Time and energy of a thread are exact in every window, samples are few. A thread that uses little
//! of a CPU has one or two in a window, or none in most, though over a minute it has enough to say what it does. What is
//! recorded stays as it is; whoever sums windows divides light ones anew:
//!
//! 1. Windows in which so many samples are expected that they speak for themselves stay as they are.
//! 2. The other windows of a thread join, in the order of time, into strata of 16 expected samples ([`Strata`]). Each sample
//!    stands for as much CPU time as any other, so a stratum's time goes to its samples alike, and its energy by the power of the
//!    windows that they are from. Strata are cut by samples that are *expected* of CPU time: cutting by those that were found
//!    would give samples after long gaps more weight than others.
//! 3. A stratum that comes to fewer than eight before a minute's windows are over joins the one before it. If there is
//!    none, it is left to what is known of the thread in the whole run: samples of all windows that are left, if eight are expected of
//!    them, else those of all its light windows, else all of its samples.
//! 4. Of a thread without any sample, by those of threads with its name in its process ([`divide`]).
//! 5. If these have none and the thread is one that JVMs have for themselves, by those of threads with
//!    its name in other JVMs of the same version and collector: they run the same code.
//!
//! What is left then has no sample that says anything about it, and stays `[no sample]`.
//!
//! # Why heavy windows do not speak for light ones
//! If a thread works hard for a second and does something else in small bits for a minute, the samples of that second say
//! little of the minute.
//!
//! # Error
//! Where a sample stands for `w`, it adds `w²` to the sum of squares that the error of sampling starts from
//! ([`Share::squares`]). If it stands for `w` already and gets `d` more of what is left, that sum grows by `(w + d)² − w²`. `simulation`
//! compares the rule with others.

#[cfg(test)]
mod simulation;
mod strata;
#[cfg(test)]
mod strata_tests;

use crate::model::units::MicroJoules;

pub use super::split::apportion;
pub use strata::{HORIZON, Pace, Recorded, Spent, Strata, Stratum};

/// A part of what light windows spent, for a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share<P> {
    pub path: P,
    pub energy: MicroJoules,
    /// Part of it that is of windows without a sample.
    pub inferred: MicroJoules,
    pub cpu_ns: u64,
    /// What it adds to the sum of squared energies that samples stand for, µJ².
    pub squares: f64,
}

impl<P> Share<P> {
    /// What no sample says anything about.
    pub const fn nameless(path: P, spent: Spent) -> Self {
        let Spent { energy, cpu_ns } = spent;
        Self { path, energy, inferred: MicroJoules(0), cpu_ns, squares: 0.0 }
    }
}

/// Samples of a path, and the energy that all of them stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen<P> {
    pub path: P,
    pub samples: u64,
    pub energy: MicroJoules,
}

/// Divides time and energy by samples, whole units by largest remainder, ties to those that come
/// first. Nothing if there is no sample.
#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
pub fn divide<P: Copy>(energy: MicroJoules, cpu_ns: u64, seen: &[Seen<P>]) -> Vec<Share<P>> {
    let samples: Vec<u64> = seen.iter().map(|seen| seen.samples).collect();
    let all = samples.iter().fold(0_u64, |sum, samples| sum.saturating_add(*samples));
    if all == 0 {
        return Vec::new();
    }
    let more = energy.0 as f64 / all as f64;
    let (energies, times) = (apportion(energy.0, &samples), apportion(cpu_ns, &samples));
    let share = |((seen, energy), cpu_ns): ((&Seen<P>, u64), u64)| Share {
        path: seen.path,
        energy: MicroJoules(energy),
        inferred: MicroJoules(energy),
        cpu_ns,
        squares: growth(seen.samples, seen.energy.0 as f64 / seen.samples.max(1) as f64, more),
    };
    seen.iter().zip(energies).zip(times).map(share).collect()
}

/// By how much squares grow if each of these samples stands for `more` beside what it did.
#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
fn growth(samples: u64, energy: f64, more: f64) -> f64 {
    samples as f64 * more * (2.0 * energy + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_the_whole_and_go_by_samples() {
        let seen = [("a", 2, 50), ("b", 1, 10)].map(|(path, samples, energy)| Seen {
            path,
            samples,
            energy: MicroJoules(energy),
        });
        let shares = divide(MicroJoules(100), 7, &seen);
        let parts: Vec<_> = shares.iter().map(|share| (share.path, share.energy.0, share.cpu_ns)).collect();
        assert_eq!(parts, [("a", 67, 5), ("b", 33, 2)]);
        assert_eq!(divide::<()>(MicroJoules(100), 7, &[]), []);
    }

    /// Three samples of 20 µJ that get 10 µJ each are three of 30 µJ, and not six of anything.
    #[test]
    fn samples_count_for_more_and_do_not_become_more() {
        let seen = [Seen { path: "a", samples: 3, energy: MicroJoules(60) }];
        let [share] = divide(MicroJoules(30), 0, &seen)[..] else { panic!("one share") };
        let (before, after) = (3.0 * 20.0_f64.powi(2), 3.0 * 30.0_f64.powi(2));
        assert!((before + share.squares - after).abs() < 1e-9);
    }
}
