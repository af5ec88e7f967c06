//! How long to wait after a failure: twice as long each time, up to a bound, and never as long as others do.
//! Hosts of a fleet that lost one bucket must not come back to it at the same moment.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(300);

/// Failures in a row.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(super) const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// After one more failure.
    pub(super) fn failed(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        scattered(pause)
    }
}

/// Between half of a time and all of it, by chance.
pub(super) fn scattered(time: Duration) -> Duration {
    // Its keys are random, and its hashes spread evenly.
    let chance = RandomState::new().hash_one(0) >> 32;
    let part = u32::try_from(chance).unwrap_or(u32::MAX);
    time / 2 + (time / 2).mul_f64(f64::from(part) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_begin_anew_after_a_success() {
        let mut backoff = Backoff::default();
        for expected_s in [5, 10, 20, 40, 80, 160, 300, 300, 300] {
            let pause = backoff.failed().as_secs_f64();
            assert!(pause >= f64::from(expected_s) / 2.0 && pause <= f64::from(expected_s), "{pause} {expected_s}");
        }
        backoff.succeeded();
        assert!(backoff.failed() <= FIRST);
    }

    #[test]
    fn no_two_hosts_wait_for_the_same_time() {
        let pauses: std::collections::BTreeSet<_> = (0..100).map(|_| scattered(LONGEST)).collect();
        assert!(pauses.len() > 90, "{pauses:?}");
    }
}
