//! Says which counts are of times that were recorded: of others nobody knows what requests needed.

use serde::Serialize;

use super::counts::{Counted, Counts};
use crate::{report::profile::WindowSpan, text::count};

/// Windows that follow each other may seem so far apart, because their lengths are of another clock.
const GAP_US: i64 = 1_000;

/// Times that were recorded, apart from each other and in order, in microseconds since 1970.
#[derive(Debug)]
pub(in crate::report) struct Recorded(Vec<(i64, i64)>);

/// How much of the times in which requests were counted was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(in crate::report) struct Coverage {
    /// Requests of times of which less than half was recorded.
    pub(in crate::report) left_out_requests: u64,
    /// Length of all other times that have a beginning and an end, and what was recorded of it.
    pub(in crate::report) counted_us: i64,
    pub(in crate::report) recorded_us: i64,
}

impl Recorded {
    pub(in crate::report) fn of(windows: &[WindowSpan]) -> Self {
        let mut spans: Vec<_> = windows.iter().map(|window| (window.start.0, window.end().0)).collect();
        spans.sort_unstable();
        let mut apart: Vec<(i64, i64)> = Vec::new();
        for (begin, end) in spans {
            match apart.last_mut() {
                Some(before) if begin <= before.1.saturating_add(GAP_US) => before.1 = before.1.max(end),
                _ => apart.push((begin, end)),
            }
        }
        Self(apart)
    }

    /// How much of a time was recorded.
    fn within(&self, begin: i64, end: i64) -> i64 {
        let first = self.0.partition_point(|(_, over)| *over <= begin);
        let parts = self.0.iter().skip(first).take_while(|(from, _)| *from < end);
        parts.map(|(from, over)| end.min(*over).saturating_sub(begin.max(*from))).fold(0, i64::saturating_add)
    }

    /// Leaves out times of which less than half was recorded.
    pub(in crate::report) fn keep(&self, counts: &mut Counts) -> Coverage {
        let mut coverage = Coverage::default();
        counts.by_span.retain(|span, rows| {
            let Counted { begin: Some(begin), end: Some(end) } = span else { return true };
            let (counted, recorded) = (end.0.saturating_sub(begin.0), self.within(begin.0, end.0));
            if recorded < counted - recorded {
                let requests = rows.values().map(|row| row.count);
                coverage.left_out_requests = requests.fold(coverage.left_out_requests, u64::saturating_add);
                return false;
            }
            coverage.counted_us = coverage.counted_us.saturating_add(counted);
            coverage.recorded_us = coverage.recorded_us.saturating_add(recorded);
            true
        });
        coverage
    }
}

impl Coverage {
    /// What people should know of it.
    pub(in crate::report) fn notes(self) -> impl Iterator<Item = String> {
        let Self { left_out_requests, counted_us, recorded_us } = self;
        let left_out = (left_out_requests > 0).then(|| {
            let requests = count(left_out_requests, "request");
            format!("{requests} left out: less than half of the time in which they were counted was recorded")
        });
        #[allow(clippy::cast_precision_loss, reason = "seconds for people")]
        let [counted, recorded] = [counted_us, recorded_us].map(|us| us as f64 / 1e6);
        let is_short = recorded < 0.95 * counted;
        let short = is_short.then(|| {
            format!(
                "Of {counted:.1} s in which requests were counted, {recorded:.1} s were recorded: figures are too small by \
                 as much"
            )
        });
        left_out.into_iter().chain(short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::units::UnixMicros, report::requests::counts};

    fn window(run: usize, start: i64, seconds: u64) -> WindowSpan {
        WindowSpan { run, start: UnixMicros(start * 1_000_000), length_ns: seconds * 1_000_000_000 }
    }

    #[test]
    fn times_are_recorded_as_far_as_windows_of_any_host_reach() {
        // Two hosts at the same time, and a pause from 14 to 20.
        let windows = [window(0, 10, 1), window(0, 11, 1), window(1, 10, 4), window(0, 20, 10)];
        let recorded = Recorded::of(&windows);
        for (begin, end, expected) in [(0, 10, 0), (10, 14, 4), (9, 12, 2), (13, 21, 2), (14, 20, 0), (0, 100, 14)] {
            assert_eq!(recorded.within(begin * 1_000_000, end * 1_000_000), expected * 1_000_000, "{begin} {end}");
        }
        assert_eq!(Recorded::of(&[]).within(0, 5), 0);
    }

    #[test]
    fn counts_of_times_that_were_hardly_recorded_are_left_out() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "route,count,begin,end\na,1,0,10\na,2,10,20\na,4,20,30\na,8,25,\na,16,,\n")
            .unwrap();
        let mut counts = counts::read(file.path()).unwrap();
        let coverage = Recorded::of(&[window(0, 14, 100)]).keep(&mut counts);
        assert_eq!(coverage, Coverage { left_out_requests: 1, counted_us: 20_000_000, recorded_us: 16_000_000 });
        assert_eq!(counts.requests(), [30]);
        let notes: Vec<_> = coverage.notes().collect();
        assert!(notes[0].starts_with("1 request left out") && notes[1].starts_with("Of 20.0 s"), "{notes:?}");
        assert_eq!(Coverage { left_out_requests: 0, counted_us: 100, recorded_us: 96 }.notes().count(), 0);
    }
}
