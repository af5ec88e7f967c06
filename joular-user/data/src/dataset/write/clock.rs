//! Puts a run's windows at the time that the clock says when the run begins.
//!
//! A clock that is set back leaves the windows of a recording where they would have been, because their starts are keys
//! of a run. A recording of weeks would never be right again. So the next run begins at the clock's time.

use std::borrow::Cow;

use crate::{attribution::window_report::WindowReport, events::WindowContext, model::units::UnixMicros};

/// Differences below this one are not worth it.
const LEAST_US: i64 = 1_000_000;

/// The clock of a run.
#[derive(Debug, Default)]
pub(super) struct RunClock {
    /// Whether the run began at another time than its windows have in the recording.
    is_set: bool,
    /// The end of the last window, by this clock.
    end: Option<UnixMicros>,
}

impl RunClock {
    /// Of a run of which this is the first window.
    pub(super) fn beginning(report: &WindowReport) -> Self {
        Self { is_set: offset_us(report) <= -LEAST_US, end: None }
    }

    /// The window with its time in this run.
    pub(super) fn of<'r>(&mut self, report: &'r WindowReport) -> Cow<'r, WindowReport> {
        let Some(context) = report.context.as_ref().filter(|_| self.is_set) else { return Cow::Borrowed(report) };
        let says_us = report.wall_start.0.saturating_add(context.clock_offset_us);
        let start_us = self.end.map_or(says_us, |end| says_us.max(end.0));
        let length_us = i64::try_from(report.length_ns / 1000).unwrap_or(i64::MAX);
        self.end = Some(UnixMicros(start_us.saturating_add(length_us)));
        let context = WindowContext { clock_offset_us: says_us.saturating_sub(start_us), ..context.clone() };
        Cow::Owned(WindowReport { wall_start: UnixMicros(start_us), context: Some(context), ..report.clone() })
    }
}

/// By how much the clock is behind the window's start; never positive.
fn offset_us(report: &WindowReport) -> i64 {
    report.context.as_ref().map_or(0, |context| context.clock_offset_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(start_s: i64, offset_s: i64) -> WindowReport {
        let context = WindowContext { clock_offset_us: offset_s * LEAST_US, ..WindowContext::default() };
        let wall_start = UnixMicros(start_s * LEAST_US);
        WindowReport { wall_start, length_ns: 1_000_000_000, context: Some(context), ..WindowReport::default() }
    }

    #[test]
    fn a_run_begins_at_the_clocks_time_and_its_windows_never_overlap() {
        let mut clock = RunClock::beginning(&window(3_600, -3_000));
        let placed: Vec<_> = [(3_600, -3_000), (3_601, -3_000), (3_602, -3_005), (3_603, -3_000), (3_604, 0)]
            .into_iter()
            .map(|(start_s, offset_s)| {
                let placed = clock.of(&window(start_s, offset_s)).into_owned();
                (placed.wall_start.0 / LEAST_US, offset_us(&placed) / LEAST_US)
            })
            .collect();
        // Set back once more, right again, and set forward.
        assert_eq!(placed, [(600, 0), (601, 0), (602, -5), (603, 0), (3_604, 0)]);
    }

    #[test]
    fn a_run_keeps_the_recordings_time_if_the_clock_is_nearly_right_at_its_beginning() {
        let first = WindowReport { context: None, ..window(9, 0) };
        for first in [first, window(9, 0)] {
            let mut clock = RunClock::beginning(&first);
            assert!(matches!(clock.of(&window(10, -3_000)), Cow::Borrowed(_)));
        }
    }
}
