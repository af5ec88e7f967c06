//! Keeps a mean rate: after so many bytes, so much time must have passed.

use std::time::{Duration, Instant};

/// What was sent since when.
pub(super) struct Pace {
    most_bytes_per_s: Option<u64>,
    begun: Instant,
    bytes: u64,
}

impl Pace {
    /// `None`: as fast as it goes.
    pub(super) fn new(most_bytes_per_s: Option<u64>) -> Self {
        Self { most_bytes_per_s, begun: Instant::now(), bytes: 0 }
    }

    /// How long to wait after so many more bytes.
    pub(super) fn after(&mut self, bytes: u64) -> Duration {
        self.bytes = self.bytes.saturating_add(bytes);
        self.most_bytes_per_s.map_or(Duration::ZERO, |most| due(self.bytes, most).saturating_sub(self.begun.elapsed()))
    }
}

/// The least time that so many bytes take.
fn due(bytes: u64, most_bytes_per_s: u64) -> Duration {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(most_bytes_per_s.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time_and_without_a_limit_none() {
        assert_eq!(due(10 << 20, 1 << 20), Duration::from_secs(10));
        assert_eq!(due(u64::MAX, 1), Duration::from_nanos(u64::MAX));
        assert_eq!(Pace::new(None).after(u64::MAX), Duration::ZERO);
        let mut pace = Pace::new(Some(1));
        assert!(pace.after(1000) > Duration::from_secs(900));
        assert!(pace.after(1000) > Duration::from_secs(1900), "it is a mean since the beginning");
    }
}
