//! Shares out what a thread spent in windows in which no sample hit it.
//!
//! Time and energy of a thread are exact in every window, samples are few. A thread that uses little
//! of a CPU has none in most windows, though over a minute it has enough to say what it does. What is
//! recorded stays as it is; whoever sums windows shares those without a sample out by samples of other
//! windows, in four steps:
//!
//! 1. Nearest in time ([`Nearest`]): windows of the thread with exactly one sample, up to [`HORIZON`]
//!    windows away on either side, nearest first, until there are [`ENOUGH`].
//! 2. What finds none there goes by all windows of the thread with exactly one sample, or if it has
//!    none, by all of its samples ([`divide`]).
//! 3. Of a thread without any, by those of threads with its name in its process (also [`divide`]).
//! 4. If these have none and the thread is one that JVMs have for themselves, by those of threads with
//!    its name in other JVMs of the same version and collector: they run the same code (also
//!    [`divide`]).
//!
//! What is left then has no sample that says anything about it, and stays `[no sample]`.
//!
//! # Which samples stand for windows without any
//! Windows in which a thread ran long have many samples, and windows without a sample are seldom of
//! that kind. If a thread works hard for a second and does something else in small bits for a minute,
//! the samples of that second say little of the minute. Samples come at random in CPU time, so the CPU
//! time of windows without a sample is expected to be what one sample stands for, times the number of
//! windows with *exactly one*, and it is spent in the same way (Good and Turing's estimate of what was
//! never seen). So these windows speak first. A window is seldom without a sample where windows with one
//! are far: where a thread is expected to have *m* samples in a window, windows with one are *m* times as
//! frequent as windows with none.
//!
//! # Error
//! No sample is new, but each counts for more. If a sample stands for `w` and gets `d` more, the sum
//! of squares that the error of sampling starts from grows by `(w + d)² − w²` ([`Share::squares`]).

mod nearest;

use crate::model::units::{MicroJoules, UnixMicros};

pub use super::split::apportion;
pub use nearest::{Nearest, distance};

/// Windows on either side in which a thread's nearest windows with one sample are looked for.
pub const HORIZON: u64 = 30;
/// Windows with one sample by which a window is shared out. One would do on the average, but gives
/// samples beside long gaps much more weight than others, and so less certain sums.
pub const ENOUGH: usize = 4;

/// What a thread spent in a window without a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsampled {
    pub start: UnixMicros,
    pub length_ns: u64,
    pub energy: MicroJoules,
    pub cpu_ns: u64,
}

/// A part of it, for a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share<P> {
    pub path: P,
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    /// By how much the sum of squared energies that samples stand for grows, µJ².
    pub squares: f64,
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
