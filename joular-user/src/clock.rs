//! Reads the two clocks: monotonic for windows, wall-clock for people.

use joular_data::model::units::{MonotonicNs, UnixMicros};
use rustix::time::{ClockId, clock_gettime};

/// Now on the clock that the eBPF programs use.
pub fn monotonic_now() -> MonotonicNs {
    MonotonicNs(nanoseconds(ClockId::Monotonic))
}

/// How far the clock of start times is ahead of the monotonic one. It goes on while the machine is
/// suspended.
pub fn boottime_offset_ns() -> u64 {
    let monotonic_ns = nanoseconds(ClockId::Monotonic);
    nanoseconds(ClockId::Boottime).saturating_sub(monotonic_ns)
}

/// CPU time of this process, all its threads, so far.
pub fn own_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

#[allow(clippy::cast_sign_loss, reason = "clocks that start at boot are never negative")]
fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Wall-clock time of a monotonic moment, by the offset between the clocks now.
#[allow(clippy::cast_possible_wrap, reason = "monotonic nanoseconds stay below 2^63 for 292 years")]
pub fn unix_micros_at(moment: MonotonicNs) -> UnixMicros {
    let real = clock_gettime(ClockId::Realtime);
    let real_ns = i128::from(real.tv_sec) * 1_000_000_000 + i128::from(real.tv_nsec);
    let ago_ns = i128::from(monotonic_now().0) - i128::from(moment.0);
    UnixMicros(i64::try_from((real_ns - ago_ns) / 1000).unwrap_or(0))
}

/// Sleeps until a moment a few milliseconds ahead, on the thread itself, because a window's
/// boundary must be met to the microsecond.
pub fn sleep_until(moment: MonotonicNs) {
    loop {
        let left = moment.since(monotonic_now());
        if left == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_nanos(left));
    }
}
