//! Passes from one window to the next, in the order that all who measure share.

use joular_data::model::units::MonotonicNs;

use super::{Banks, KernelError, Programs};
use crate::clock;

/// How long before its time a boundary is published: enough for every CPU to
/// see it even if this process is kept waiting, short enough to wait for.
pub const LEAD_NS: u64 = 4_000_000;

/// A boundary that every CPU has passed.
#[derive(Debug)]
pub struct Passed<T> {
    pub boundary: MonotonicNs,
    /// When `readings` were taken.
    pub read_at: MonotonicNs,
    pub readings: T,
    /// Whether it could only be published when its time had come. A CPU may then have accounted
    /// past it without knowing of it.
    pub was_late: bool,
}

/// Publishes a boundary at `wanted` (or as soon as possible, if that has
/// passed), waits for it, lets `read` read the meters and makes every CPU pass
/// it.
pub fn pass<T>(
    programs: &Programs,
    banks: &mut Banks,
    wanted: MonotonicNs,
    read: impl FnOnce() -> T,
) -> Result<Passed<T>, KernelError> {
    let soonest = clock::monotonic_now().0 + LEAD_NS / 2;
    let boundary = MonotonicNs(wanted.0.max(soonest) & !1);
    banks.publish_boundary(boundary)?;
    let was_late = clock::monotonic_now() >= boundary;
    clock::sleep_until(boundary);
    let before = clock::monotonic_now();
    let readings = read();
    let after = clock::monotonic_now();
    programs.pass_boundary()?;
    let read_at = MonotonicNs(before.0 + after.since(before) / 2);
    Ok(Passed { boundary, read_at, readings, was_late })
}
