//! Passes from one window to the next, in the order that all who measure share.
//!
//! A boundary is announced to the programs before its time, and then stands. Whoever may be kept from
//! waking in time announces it late, so that it still can be put off: energy is read when it has
//! passed. Where nothing keeps anyone from waking, it can be announced when its window begins, and
//! waiting for it takes one wake less.

use joular_data::model::units::MonotonicNs;

use super::{Banks, KernelError, Programs};
use crate::clock;

/// How long before its time a boundary is best announced: enough for every CPU to
/// see it even if this process is kept waiting, short enough to wait for.
pub const LEAD_NS: u64 = 4_000_000;

/// The same for a boundary that is wanted at once. Who is kept from running for longer than this is late, which is noticed
/// and counted.
const SOON_NS: u64 = 500_000;

/// A boundary that the programs know of.
#[derive(Clone, Copy, Debug)]
pub struct Announced {
    pub boundary: MonotonicNs,
    /// Whether it could only be announced when its time had come. A CPU may then have accounted
    /// past it without knowing of it.
    was_late: bool,
}

impl Announced {
    /// Announces that the next window begins at `wanted`, or as soon as possible if that has passed. The
    /// bank of the window before the running one must have been drained.
    pub fn new(banks: &mut Banks, wanted: MonotonicNs) -> Result<Self, KernelError> {
        Self::published(banks, not_before(after(LEAD_NS / 2), wanted))
    }

    /// Announces that the next window begins as soon as possible. The same holds.
    pub fn soon(banks: &mut Banks) -> Result<Self, KernelError> {
        Self::published(banks, not_before(after(SOON_NS), MonotonicNs(0)))
    }

    fn published(banks: &mut Banks, boundary: MonotonicNs) -> Result<Self, KernelError> {
        banks.publish_boundary(boundary)?;
        Ok(Self { boundary, was_late: clock::monotonic_now() >= boundary })
    }

    /// Moves it to the soonest moment, unless it is as near.
    pub fn hasten(self, banks: &mut Banks) -> Result<Self, KernelError> {
        let soonest = not_before(after(SOON_NS), MonotonicNs(0));
        if self.boundary <= soonest {
            return Ok(self);
        }
        banks.move_boundary(soonest)?;
        Ok(Self { boundary: soonest, was_late: clock::monotonic_now() >= soonest })
    }
}

fn after(ns: u64) -> MonotonicNs {
    MonotonicNs(clock::monotonic_now().0 + ns)
}

/// The lowest bit of a boundary is its bank.
fn not_before(soonest: MonotonicNs, wanted: MonotonicNs) -> MonotonicNs {
    MonotonicNs(wanted.max(soonest).0 & !1)
}

/// A boundary that every CPU has passed.
#[derive(Debug)]
pub struct Passed<T> {
    pub boundary: MonotonicNs,
    /// When `readings` were taken.
    pub read_at: MonotonicNs,
    pub readings: T,
    /// Whether it was announced too late.
    pub was_late: bool,
    /// CPUs that were not sampled since they came back online.
    pub unsampled_cpus: u64,
}

/// Waits for a boundary, lets `read` read the meters and makes every CPU pass it, those too that came
/// online since the last one.
pub fn pass<T>(
    programs: &mut Programs,
    announced: Announced,
    read: impl FnOnce() -> T,
) -> Result<Passed<T>, KernelError> {
    let Announced { boundary, was_late } = announced;
    clock::sleep_until(boundary);
    let before = clock::monotonic_now();
    let readings = read();
    let after = clock::monotonic_now();
    let unsampled_cpus = programs.follow_hotplug()?;
    programs.pass_boundary()?;
    let read_at = MonotonicNs(before.0 + after.since(before) / 2);
    Ok(Passed { boundary, read_at, readings, was_late, unsampled_cpus })
}
