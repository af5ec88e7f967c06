//! Waits for the kernel side's signal that the ring has something, or for a moment.
//!
//! The signal comes for a new stack, so that what its words mean can be read from the process while
//! that still exists: a process that ends takes its memory with it. Each reading costs, and what several
//! stacks have in common is read once for all of them. So signals are heeded with a pause between, which
//! is a hundredth of the time for which the newest target has been known: the stacks that a process may
//! take with it are of a small part of its life. A signal for what may be a new target ends the pause.
//!
//! Where names do not decide who is a target, every program that is executed may be one. While there are many that are
//! none, no signal ends the pause, and none wakes this process: the ring is not watched.
//!
//! The moment is a timer of the kernel's. Timers of the runtime wake a CPU once more on the way to a
//! moment that is more than 64 ms ahead.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
};

use joular_data::model::units::MonotonicNs;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use tokio::io::{Interest, unix::AsyncFd};

use crate::{clock::monotonic_now, kernel::Ring};

/// Short beside the life of even a short program.
const SHORTEST_PAUSE_NS: u64 = 5_000_000;
/// Far less than the ring has room for: two seconds' samples.
const LONGEST_PAUSE_NS: u64 = 100_000_000;
/// Longest while many programs are executed that are not targets: one of them may be.
const LONGEST_PAUSE_IN_CROWD_NS: u64 = 40_000_000;
/// How many pauses a target has been known for at least, but for the shortest.
const PAUSES_OF_LIFE: u64 = 100;

/// Tells when the ring has something to read, and waits between two readings.
#[derive(Debug)]
pub(super) struct Wake {
    descriptor: Arc<OwnedFd>,
    /// `None`: it is not watched.
    ring: Option<AsyncFd<Arc<OwnedFd>>>,
    timer: Timer,
    strangers: Strangers,
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
        Ok(Self {
            descriptor: Arc::new(descriptor),
            ring: None,
            timer: watched(Arc::new(timer))?,
            strangers: Strangers::default(),
            last: MonotonicNs(0),
            newest: MonotonicNs(0),
        })
    }

    /// Notes how many processes were told of that might have been new targets and are none.
    pub(super) fn strangers_came(&mut self, count: u64) {
        self.strangers.came(count, monotonic_now());
    }

    /// Notes that there is a new target, or one that executes another program.
    pub(super) fn target_found(&mut self) {
        self.newest = monotonic_now();
    }

    /// Returns at `moment`, or when there is a signal and the last one is long enough ago.
    pub(super) async fn wait(&mut self, moment: MonotonicNs) -> io::Result<()> {
        if self.strangers.are_crowd(monotonic_now()) {
            self.ring = None;
            let pause = pause_ns(monotonic_now().since(self.newest)).min(LONGEST_PAUSE_IN_CROWD_NS);
            self.until(MonotonicNs(self.last.0 + pause).min(moment)).await?;
            self.last = monotonic_now();
            return Ok(());
        }
        // What is in the ring already is told of at once.
        let ring = match self.ring.take() {
            Some(ring) => ring,
            None => watched(Arc::clone(&self.descriptor))?,
        };
        let ring = self.ring.insert(ring);
        set(&self.timer, moment)?;
        tokio::select! {
            reached = self.timer.readable() => return reached.map(|mut reached| reached.clear_ready()),
            ready = ring.readable() => ready?.clear_ready(),
        }
        until(&self.timer, MonotonicNs(self.last.0 + SHORTEST_PAUSE_NS).min(moment)).await?;
        let now = monotonic_now();
        let end = MonotonicNs(self.last.0 + pause_ns(now.since(self.newest))).min(moment);
        if now < end {
            set(&self.timer, end)?;
            // What has not been read keeps other stacks from giving a signal.
            tokio::select! {
                reached = self.timer.readable() => reached?.clear_ready(),
                ready = ring.readable() => ready?.clear_ready(),
            }
        }
        self.last = monotonic_now();
        Ok(())
    }

    /// Returns at `moment`, whatever comes before.
    pub(super) async fn until(&self, moment: MonotonicNs) -> io::Result<()> {
        until(&self.timer, moment).await
    }
}

/// Processes that might have been new targets and are none: how many there were lately.
#[derive(Debug, Default)]
struct Strangers {
    count: u64,
    at: MonotonicNs,
}

impl Strangers {
    /// So many a second are not a crowd.
    const PER_S: u64 = 20;
    /// So many at once are none.
    const AT_ONCE: u64 = 40;

    fn came(&mut self, count: u64, now: MonotonicNs) {
        self.forget(now);
        self.count = (self.count + count).min(2 * Self::AT_ONCE);
    }

    fn are_crowd(&mut self, now: MonotonicNs) -> bool {
        self.forget(now);
        self.count > Self::AT_ONCE
    }

    fn forget(&mut self, now: MonotonicNs) {
        const FORGET_NS: u64 = 1_000_000_000 / Strangers::PER_S;
        let forgotten = now.since(self.at) / FORGET_NS;
        self.count = self.count.saturating_sub(forgotten);
        self.at = if self.count == 0 { now } else { MonotonicNs(self.at.0 + forgotten * FORGET_NS) };
    }
}

type Timer = AsyncFd<Arc<OwnedFd>>;

async fn until(timer: &Timer, moment: MonotonicNs) -> io::Result<()> {
    // A timer for the past would cost another interrupt.
    if moment <= monotonic_now() {
        return Ok(());
    }
    set(timer, moment)?;
    timer.readable().await?.clear_ready();
    Ok(())
}

/// Sets the timer, which forgets that it was reached before.
fn set(timer: &Timer, moment: MonotonicNs) -> io::Result<()> {
    // Zero would stop the timer.
    let at = std::time::Duration::from_nanos(moment.0.max(1));
    let value = Timespec::try_from(at).map_err(|_| io::ErrorKind::InvalidInput)?;
    let setting = Itimerspec { it_interval: Timespec::default(), it_value: value };
    rustix::time::timerfd_settime(timer.get_ref(), TimerfdTimerFlags::ABSTIME, &setting)?;
    Ok(())
}

/// How long a stack may wait if no target is younger than this.
fn pause_ns(youngest_ns: u64) -> u64 {
    (youngest_ns / PAUSES_OF_LIFE).clamp(SHORTEST_PAUSE_NS, LONGEST_PAUSE_NS)
}

fn watched(descriptor: Arc<OwnedFd>) -> io::Result<AsyncFd<Arc<OwnedFd>>> {
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

    #[test]
    fn strangers_are_a_crowd_while_many_come_and_for_two_seconds_after() {
        let ms = |ms: u64| MonotonicNs(1_000_000_000_000 + ms * 1_000_000);
        let mut strangers = Strangers::default();
        strangers.came(Strangers::AT_ONCE, ms(0));
        assert!(!strangers.are_crowd(ms(0)));
        // Ten in a second are forgotten as they come.
        (0..100).for_each(|tenth| strangers.came(1, ms(100 * tenth)));
        assert!(!strangers.are_crowd(ms(9_900)));
        (0..30).for_each(|_| strangers.came(1_500, ms(10_000)));
        assert!(strangers.are_crowd(ms(10_000)) && strangers.are_crowd(ms(11_900)));
        assert!(!strangers.are_crowd(ms(12_100)));
    }
}
