//! Cuts time into buckets of whole windows.

use crate::{
    model::units::UnixMicros,
    report::profile::{Overview, ReadFrom, Run},
};

/// As many as a screen shows side by side.
pub(super) const MOST_BUCKETS: u64 = 600;

/// Divides the time of a page into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    pub start_us: i64,
    pub width_us: u64,
    /// At least one.
    pub buckets: usize,
}

impl Clock {
    /// Buckets hold as many windows of the usual length as needed. Time between runs, without
    /// windows, has buckets too.
    pub fn of(runs: &[Run], overview: &Overview) -> Self {
        // Windows that end at the edges of phases are shorter than others, which no bucket may be.
        let usual_us = runs.iter().map(|run| run.info.interval_ns / 1000).max().unwrap_or(0);
        Self::with_windows(usual_us, overview)
    }

    fn with_windows(usual_us: u64, overview: &Overview) -> Self {
        let (mut start, end) = overview.span.unwrap_or((UnixMicros(0), UnixMicros(0)));
        if overview.read_from.as_ref().is_some_and(ReadFrom::is_of_sums) {
            // Their windows begin with the hour, and finer ones at an edge do not move them.
            start.0 = start.0.saturating_sub(start.0.rem_euclid(i64::try_from(usual_us).unwrap_or(i64::MAX).max(1)));
        }
        let span = u64::try_from(end.0.saturating_sub(start.0)).unwrap_or(0).max(1);
        // Hosts that were recorded side by side make it too short, which a multiple of it does not mind.
        let mean_us = overview.duration_ns / 1000 / overview.windows.max(1);
        let window = mean_us.max(usual_us).clamp(1, span);
        let least = span.div_ceil(MOST_BUCKETS);
        let width_us = least.div_ceil(window).max(1).saturating_mul(window);
        let buckets = span.div_ceil(width_us).clamp(1, MOST_BUCKETS);
        Self { start_us: start.0, width_us, buckets: usize::try_from(buckets).unwrap_or(1) }
    }

    /// The bucket that holds a window's middle, so that a window that starts a little early is not
    /// in the bucket before.
    pub fn bucket(&self, start: UnixMicros, window_ns: u64) -> usize {
        let half = i64::try_from(window_ns / 2000).unwrap_or(i64::MAX);
        let middle = start.0.saturating_add(half).saturating_sub(self.start_us);
        let bucket = u64::try_from(middle).unwrap_or(0) / self.width_us;
        usize::try_from(bucket).unwrap_or(usize::MAX).min(self.buckets - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(windows: u64, span_us: i64) -> Clock {
        let duration_ns = u64::try_from(span_us).unwrap() * 1000;
        let span = Some((UnixMicros(1_000_000), UnixMicros(1_000_000 + span_us)));
        Clock::with_windows(0, &Overview { windows, duration_ns, span, ..Overview::default() })
    }

    #[test]
    fn buckets_hold_whole_windows_and_are_few() {
        for (windows, seconds, width_s, buckets) in
            [(10, 10, 1, 10), (600, 600, 1, 600), (601, 601, 2, 301), (3600, 3600, 6, 600)]
        {
            let clock = clock(windows, seconds * 1_000_000);
            assert_eq!((clock.width_us, clock.buckets), (width_s * 1_000_000, buckets), "{windows} windows");
        }
    }

    #[test]
    fn a_window_that_starts_early_or_late_is_in_its_own_bucket() {
        let clock = clock(10, 10_000_000);
        for index in 0..10 {
            for jitter in [-300_000, 0, 300_000] {
                let start = UnixMicros(1_000_000 + i64::try_from(index).unwrap() * 1_000_000 + jitter);
                assert_eq!(clock.bucket(start, 1_000_000_000), index);
            }
        }
    }

    #[test]
    fn buckets_of_sums_begin_with_their_windows() {
        const HOUR_US: i64 = 3_600_000_000;
        let span = Some((UnixMicros(HOUR_US / 2), UnixMicros(5 * HOUR_US)));
        let read_from = ReadFrom {
            tier: "hourly",
            resolution: None,
            is_joined: true,
            is_of_services: false,
            reason: None,
            is_unexpected: false,
        };
        let overview = Overview { windows: 40, span, read_from: Some(read_from), ..Overview::default() };
        let clock = Clock::with_windows(HOUR_US.unsigned_abs(), &overview);
        assert_eq!((clock.start_us, clock.width_us, clock.buckets), (0, HOUR_US.unsigned_abs(), 5));
        assert_eq!(clock.bucket(UnixMicros(HOUR_US / 2), 60_000_000_000), 0, "an edge of windows of a minute");
        assert_eq!(clock.bucket(UnixMicros(HOUR_US), 3_600_000_000_000), 1);
    }

    #[test]
    fn no_windows_at_all_are_one_empty_bucket() {
        assert_eq!(Clock::of(&[], &Overview::default()).buckets, 1);
        let clock = clock(1, 1);
        assert_eq!(clock.bucket(UnixMicros(i64::MAX), u64::MAX), 0);
        assert_eq!(clock.bucket(UnixMicros(i64::MIN), 0), 0);
    }
}
