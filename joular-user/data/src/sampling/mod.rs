//! Says how far a figure may be off because samples are few: one function for the terminal,
//! reports, the page and data sets.
//!
//! A thread's energy of a window is exact, and each of its samples there stands for `v = energy /
//! samples` of it. A group of call paths gets `Σ v` of its samples. [`Sampled`] keeps what the error
//! of that needs, and what adds up over paths, windows, threads and runs: `Σ v`, the number of
//! samples and `Σ v²`. A standard deviation does not add up: the only sample of a window says of the
//! group "all" or "nothing", and has a deviation of 0 either way.
//!
//! Energy that no sample divided (`[no sample]`) is in no group but its own, and is left out here.
//! Energy of such time that is given to samples of other windows counts with theirs: `v` is then
//! all that a sample stands for ([`Sampled::of`]).
//!
//! [`interval`] makes an interval of that. The tests in `coverage` count by simulation how often it holds.

mod interval;

#[cfg(test)]
mod coverage;

pub use self::interval::{DEVIATIONS, Group, Interval, Pool, Threads};
use crate::model::units::MicroJoules;

/// Energy that samples divide among paths: the base of the error of sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    pub energy: MicroJoules,
    pub samples: u64,
    /// Sum over the samples of the squared energy that each stands for, µJ².
    pub squares: f64,
}

impl Sampled {
    /// Samples of one thread, window and path that stand for this energy together. Without
    /// samples there is nothing that they divide.
    pub fn of(energy: MicroJoules, samples: u64) -> Self {
        if samples == 0 {
            return Self::default();
        }
        Self { energy, samples, squares: real(energy.0) * real(energy.0) / real(samples) }
    }

    /// Samples that stand for `per_sample` each where they are independent of others, and for this energy together.
    pub const fn standing_for(energy: MicroJoules, samples: u64, per_sample: f64) -> Self {
        Self { energy, samples, squares: real(energy.0) * per_sample }
    }

    pub fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.samples = self.samples.saturating_add(other.samples);
        self.squares += other.squares;
    }
}

#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
const fn real(value: u64) -> f64 {
    value as f64
}
