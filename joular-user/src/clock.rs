//! Reads the clocks: monotonic for windows, wall-clock for people, and the one that goes on while the
//! machine is suspended.

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

/// The clocks against each other, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// How long the machine was suspended since it started: time since boot minus monotonic time.
    pub suspended_ns: u64,
    /// Wall-clock time minus time since boot. Only setting the clock changes it.
    pub wall_minus_boot_ns: i64,
}

impl Clocks {
    /// Shorter suspends and steps of a clock do not count, because clocks are not read at one moment.
    pub const LEAST_NS: u64 = 1_000_000;

    /// How long the machine was suspended since it had been for `earlier_ns`.
    pub const fn suspended_since(self, earlier_ns: u64) -> u64 {
        let later = self.suspended_ns.saturating_sub(earlier_ns);
        if later < Self::LEAST_NS { 0 } else { later }
    }

    /// Reads them one after the other. Whoever is interrupted in between tries again.
    #[allow(clippy::cast_possible_wrap, reason = "nanoseconds stay below 2^63 for 292 years")]
    pub fn now() -> Self {
        const TRIES: usize = 5;
        const QUICK_NS: u64 = 20_000;
        let mut best = (u64::MAX, Self::default());
        for _ in 0..TRIES {
            let before = nanoseconds(ClockId::Monotonic);
            let boot = nanoseconds(ClockId::Boottime);
            let wall = clock_gettime(ClockId::Realtime);
            let took_ns = nanoseconds(ClockId::Monotonic).saturating_sub(before);
            let wall_ns = wall.tv_sec.saturating_mul(1_000_000_000).saturating_add(wall.tv_nsec);
            let clocks = Self {
                suspended_ns: boot.saturating_sub(before),
                wall_minus_boot_ns: wall_ns.saturating_sub(boot as i64),
            };
            if took_ns < best.0 {
                best = (took_ns, clocks);
            }
            if took_ns < QUICK_NS {
                break;
            }
        }
        best.1
    }
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
