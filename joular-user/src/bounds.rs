//! Bounds on what is kept of processes and their files, and how much was cut at each.
//!
//! What others choose must not take memory or time without bound. A bound whose rest is left out is a [`Bound`]: a
//! static beside the code that cuts. `pipeline/bounds.rs` lists all, tells what was cut, and describes them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use joular_data::model::units::Pid;

/// A bound that may leave something out.
#[derive(Debug)]
pub struct Bound {
    /// The cause of loss that windows, the summary and metrics have.
    pub cause: &'static str,
    pub limit: u64,
    /// What there are at most so many of.
    pub of: &'static str,
    /// What becomes of the rest.
    pub beyond: &'static str,
    cut: AtomicU64,
    /// The process of the last cut that told of one; 0: none.
    last: AtomicU32,
}

impl Bound {
    pub const fn new(cause: &'static str, limit: u64, of: &'static str, beyond: &'static str) -> Self {
        Self { cause, limit, of, beyond, cut: AtomicU64::new(0), last: AtomicU32::new(0) }
    }

    /// Counts what is left out.
    pub fn cut(&self, count: u64) {
        self.cut.fetch_add(count, Ordering::Relaxed);
    }

    /// Counts what is left out of a process.
    pub fn cut_of(&self, pid: Pid, count: u64) {
        if count > 0 {
            self.cut(count);
            self.last.store(pid.0, Ordering::Relaxed);
        }
    }

    /// The part of a number that is within the bound. A number that others claim may be anything, so that the rest
    /// counts as one.
    pub fn within(&self, count: u64) -> u64 {
        self.cut(u64::from(count > self.limit));
        count.min(self.limit)
    }

    /// All that was left out since this program began.
    pub fn count(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// A process of which something was left out since the last call, if any is known.
    pub fn take_process(&self) -> Option<Pid> {
        Some(self.last.swap(0, Ordering::Relaxed)).filter(|pid| *pid != 0).map(Pid)
    }
}
