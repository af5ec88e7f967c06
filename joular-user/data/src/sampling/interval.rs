//! Computes the 95 % interval of a group's energy from sums.
//!
//! Samples come at random over a thread's CPU time. Given how many there were, the group has a share
//! `p_t` of thread *t*'s, and its energy `Σ v` has the variance `(1 − p_t) · S_t`, where `S_t` is the
//! group's `Σ v²`. Variances of threads add up: `V = Σ_t (1 − p_t) · S_t`. Three rules deal with few
//! samples:
//!
//! - Time without any sample is not part of this; `E` is the energy that samples divide, of all
//!   threads together.
//! - A thread that was seen only inside or only outside of the group has no variance, which nobody
//!   should believe. So each thread gets z² samples more (about four), of which the group has the
//!   share that it has of all threads, `p`. That changes nothing where there is one thread, and
//!   nothing noticeable where there are many samples.
//! - The interval is Wilson's, which never leaves 0 … E and holds for small shares, with the
//!   variance of the threads in the place of a single thread's:
//!   `E · (p + z²/2n ± z √(V/E² + z²/4n²)) / (1 + z²/n)`. `n = E² / Σ_t S_t`, with the squares of
//!   whole threads, is how many equal samples ours are worth.
//!
//! With the additional samples, `V = p·L − p²·Q + A − p·B`: `L` and `Q` are sums over all threads
//! ([`Threads`]), `A` and `B` over those that the group was seen in ([`Group`]).

use super::{Sampled, real};
use crate::model::units::MicroJoules;

/// Standard deviations on either side: 95 % of a normal distribution.
pub const DEVIATIONS: f64 = 1.959_963_985;
/// Samples that are added to each thread.
const PRIOR: f64 = DEVIATIONS * DEVIATIONS;

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

    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }

    /// Of the sum of two energies that samples divide independently, each with its interval. The squares of the distances
    /// from an energy to an end of its interval add up, as variances do (Zou and Donner, *Construction of confidence limits
    /// about effect measures: A general approach*, 2008). So ends that are not equally far away stay so.
    pub fn of_sum(a: (MicroJoules, Self), b: (MicroJoules, Self)) -> Self {
        let [(a, of_a), (b, of_b)] = [a, b];
        let energy = a.saturating_add(b);
        let end = |a: u64, b: u64| micro_joules(real(a).hypot(real(b)));
        let below = end(a.0.saturating_sub(of_a.low.0), b.0.saturating_sub(of_b.low.0));
        let above = end(of_a.high.0.saturating_sub(a.0), of_b.high.0.saturating_sub(b.0));
        Self { low: MicroJoules(energy.0.saturating_sub(below.0)), high: energy.saturating_add(above) }
    }

    /// Both ends in joules, for people.
    pub fn joules(&self) -> (f64, f64) {
        (self.low.joules(), self.high.joules())
    }

    /// Half of its length.
    pub const fn half(&self) -> MicroJoules {
        MicroJoules(self.high.0.saturating_sub(self.low.0) / 2)
    }

    /// The standard deviation of a normal distribution whose 95 % are as wide, µJ.
    pub fn deviation(&self) -> f64 {
        real(self.high.0.saturating_sub(self.low.0)) / 2.0 / DEVIATIONS
    }

    /// The same, rounded.
    pub fn sigma(&self) -> MicroJoules {
        micro_joules(self.deviation())
    }
}

/// Sums over all threads that a group could be in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Threads {
    energy: f64,
    squares: f64,
    /// `L` and `Q` of the module's head.
    linear: f64,
    quadratic: f64,
}

impl Threads {
    pub fn add(&mut self, thread: &Sampled) {
        let all = real(thread.samples) + PRIOR;
        let linear = PRIOR * thread.squares / all;
        self.energy += real(thread.energy.0);
        self.squares += thread.squares;
        self.linear += linear;
        self.quadratic += linear * PRIOR / all;
    }

    /// The interval of a group. Of its `energy`, samples divided `sampled`; the rest is exact.
    pub fn interval(&self, group: &Group, energy: MicroJoules, sampled: MicroJoules) -> Interval {
        let exact = energy.0.saturating_sub(sampled.0);
        if (sampled.0 == 0 && exact > 0) || self.energy <= 0.0 || self.squares <= 0.0 {
            return Interval::exact(energy);
        }
        let share = (real(sampled.0) / self.energy).min(1.0);
        let variance = share * (self.linear - share * self.quadratic) + group.constant - share * group.linear;
        let whole = self.energy * self.energy;
        let (low, high) = wilson(share, whole / self.squares, variance / whole);
        let end = |share: f64| micro_joules(share * self.energy).saturating_add(MicroJoules(exact));
        Interval { low: end(low).min(energy), high: end(high).max(energy) }
    }
}

/// Sums over the threads that a group was seen in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    /// `A` and `B` of the module's head.
    constant: f64,
    linear: f64,
}

impl Group {
    /// Adds what the group has of one of the threads.
    pub fn see(&mut self, thread: &Sampled, part: &Sampled) {
        if thread.energy.0 == 0 {
            return;
        }
        let (samples, all) = (real(thread.samples), real(thread.samples) + PRIOR);
        let share = samples * (real(part.energy.0) / real(thread.energy.0)).min(1.0) / all;
        let squares = samples * part.squares / all;
        self.constant += (1.0 - share) * squares;
        self.linear += PRIOR * (share * thread.squares + squares) / all;
    }

    pub fn plus(&mut self, other: &Self) {
        self.constant += other.constant;
        self.linear += other.linear;
    }
}

/// Samples of several threads, taken as if they were of one. Intervals are too wide where a group
/// is in some threads only.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    whole: Sampled,
    threads: Threads,
}

impl Pool {
    pub fn of(whole: Sampled) -> Self {
        let mut threads = Threads::default();
        threads.add(&whole);
        Self { whole, threads }
    }

    /// The interval of a group that has this part of the pool, and this energy.
    pub fn interval(&self, energy: MicroJoules, part: &Sampled) -> Interval {
        let mut group = Group::default();
        group.see(&self.whole, part);
        self.threads.interval(&group, energy, part.energy)
    }
}

/// Wilson's interval of a share `p` of effectively `n` samples, with this variance.
fn wilson(p: f64, n: f64, variance: f64) -> (f64, f64) {
    let z2 = PRIOR / n;
    let centre = p + z2 / 2.0;
    let half = DEVIATIONS * (variance.max(0.0) + z2 / (4.0 * n)).sqrt();
    (((centre - half) / (1.0 + z2)).max(0.0), ((centre + half) / (1.0 + z2)).min(1.0))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is an estimate")]
fn micro_joules(energy: f64) -> MicroJoules {
    MicroJoules(energy.round() as u64)
}
