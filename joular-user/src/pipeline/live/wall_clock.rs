//! Says when windows start on the wall clock, and notices when the machine was suspended or its clock
//! was set.
//!
//! The monotonic clock, by which windows are cut, stands still while the machine is suspended, and
//! knows nothing of the wall clock. So the clocks are compared at every boundary.
//!
//! A window's start is its key in the data set: rows of all tables are joined by it, methods by the
//! time from it on, and the latest row of a process counts. So starts follow the wall clock as long
//! as it goes forward. Where it is set back, a window starts when the one before it ended, and the
//! offset to what the clock says is kept beside it.

use joular_data::{
    events::WindowContext,
    model::units::{MonotonicNs, UnixMicros},
};

use crate::clock::Clocks;

/// The clocks of a run, from one boundary to the next.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    last: Option<Boundary>,
}

/// What is known at a boundary.
#[derive(Clone, Copy, Debug)]
struct Boundary {
    at: MonotonicNs,
    /// As compared last, but for differences that do not count.
    clocks: Clocks,
    /// Of time suspended: when the boundary's readings began.
    suspended_before_ns: u64,
    /// What the clock says, and what the window has, ns since 1970.
    says_ns: i64,
    start_ns: i64,
}

/// What the clocks did in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WindowTimes {
    pub(super) wall_start: UnixMicros,
    suspended_ns: u64,
    clock_step_us: i64,
    clock_offset_us: i64,
}

impl WindowTimes {
    pub(super) fn note(&self, context: WindowContext) -> WindowContext {
        let Self { suspended_ns, clock_step_us, clock_offset_us, .. } = *self;
        WindowContext { suspended_ns, clock_step_us, clock_offset_us, ..context }
    }

    /// What the user should know, if anything.
    pub(super) fn notice(&self) -> Option<String> {
        let step_ms = self.clock_step_us / 1000;
        if step_ms < 0 {
            let ms = step_ms.unsigned_abs();
            return Some(format!(
                "the clock was set back by {ms} ms: windows go on as if it had not been, because their starts are keys; \
                 clock_offset_us in table windows has the difference; a new run has none"
            ));
        }
        let suspended_ms = self.suspended_ns / 1_000_000;
        (suspended_ms > 0).then(|| format!("the machine was suspended for {suspended_ms} ms"))
    }
}

impl WallClock {
    /// Takes the clocks before and after the readings at a boundary. Returns what they did in the
    /// window that the boundary ends, if it is not the first one.
    pub(super) fn pass(&mut self, at: MonotonicNs, before: Clocks, after: Clocks) -> Option<WindowTimes> {
        let Some(last) = self.last else {
            let says_ns = says_ns(at, after);
            let suspended_before_ns = before.suspended_ns;
            self.last = Some(Boundary { at, clocks: after, suspended_before_ns, says_ns, start_ns: says_ns });
            return None;
        };
        let suspended_ns = after.suspended_since(last.clocks.suspended_ns);
        let step_ns = after.wall_minus_boot_ns.saturating_sub(last.clocks.wall_minus_boot_ns);
        let step_ns = if step_ns.unsigned_abs() < Clocks::LEAST_NS { 0 } else { step_ns };
        let clocks = Clocks {
            suspended_ns: last.clocks.suspended_ns.saturating_add(suspended_ns),
            wall_minus_boot_ns: last.clocks.wall_minus_boot_ns.saturating_add(step_ns),
        };
        let (says_ns, length_ns) = (says_ns(at, clocks), i64::try_from(at.since(last.at)).unwrap_or(i64::MAX));
        let start_ns = says_ns.max(last.start_ns.saturating_add(length_ns));
        // A suspend between the readings of two windows counts for both: it is in the energy of either.
        let suspended_before_ns = before.suspended_ns.min(clocks.suspended_ns);
        self.last = Some(Boundary { at, clocks, suspended_before_ns, says_ns, start_ns });
        Some(WindowTimes {
            wall_start: UnixMicros(last.start_ns.div_euclid(1000)),
            suspended_ns: suspended_ns.max(after.suspended_since(last.suspended_before_ns)),
            clock_step_us: step_ns / 1000,
            clock_offset_us: last.says_ns.div_euclid(1000).saturating_sub(last.start_ns.div_euclid(1000)),
        })
    }
}

