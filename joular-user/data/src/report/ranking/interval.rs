//! Computes how far a figure may be off because samples are few.
//!
//! A thread's energy is exact; samples tell what part of it a group of its paths has. The formula
//! is that of [`crate::report::profile`], per thread *t*, its share `p_t` and the whole's variance
//! `V = Σ_t (1 − p_t) · S_t`, where `S_t` is the group's Σ energy² / samples. Three rules deal with
//! few samples:
//!
//! - Time without any sample (`[no sample]`) is exact: it is in no group but its own, and
//!   what follows is about the rest, of all threads together `E`.
//! - A thread that was seen only inside or only outside of the group has no variance,
//!   which nobody should believe. So each thread gets z² samples more (about
//!   four), of which the group has the share that it has of all
//!   threads, `p`. That changes nothing where there is one thread, and nothing
//!   noticeable where there are many samples.
//! - The interval is Wilson's, which never leaves 0 … E and holds for small shares,
//!   with the variance of the threads in the place of a single thread's:
//!   `E · (p + z²/2n ± z √(V/E² + z²/4n²)) / (1 + z²/n)`. `n = E² / Σ_t S_t`, with the squares of
//!   whole threads, is how many equal samples ours are worth.

use crate::{model::units::MicroJoules, report::profile::Sampled};

/// Standard deviations on either side: 95 % of a normal distribution.
const Z: f64 = 1.959_963_985;
/// Samples that are added to each thread beforehand.
const PRIOR: f64 = Z * Z;

/// A figure's 95 % interval; exact if both ends are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    pub low: MicroJoules,
    pub high: MicroJoules,
}

impl Interval {
    pub const fn exact(energy: MicroJoules) -> Self {
        Self { low: energy, high: energy }
    }
}

/// Threads that a group could be in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Threads {
    energy: f64,
    /// Sum of the threads' own.
    squares: f64,
    /// Variance if none of them were seen in the group: `p · linear − p² · quadratic`.
    linear: f64,
    quadratic: f64,
}

impl Threads {
    pub fn add(&mut self, thread: &Sampled) {
        let (linear, quadratic) = unseen(thread);
        self.energy += real(thread.energy.0);
        self.squares += thread.squares;
        self.linear += linear;
        self.quadratic += quadratic;
    }

    /// Starts an estimate of a group with this sampled energy.
    pub fn group(&self, energy: MicroJoules) -> Estimate {
        let share = if self.energy > 0.0 { (real(energy.0) / self.energy).min(1.0) } else { 0.0 };
        Estimate { threads: *self, share, variance: share * self.linear - share * share * self.quadratic }
    }
}

fn unseen(thread: &Sampled) -> (f64, f64) {
    let all = real(thread.samples) + PRIOR;
    (PRIOR * thread.squares / all, PRIOR * PRIOR * thread.squares / (all * all))
}

/// A group's share of its threads, and how certain it is.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    threads: Threads,
    share: f64,
    variance: f64,
}

impl Estimate {
    /// Adds what the group has of one of the threads.
    pub fn see(&mut self, thread: &Sampled, part: &Sampled) {
        if thread.energy.0 == 0 {
            return;
        }
        let (linear, quadratic) = unseen(thread);
        let (samples, all) = (real(thread.samples), real(thread.samples) + PRIOR);
        let share = (samples * (real(part.energy.0) / real(thread.energy.0)).min(1.0) + PRIOR * self.share) / all;
        let squares = (samples * part.squares + PRIOR * self.share * thread.squares) / all;
        self.variance += (1.0 - share) * squares - (self.share * linear - self.share * self.share * quadratic);
    }

    /// The interval around a group's energy, of which `sampled` is the energy that it was started
    /// with; the rest is exact.
    pub fn interval(&self, energy: MicroJoules, sampled: MicroJoules) -> Interval {
        let exact = energy.0.saturating_sub(sampled.0);
        if sampled.0 == 0 && exact > 0 {
            return Interval::exact(energy);
        }
        let whole = self.threads.energy;
        if whole <= 0.0 || self.threads.squares <= 0.0 {
            return Interval::exact(energy);
        }
        let (low, high) = wilson(self.share, whole * whole / self.threads.squares, self.variance / (whole * whole));
        let end = |share: f64| micro_joules(share * whole).saturating_add(MicroJoules(exact));
        Interval { low: end(low).min(energy), high: end(high).max(energy) }
    }
}

/// Wilson's interval of a share `p` of effectively `n` samples, with this variance.
fn wilson(p: f64, n: f64, variance: f64) -> (f64, f64) {
    let z2 = Z * Z / n;
    let centre = p + z2 / 2.0;
    let half = Z * (variance.max(0.0) + z2 / (4.0 * n)).sqrt();
    (((centre - half) / (1.0 + z2)).max(0.0), ((centre + half) / (1.0 + z2)).min(1.0))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is an estimate")]
fn micro_joules(energy: f64) -> MicroJoules {
    MicroJoules(energy.round() as u64)
}

#[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
const fn real(value: u64) -> f64 {
    value as f64
}
