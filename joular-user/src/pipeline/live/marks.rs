//! Lets windows end where phases begin and end.
//!
//! Marks wait here until a window ends. For the begin or end of a phase, one is ended at once: the energy and the time of a
//! phase are counted and not estimated. Cuts cost work, so a program that marks without end is cut less often: some cuts
//! are made at once, further ones at a bounded rate. What was said meanwhile shares a cut.

use std::time::{Duration, Instant};

use joular_data::{
    events::{Event, Mark, MarkFrom},
    model::units::MonotonicNs,
};

use super::{LiveError, Run};
use crate::experiment::marks::Arriving;

/// Cuts that may be made one after the other.
const MOST_AT_ONCE: u32 = 50;
/// Time after which one more may be made.
const REFILL: Duration = Duration::from_millis(10);
/// Marks kept for a window that came the same way. Others are lost, and counted.
const MOST_IN_WINDOW: usize = 4096;

/// Marks of the running window.
pub struct Marks {
    /// `None`: nobody says anything, or not any more.
    arriving: Option<Arriving>,
    waiting: Vec<Mark>,
    /// How many of them there are, by the way they came: what comes by one without end keeps none of the others out.
    kept: [usize; MarkFrom::ALL.len()],
    /// Whether one of them asks for a cut.
    wants_cut: bool,
    lost: u64,
    budget: Budget,
}

impl Run<'_> {
    /// Hands on what was said until the window's end.
    pub(super) fn hand_on_marks(&mut self, end: MonotonicNs) -> Result<(), LiveError> {
        let (marks, lost) = self.marks.until(end);
        for mark in marks {
            self.consumer.take(&Event::Mark(Box::new(mark)))?;
        }
        if lost > 0 {
            self.lost("mark_dropped", lost);
        }
        Ok(())
    }
}

impl Marks {
    pub const fn none() -> Self {
        Self {
            arriving: None,
            waiting: Vec::new(),
            kept: [0; MarkFrom::ALL.len()],
            wants_cut: false,
            lost: 0,
            budget: Budget::FULL,
        }
    }

    pub fn of(arriving: Arriving) -> Self {
        Self { arriving: Some(arriving), ..Self::none() }
    }

    /// Resolves when a window is to end because of a mark.
    pub(super) async fn want_cut(&mut self) {
        loop {
            if self.wants_cut {
                let wait = self.budget.wait(Instant::now());
                // A timer takes a millisecond at least.
                if !wait.is_zero() {
                    tokio::time::sleep(wait).await;
                }
                return;
            }
            let Some(arriving) = &mut self.arriving else { return std::future::pending().await };
            match arriving.next().await {
                Some(mark) => self.keep(mark),
                None => self.arriving = None,
            }
        }
    }

    /// The marks of a window that has ended then, and how many were lost. What was said later, while the window was worked
    /// on, belongs to the next one.
    pub(super) fn until(&mut self, end: MonotonicNs) -> (Vec<Mark>, u64) {
        while let Some(mark) = self.arriving.as_mut().and_then(Arriving::waiting) {
            self.keep(mark);
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (marks, later): (Vec<Mark>, Vec<Mark>) = waiting.into_iter().partition(|mark| mark.at <= end);
        if has_edge(&marks) {
            self.budget.spend(Instant::now());
        }
        self.kept = MarkFrom::ALL.map(|from| later.iter().filter(|mark| mark.from == from).count());
        (self.wants_cut, self.waiting) = (has_edge(&later), later);
        let dropped = self.arriving.as_mut().map_or(0, Arriving::dropped);
        (marks, std::mem::take(&mut self.lost) + dropped)
    }

    fn keep(&mut self, mark: Mark) {
        match self.kept.get_mut(mark.from as usize) {
            Some(kept) if *kept < MOST_IN_WINDOW => *kept += 1,
            _ => {
                self.lost += 1;
                return;
            }
        }
        self.wants_cut |= mark.kind.is_edge();
        self.waiting.push(mark);
    }
}

fn has_edge(marks: &[Mark]) -> bool {
    marks.iter().any(|mark| mark.kind.is_edge())
}

/// How many cuts may be made.
#[derive(Clone, Copy, Debug)]
struct Budget {
    spent: u32,
    /// Since when time counts towards the next one.
    since: Option<Instant>,
}

impl Budget {
    const FULL: Self = Self { spent: 0, since: None };

