//! Waits for the kernel side's signal that the ring has something, or for a moment.
//!
//! The signal comes for a new stack, so that what its words mean can be read from the process while
//! that still exists: a process that ends takes its memory with it. Each reading costs, and what several
//! stacks have in common is read once for all of them. So signals are heeded with a pause between, which
//! is a hundredth of the time for which the newest target has been known: the stacks that a process may
//! take with it are of a small part of its life. A signal for what may be a new target ends the pause.
//!
//! The moment is a timer of the kernel's. Timers of the runtime wake a CPU once more on the way to a
//! moment that is more than 64 ms ahead.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
};

use joular_data::model::units::MonotonicNs;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{clock::monotonic_now, kernel::Ring};

/// Short beside the life of even a short program.
const SHORTEST_PAUSE_NS: u64 = 5_000_000;
/// Far less than the ring has room for: two seconds' samples.
const LONGEST_PAUSE_NS: u64 = 100_000_000;
/// How many pauses a target has been known for at least, but for the shortest.
const PAUSES_OF_LIFE: u64 = 100;

/// Tells when the ring has something to read, and waits between two readings.
#[derive(Debug)]
pub(super) struct Wake {
    ring: AsyncFd<OwnedFd>,
    timer: AsyncFd<OwnedFd>,
    /// When the ring was last read because of a signal.
    last: MonotonicNs,
    /// When the newest target was found.
    newest: MonotonicNs,
}

impl Wake {
    pub(super) fn new(ring: &Ring) -> io::Result<Self> {
        // SAFETY: the ring, and so its descriptor, lives longer than this borrow.
        let descriptor = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned()?;
        let timer =
            rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Self { ring: watched(descriptor)?, timer: watched(timer)?, last: MonotonicNs(0), newest: MonotonicNs(0) })
    }

    /// Notes that there is a new target, or one that executes another program.
    pub(super) fn target_found(&mut self) {
        self.newest = monotonic_now();
    }

    /// Returns at `moment`, or when there is a signal and the last one is long enough ago.
    pub(super) async fn wait(&mut self, moment: MonotonicNs) -> io::Result<()> {
        self.set(moment)?;
        tokio::select! {
            reached = self.timer.readable() => return reached.map(|mut reached| reached.clear_ready()),
            ready = self.ring.readable() => ready?.clear_ready(),
        }
        self.until(MonotonicNs(self.last.0 + SHORTEST_PAUSE_NS).min(moment)).await?;
        let now = monotonic_now();
        let end = MonotonicNs(self.last.0 + pause_ns(now.since(self.newest))).min(moment);
        if now < end {
            self.set(end)?;
            // What has not been read keeps other stacks from giving a signal.
            tokio::select! {
                reached = self.timer.readable() => reached?.clear_ready(),
                ready = self.ring.readable() => ready?.clear_ready(),
            }
        }
        self.last = monotonic_now();
        Ok(())
    }

    /// Returns at `moment`, whatever comes before.
    pub(super) async fn until(&self, moment: MonotonicNs) -> io::Result<()> {
        // A timer for the past would cost another interrupt.
        if moment <= monotonic_now() {
            return Ok(());
        }
        self.set(moment)?;
        self.timer.readable().await?.clear_ready();
        Ok(())
    }

    /// Sets the timer, which forgets that it was reached before.
    fn set(&self, moment: MonotonicNs) -> io::Result<()> {
        // Zero would stop the timer.
        let at = std::time::Duration::from_nanos(moment.0.max(1));
        let value = Timespec::try_from(at).map_err(|_| io::ErrorKind::InvalidInput)?;
        let setting = Itimerspec { it_interval: Timespec::default(), it_value: value };
        rustix::time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }
}

/// How long a stack may wait if no target is younger than this.
fn pause_ns(youngest_ns: u64) -> u64 {
    (youngest_ns / PAUSES_OF_LIFE).clamp(SHORTEST_PAUSE_NS, LONGEST_PAUSE_NS)
}

fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is the same one as long as it lives.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_with_the_age_of_the_youngest_target() {
        let ms = |ms: u64| ms * 1_000_000;
        for (age_ms, pause_ms) in [(0, 5), (400, 5), (1_000, 10), (5_000, 50), (10_000, 100), (3_600_000, 100)] {
            assert_eq!(pause_ns(ms(age_ms)), ms(pause_ms), "{age_ms} ms");
        }
    }
}
