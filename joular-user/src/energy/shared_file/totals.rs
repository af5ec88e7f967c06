//! Defines running totals with the times that they are from, as a host writes them for a virtual machine.
//!
//! The file has a line for the end of each of the writer's last windows: µs since 1970, and the total then. The last line is
//! the total alone, and other readers look at that one only.
//!
//! A reader learns what was used until the end of a window after that end. So [`Arrived`] says what the total was at an
//! earlier moment. Within a window of the writer, energy is taken to come evenly.
//!
//! Writer and reader have clocks of their own. Two facts bound how far these differ: an end that was read has passed, and one
//! that was not in the file at the reading before had not passed long before that. Clocks that agree within these bounds are
//! taken to be equal; otherwise the reader's is corrected to the nearer bound.

use std::{collections::VecDeque, fmt, str::FromStr};

use joular_data::model::units::MicroJoules;

use super::{LineError, whole_lines};

/// Ends of windows in a file: enough for a reader that looks seldom.
const MOST_POINTS: usize = 64;

/// No file of totals is longer.
pub const MOST_BYTES: u64 = 4096;

/// Windows whose ends and starts are further apart do not follow each other, µs.
const LEAST_GAP_US: i64 = 1000;

/// How long after the end of a window a reader may still find the file as it was, because the writer divides energy first.
/// Where it takes longer, clocks are taken to differ by the rest, and energy counts as later by that.
const SHOWN_AFTER_US: i64 = 500_000;

/// A running total at one time by the writer's clock, µs since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    unix_us: i64,
    total_uj: u64,
}

impl Point {
    fn parse(line: &str) -> Option<Self> {
        let (unix_us, total_uj) = line.split_once(' ')?;
        Some(Self { unix_us: unix_us.parse().ok()?, total_uj: total_uj.parse().ok()? })
    }

    /// The total at a moment between this point and a later one.
    fn towards(self, later: Self, moment_us: i64) -> u64 {
        let wide = |us: i64, since: i64| u128::from(us.saturating_sub(since).unsigned_abs());
        let gained = u128::from(later.total_uj.saturating_sub(self.total_uj)) * wide(moment_us, self.unix_us)
            / wide(later.unix_us, self.unix_us).max(1);
        self.total_uj.saturating_add(u64::try_from(gained).unwrap_or(u64::MAX))
    }
}

/// What a file has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub now_uj: u64,
    /// In the order of time. No total is less than one before it.
    points: VecDeque<Point>,
}

impl Totals {
    /// Goes on from the total of an earlier recording.
    pub const fn from(now_uj: u64) -> Self {
        Self { now_uj, points: VecDeque::new() }
    }

    /// Adds a window of the writer, by its times in µs since 1970.
    pub fn add(&mut self, start_us: i64, end_us: i64, used: MicroJoules) {
        // The clock was set back.
        if self.points.back().is_some_and(|last| last.unix_us >= end_us) {
            self.points.clear();
        }
        if self.points.back().is_none_or(|last| last.unix_us + LEAST_GAP_US < start_us) {
            self.points.push_back(Point { unix_us: start_us, total_uj: self.now_uj });
        }
        self.now_uj = self.now_uj.saturating_add(used.0);
        self.points.push_back(Point { unix_us: end_us, total_uj: self.now_uj });
        while self.points.len() > MOST_POINTS {
            self.points.pop_front();
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Point { unix_us, total_uj } in &self.points {
            writeln!(f, "{unix_us} {total_uj}")?;
        }
        writeln!(f, "{}", self.now_uj)
    }
}

impl FromStr for Totals {
    type Err = LineError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut lines = whole_lines(text).rev();
        let last = lines.next().ok_or(LineError::Empty)?;
        let now_uj = last.parse().map_err(|_| LineError::MicroJoules(last.to_owned()))?;
        let mut points: VecDeque<Point> = VecDeque::new();
        let mut next = Point { unix_us: i64::MAX, total_uj: now_uj };
        let earlier = |point: &Point, next: Point| point.unix_us < next.unix_us && point.total_uj <= next.total_uj;
        while let Some(point) = lines.next().and_then(Point::parse).filter(|point| earlier(point, next)) {
            points.push_front(point);
            next = point;
        }
        Ok(Self { now_uj, points })
    }
}

/// What a reader knows of totals.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    totals: Totals,
    /// The reader's clock less the writer's, µs.
    offset_us: i64,
    /// The last total that was told.
    told_uj: u64,
}

