//! Waits for the kernel side's signal that the ring has something.
//!
//! The signal comes for a new stack, so that what its words mean can be read from the process while
//! that still exists: a process that ends takes its memory with it. Reading again at once would
//! cost more than it gains, so signals are heeded with a pause between.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, OwnedFd},
    time::Duration,
};

use tokio::{
    io::{Interest, unix::AsyncFd},
    time::{Instant, sleep, sleep_until},
};

use crate::kernel::Ring;

/// Longest time that a stack may wait: short beside the life of even a short program.
const PAUSE: Duration = Duration::from_millis(5);

/// Tells when the ring has something to read, and waits between two readings.
#[derive(Debug)]
pub(super) struct Wake {
    ring: AsyncFd<OwnedFd>,
    /// When the ring was last read because of a signal.
    last: Instant,
}

impl Wake {
    pub(super) fn new(ring: &Ring) -> io::Result<Self> {
        // SAFETY: the ring, and so its descriptor, lives longer than this borrow.
        let descriptor = unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned()?;
        // SAFETY: an owned descriptor is the same one as long as it lives.
        let ring = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
        Ok(Self { ring, last: Instant::now() })
    }

    /// Returns after `limit`, or when there is a signal and the last one is long enough ago.
    pub(super) async fn wait(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        tokio::select! {
            () = sleep_until(deadline) => return,
            ready = self.ring.readable() => match ready {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => return sleep_until(deadline).await,
            },
        }
        let due = (self.last + PAUSE).min(deadline);
        if due > Instant::now() {
            sleep(due - Instant::now()).await;
        }
        self.last = Instant::now();
    }
}
