//! Sets the wall clock for a while, as a time service does that finds it wrong.

use anyhow::{Context as _, Result};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};

/// By how much the wall clock is ahead of the one that nobody sets.
fn ahead_ns() -> i128 {
    nanoseconds(clock_gettime(ClockId::Realtime)) - nanoseconds(clock_gettime(ClockId::Monotonic))
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// The wall clock, set back to what it would show when dropped.
pub struct WallClock {
    ahead_ns: i128,
}

impl WallClock {
    /// As it is.
    pub fn now() -> Self {
        Self { ahead_ns: ahead_ns() }
    }

    /// Makes it show so much more, or less, than it would.
    pub fn step(&self, by_ns: i128) -> Result<()> {
        let now = nanoseconds(clock_gettime(ClockId::Monotonic)) + self.ahead_ns + by_ns;
        let (seconds, nanoseconds) = (now.div_euclid(1_000_000_000), now.rem_euclid(1_000_000_000));
        let time = Timespec { tv_sec: i64::try_from(seconds)?, tv_nsec: i64::try_from(nanoseconds)? };
        clock_settime(ClockId::Realtime, time).context("setting the wall clock")
    }
}

impl Drop for WallClock {
    fn drop(&mut self) {
        // A machine that does not let it be set back did not let it be set.
        let _back = self.step(0);
    }
}