#[allow(clippy::cast_possible_wrap, reason = "nanoseconds stay below 2^63 for 292 years")]
const fn says_ns(at: MonotonicNs, clocks: Clocks) -> i64 {
    clocks.wall_minus_boot_ns.saturating_add(at.0 as i64).saturating_add(clocks.suspended_ns as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const BOOT: i64 = 1_772_409_570 * SECOND;

    /// Clocks of a machine that was suspended for some seconds and whose clock was set forward by
    /// some.
    fn clocks(suspended_s: i64, set_s: i64) -> Clocks {
        let suspended_ns = u64::try_from(suspended_s * SECOND).unwrap();
        Clocks { suspended_ns, wall_minus_boot_ns: BOOT + set_s * SECOND }
    }

    /// Start in seconds after boot, seconds suspended, step and offset of windows of a second.
    fn windows(boundaries: &[(i64, i64)]) -> Vec<(i64, i64, i64, i64)> {
        let mut wall = WallClock::default();
        let windows = (0..).zip(boundaries).filter_map(|(second, (suspended_s, set_s))| {
            let clocks = clocks(*suspended_s, *set_s);
            wall.pass(MonotonicNs(second * 1_000_000_000), clocks, clocks)
        });
        let seconds = |us: i64| us / 1_000_000;
        let figures = windows.map(|times| {
            let suspended_s = i64::try_from(times.suspended_ns).unwrap() / SECOND;
            let start = seconds(times.wall_start.0) - BOOT / SECOND;
            (start, suspended_s, seconds(times.clock_step_us), seconds(times.clock_offset_us))
        });
        figures.collect()
    }

    #[test]
    fn a_clock_that_is_left_alone_has_a_window_every_second() {
        assert_eq!(windows(&[(5, 0); 4]), [(5, 0, 0, 0), (6, 0, 0, 0), (7, 0, 0, 0)]);
    }

    #[test]
    fn a_suspend_leaves_a_gap_after_the_window_that_it_was_in() {
        let found = windows(&[(0, 0), (0, 0), (60, 0), (60, 0)]);
        assert_eq!(found, [(0, 0, 0, 0), (1, 60, 0, 0), (62, 0, 0, 0)]);
    }

    #[test]
    fn a_clock_set_forward_is_followed() {
        assert_eq!(windows(&[(0, 0), (0, 0), (0, 60), (0, 60)]), [(0, 0, 0, 0), (1, 0, 60, 0), (62, 0, 0, 0)]);
    }

    /// An hour of windows had starts 1 µs apart.
    #[test]
    fn a_clock_set_back_leaves_windows_a_second_apart_and_is_told() {
        let back = (0, -3600);
        let found = windows(&[(0, 0), (0, 0), back, back, back]);
        assert_eq!(found, [(0, 0, 0, 0), (1, 0, -3600, 0), (2, 0, 0, -3600), (3, 0, 0, -3600)]);
    }

    #[test]
    fn a_clock_that_is_right_again_is_followed_again() {
        let found = windows(&[(0, 0), (0, -10), (0, -10), (0, 5), (0, 5)]);
        assert_eq!(found, [(0, 0, -10, 0), (1, 0, 0, -10), (2, 0, 15, -10), (8, 0, 0, 0)]);
    }

    #[test]
    fn a_suspend_between_the_readings_of_a_boundary_is_in_both_windows() {
        let mut wall = WallClock::default();
        let mut pass = |second: u64, before: i64, after: i64| {
            let times = wall.pass(MonotonicNs(second * 1_000_000_000), clocks(before, 0), clocks(after, 0));
            times.map(|times| times.suspended_ns / 1_000_000_000)
        };
        assert_eq!(
            [pass(0, 0, 0), pass(1, 0, 30), pass(2, 30, 30), pass(3, 30, 30)],
            [None, Some(30), Some(30), Some(0)]
        );
    }

    #[test]
    fn what_the_user_has_to_know_is_said() {
        let times = |suspended_ns, clock_step_us| WindowTimes { suspended_ns, clock_step_us, ..WindowTimes::default() };
        assert_eq!(times(0, 0).notice(), None);
        assert_eq!(times(0, 3_600_000_000).notice(), None, "nothing is lost");
        assert!(times(0, -2_000_000).notice().unwrap().contains("set back by 2000 ms"));
        assert!(times(60_000_000_000, 0).notice().unwrap().contains("suspended for 60000 ms"));
    }

    proptest! {
        /// Whatever the clocks do, and however late they are read.
        #[test]
        fn starts_are_unique_ordered_and_never_before_the_end_of_the_window_before(
            boundaries in prop::collection::vec((1_u64..3_000_000_000, 0_u64..2_000_000_000, any::<i32>(), 0_u64..900_000), 2..50),
        ) {
            let mut wall = WallClock::default();
            let (mut at, mut suspended_ns, mut set_ns) = (0, 0, 0);
            let mut last: Option<i64> = None;
            for (length_ns, suspend_ns, step_us, late_ns) in boundaries {
                at += 1000 + length_ns;
                // One boundary in two has neither.
                if length_ns % 2 == 0 {
                    suspended_ns += suspend_ns;
                    set_ns += i64::from(step_us) * 1000;
                }
                let late = i64::try_from(late_ns).unwrap();
                let clocks = Clocks { suspended_ns: suspended_ns + late_ns, wall_minus_boot_ns: BOOT + set_ns - late };
                let Some(times) = wall.pass(MonotonicNs(at), clocks, clocks) else { continue };
                let start = times.wall_start.0;
                prop_assert!(last.is_none_or(|least| start >= least), "{} after {:?}", start, last);
                prop_assert!(times.clock_offset_us <= 0);
                let next = wall.last.unwrap().start_ns.div_euclid(1000);
                prop_assert!(next > start);
                last = Some(start + i64::try_from((1000 + length_ns) / 1000).unwrap() - 1);
            }
        }
    }
}
