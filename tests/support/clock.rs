//! Reads clocks, and waits for a condition with a limit.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use rustix::time::{ClockId, clock_gettime};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(5);

/// Now on the clock of windows and of Java's `System.nanoTime`.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Now as the data set writes it: microseconds since 1970 UTC.
pub fn unix_us() -> i64 {
    (nanoseconds(ClockId::Realtime) / 1000) as i64
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Asks `probe` until it answers. `what` completes "waited … for".
pub fn wait_for<T>(what: &str, limit: Duration, probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    wait_between(POLL, what, limit, probe)
}

/// The same for a probe that costs something: it is asked again after a pause.
pub fn wait_between<T>(
    pause: Duration,
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(found) = probe()? {
            return Ok(found);
        }
        if Instant::now() > end {
            bail!("waited {limit:?} for {what}, in vain");
        }
        thread::sleep(pause);
    }
}