    fn spend(&mut self, now: Instant) {
        self.refill(now);
        self.spent = (self.spent + 1).min(MOST_AT_ONCE + 1);
    }

    /// How long to wait for the next cut.
    fn wait(&mut self, now: Instant) -> Duration {
        self.refill(now);
        if self.spent < MOST_AT_ONCE {
            return Duration::ZERO;
        }
        self.since.map_or(REFILL, |since| REFILL.saturating_sub(now.saturating_duration_since(since)))
    }

    fn refill(&mut self, now: Instant) {
        let since = *self.since.get_or_insert(now);
        let passed = now.saturating_duration_since(since);
        let refilled = u32::try_from(passed.as_millis() / REFILL.as_millis()).unwrap_or(u32::MAX);
        self.spent = self.spent.saturating_sub(refilled);
        self.since = if self.spent == 0 { Some(now) } else { since.checked_add(REFILL.saturating_mul(refilled)) };
    }
}

#[cfg(test)]
mod tests {
    use joular_data::events::MarkKind;

    use super::*;

    #[test]
    fn many_cuts_are_made_at_once_and_then_a_hundred_a_second() {
        let start = Instant::now();
        let mut budget = Budget::FULL;
        let mut now = start;
        for _ in 0..1000 {
            now += budget.wait(now);
            budget.spend(now);
        }
        let expected = REFILL * (1000 - MOST_AT_ONCE);
        let took = now.duration_since(start);
        assert!(took.abs_diff(expected) <= REFILL * 2, "{took:?}, expected {expected:?}");
        assert_eq!(budget.wait(now + Duration::from_secs(5)), Duration::ZERO, "after a pause");
    }

    fn mark(at_ns: u64, kind: MarkKind) -> Mark {
        let (at, name) = (MonotonicNs(at_ns), Some("a".into()));
        Mark { at, kind, name, attributes: None, pid: None, from: MarkFrom::Pipe }
    }

    #[test]
    fn marks_that_come_one_way_leave_the_other_ways_their_room() {
        let mut marks = Marks::none();
        for from in MarkFrom::ALL {
            (0..MOST_IN_WINDOW + 5).for_each(|_| marks.keep(Mark { from, ..mark(7, MarkKind::Event) }));
        }
        let (taken, lost) = marks.until(MonotonicNs(7));
        assert_eq!((taken.len(), lost), (3 * MOST_IN_WINDOW, 15));
        // Those of the next window count for that one.
        (0..5).for_each(|_| marks.keep(mark(9, MarkKind::Event)));
        assert!(marks.until(MonotonicNs(8)).0.is_empty());
        (0..MOST_IN_WINDOW).for_each(|_| marks.keep(mark(9, MarkKind::Event)));
        let (taken, lost) = marks.until(MonotonicNs(9));
        assert_eq!((taken.len(), lost), (MOST_IN_WINDOW, 5));
    }

    #[test]
    fn marks_of_a_window_are_bounded_and_only_edges_end_it() {
        let mut marks = Marks::none();
        (0..MOST_IN_WINDOW + 5).for_each(|_| marks.keep(mark(7, MarkKind::Event)));
        assert!(!marks.wants_cut);
        let (taken, lost) = marks.until(MonotonicNs(7));
        assert_eq!((taken.len(), lost, marks.until(MonotonicNs(7)).0.len()), (MOST_IN_WINDOW, 5, 0));
        marks.keep(mark(7, MarkKind::End));
        marks.keep(mark(9, MarkKind::Begin));
        assert!(marks.wants_cut);
        assert_eq!(marks.until(MonotonicNs(8)).0.len(), 1);
        assert!(marks.wants_cut, "what was said after the window's end asks for another one");
        assert_eq!(marks.until(MonotonicNs(9)).0.len(), 1);
        assert!(!marks.wants_cut);
    }
}