impl Arrived {
    /// Takes what was read now. `before_us` is when the file was read before. Both are by the reader's clock.
    pub(super) fn learn(&mut self, totals: Totals, now_us: i64, before_us: Option<i64>) {
        let last = |totals: &Totals| totals.points.back().map(|point| point.unix_us);
        if let Some(end_us) = last(&totals) {
            let most = now_us.saturating_sub(end_us);
            let is_new = last(&self.totals).is_some_and(|known| known < end_us);
            // Readings soon after each other are those at a run's end. What they show of the clocks would put energy of the
            // time after the run into its last windows.
            let is_late = |before_us: &i64| is_new && now_us.saturating_sub(*before_us) >= SHOWN_AFTER_US;
            let least = before_us.filter(is_late).map(|us| us.saturating_sub(end_us).saturating_sub(SHOWN_AFTER_US));
            let least = least.unwrap_or(i64::MIN).min(most);
            let nearest = |offset_us: i64| offset_us.clamp(least, most);
            self.offset_us = if nearest(0) == 0 { 0 } else { nearest(self.offset_us) };
        }
        self.totals = totals;
    }

    /// Whether the totals have times.
    pub(super) fn is_timed(&self) -> bool {
        !self.totals.points.is_empty()
    }

    /// The total at a moment of the reader's clock; `None`: it is not known yet. What was used before the first time that
    /// the file has is in no window.
    pub(super) fn total_at(&mut self, moment_us: i64) -> Option<u64> {
        let moment_us = moment_us.saturating_sub(self.offset_us);
        let points = &self.totals.points;
        let after = points.iter().position(|point| point.unix_us >= moment_us)?;
        let later = points.get(after)?;
        let earlier = after.checked_sub(1).and_then(|before| points.get(before));
        let total_uj = earlier.map_or(later.total_uj, |earlier| earlier.towards(*later, moment_us));
        Some(self.not_less(total_uj))
    }

    /// Neither a correction of the clock takes back what was told, nor a file without times. Only a total that starts again does.
    pub(super) fn not_less(&mut self, total_uj: u64) -> u64 {
        self.told_uj = total_uj.max(self.told_uj.min(self.totals.now_uj));
        self.told_uj
    }

