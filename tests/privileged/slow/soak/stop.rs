//! Ends several threads together: when the time is over, or when one of them fails.

use std::{
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

#[derive(Default)]
pub struct Stop {
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits for so long, or until it is over: then it is true.
    pub fn wait(&self, length: Duration) -> bool {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(is_over, length, |is_over| !*is_over);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub fn is_over(&self) -> bool {
        self.wait(Duration::ZERO)
    }

    pub fn end(&self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

/// Ends it when dropped, so that a failure ends everything too.
pub struct EndsIt<'s>(pub &'s Stop);

impl Drop for EndsIt<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A seeded sequence: what a run did can be done again.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from `least` to `most`.
    pub fn number(&mut self, least: u64, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (self.0 >> 33) % (most - least + 1)
    }

    pub fn milliseconds(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.number(least, most))
    }

    pub fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.number(0, things.len() as u64 - 1) as usize]
    }
}