    /// The end of a window of the writer that is nearest to a moment, both by the reader's clock, if its windows go on as
    /// the last one; `None`: that is not known.
    pub(super) fn end_near(&self, moment_us: i64) -> Option<i64> {
        let [before, last] = [2, 1]
            .map(|from_end| self.totals.points.len().checked_sub(from_end).and_then(|at| self.totals.points.get(at)));
        let (last, length_us) = (last?.unix_us, last?.unix_us.checked_sub(before?.unix_us).filter(|us| *us > 0)?);
        let ahead_us = moment_us.checked_sub(last.checked_add(self.offset_us)?)?;
        let windows = ahead_us.checked_add(length_us / 2)?.div_euclid(length_us);
        moment_us.checked_sub(ahead_us)?.checked_add(windows.checked_mul(length_us)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn totals(text: &str) -> Totals {
        text.parse().unwrap()
    }

    /// Windows of a second that use 1, 2, 3, … J, the first from second 100 to 101.
    fn windows(count: i64) -> Totals {
        let mut totals = Totals::from(7);
        for window in 0..count {
            let joules = MicroJoules(u64::try_from(window + 1).unwrap() * 1_000_000);
            totals.add((100 + window) * SECOND, (101 + window) * SECOND, joules);
        }
        totals
    }

    #[test]
    fn a_file_has_ends_of_windows_before_the_total_and_is_bounded() {
        assert_eq!(windows(2).to_string(), "100000000 7\n101000000 1000007\n102000000 3000007\n3000007\n");
        let long = windows(1000);
        assert_eq!((long.points.len(), totals(&long.to_string())), (MOST_POINTS, long));
        let mut longest = Totals::from(u64::MAX - 1000);
        (0..100)
            .for_each(|at| longest.add(1_790_000_000 * SECOND + at, 1_790_000_000 * SECOND + at + 1, MicroJoules(1)));
        assert!(longest.to_string().len() < usize::try_from(MOST_BYTES).unwrap());
    }

    #[test]
    fn a_pause_of_the_writer_uses_nothing_and_a_clock_set_back_starts_again() {
        let mut paused = windows(1);
        paused.add(160 * SECOND, 161 * SECOND, MicroJoules(5));
        assert_eq!(
            paused.to_string(),
            "100000000 7\n101000000 1000007\n160000000 1000007\n161000000 1000012\n1000012\n"
        );
        paused.add(50 * SECOND, 51 * SECOND, MicroJoules(1));
        assert_eq!(paused.to_string(), "50000000 1000012\n51000000 1000013\n1000013\n");
    }

    #[test]
    fn lines_that_are_not_ends_of_windows_in_order_are_passed_over() {
        for (text, now_uj, points) in [
            ("12\n", 12, 0),
            ("1\n2\n", 2, 0),
            ("5 1\n6 2\n2\n", 2, 2),
            ("6 1\n5 2\n2\n", 2, 1),
            ("5 3\n6 2\n2\n", 2, 1),
            ("x\n6 2\n2\n", 2, 1),
            ("6 3\n2\n", 2, 0),
            ("5 1\n6 2\n2\n7 3", 2, 2),
        ] {
            let found = totals(text);
            assert_eq!((found.now_uj, found.points.len()), (now_uj, points), "{text:?}");
        }
    }

    fn arrived(totals: Totals, now_s: i64) -> Arrived {
        let mut arrived = Arrived::default();
        arrived.learn(totals, now_s * SECOND, None);
        arrived
    }

    #[test]
    fn a_moment_has_the_energy_until_then_once_it_is_known() {
        let mut arrived = arrived(windows(3), 103);
        let at = |arrived: &mut Arrived, tenths: i64| arrived.total_at(tenths * SECOND / 10);
        let found = [990, 1000, 1005, 1010, 1029, 1030, 1031].map(|tenths| at(&mut arrived, tenths));
        let expected = [0, 0, 500_000, 1_000_000, 5_700_000, 6_000_000].map(|used| Some(used + 7));
        assert_eq!((&found[..6], found[6]), (&expected[..], None));
        arrived.learn(windows(4), 104 * SECOND, Some(103 * SECOND));
        assert_eq!(at(&mut arrived, 1031), Some(6_400_007));
    }

    #[test]
    fn a_total_that_starts_again_is_told_as_it_is() {
        let mut arrived = arrived(windows(3), 103);
        assert_eq!(arrived.total_at(103 * SECOND), Some(6_000_007));
        let mut again = Totals::from(0);
        again.add(103 * SECOND, 104 * SECOND, MicroJoules(10));
        arrived.learn(again, 104 * SECOND, Some(103 * SECOND));
        assert_eq!(arrived.total_at(104 * SECOND), Some(10));
    }

    /// The reader's clock, in seconds ahead of the writer's, and how far off it is after some readings.
    #[track_caller]
    fn check_offset(ahead_s: i64, expected: std::ops::RangeInclusive<i64>) {
        let mut arrived = Arrived::default();
        for window in 1..20 {
            // Read 0.3 s after a window's end.
            let now_us = (100 + window + ahead_s) * SECOND + 300_000;
            arrived.learn(windows(window), now_us, (window > 1).then(|| now_us - SECOND));
        }
        let found = arrived.offset_us - ahead_s * SECOND;
        assert!(expected.contains(&found), "{ahead_s}: {found}");
    }

    #[test]
    fn clocks_that_cannot_be_equal_are_corrected_and_others_are_not() {
        check_offset(0, 0..=0);
        // It reads ends that have not come yet by its clock: they have come when it reads them.
        check_offset(-5, 300_000..=300_000);
        check_offset(-3600, 300_000..=300_000);
        // Ends would have passed half a second before the reading at which they were not there.
        check_offset(3600, -1_200_000..=-1_200_000);
        check_offset(2, -1_200_000..=-1_200_000);
        check_offset(1, -1_000_000..=-1_000_000);
    }

    #[test]
    fn what_the_last_readings_show_of_the_clocks_changes_nothing() {
        let mut arrived = arrived(windows(3), 103);
        // The next window is found 0.95 to 1 s after its end.
        arrived.learn(windows(3), 104 * SECOND + 950_000, Some(103 * SECOND));
        arrived.learn(windows(4), 105 * SECOND, Some(104 * SECOND + 950_000));
        assert_eq!(arrived.offset_us, 0);
    }

    #[test]
    fn a_correction_takes_no_energy_back() {
        let mut arrived = arrived(windows(3), 103);
        assert_eq!(arrived.total_at(103 * SECOND), Some(6_000_007));
        // The reader's clock was 5 s ahead, as the next readings show.
        arrived.offset_us = 5 * SECOND;
        assert_eq!(arrived.total_at(104 * SECOND), Some(6_000_007));
    }

    #[test]
    fn the_writers_windows_are_taken_to_go_on() {
        let arrived = arrived(windows(3), 104);
        let near = |tenths: i64| arrived.end_near(tenths * SECOND / 10).map(|us| us * 10 / SECOND);
        assert_eq!([1052, 1047, 1030].map(near), [Some(1050), Some(1050), Some(1030)]);
        assert_eq!(Arrived::default().end_near(0), None);
        let mut short = Arrived::default();
        short.learn(totals("5 1\n1\n"), 10, None);
        assert_eq!(short.end_near(10), None);
    }

    proptest::proptest! {
        #[test]
        fn no_file_overflows_and_no_total_falls(
            text in "([0-9-]{1,20} [0-9]{1,20}\n){0,4}[0-9]{1,20}\n",
            moments in proptest::collection::vec(proptest::num::i64::ANY, 0..6),
            now_us: i64,
            before_us: Option<i64>,
        ) {
            let Ok(totals) = text.parse::<Totals>() else { return Ok(()) };
            let now_uj = totals.now_uj;
            let mut arrived = Arrived::default();
            arrived.learn(totals.clone(), now_us, None);
            arrived.learn(totals, now_us, before_us);
            let mut last = 0;
            for moment_us in moments {
                arrived.end_near(moment_us);
                if let Some(total_uj) = arrived.total_at(moment_us) {
                    proptest::prop_assert!((last..=now_uj).contains(&total_uj));
                    last = total_uj;
                }
            }
        }
    }
}
