//! Sums the events of one type, and keeps those that are drawn one by one.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{
    covered::{Cover, Covered},
    windows::Windows,
};
use crate::{
    model::units::{MicroJoules, UnixMicros},
    report::{flight::Event, html::clock::Clock},
};

/// Events that are drawn one by one: those that took longest. The others are joined, by the buckets of the page.
pub(super) const MOST: usize = 2_000;

/// Characters of an event's text.
const MOST_TEXT: usize = 300;

/// Windows that a mean must be of on each side.
pub(super) const LEAST_WINDOWS: u64 = 3;

/// The part of an event that is in the time of a page, nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
}

/// An event that is drawn. The shortest one gives way first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Drawn {
    pub(super) length_ns: u64,
    pub(super) from_ns: Reverse<i64>,
    pub(super) text: String,
}

/// Events of one type.
pub(super) struct Lane {
    pub(super) count: u64,
    /// Sum over events, also where several were under way at a time.
    pub(super) total_ns: u64,
    pub(super) longest_ns: u64,
    pub(super) has_durations: bool,
    drawn: BinaryHeap<Reverse<Drawn>>,
    /// By bucket of the page, the events that begin in it and are not drawn: their number, and their length together.
    pub(super) joined: Vec<(u64, u64)>,
    covered: Covered,
}

/// Energy of some windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) energy: MicroJoules,
    pub(super) time_us: u64,
    pub(super) windows: u64,
}

/// What the selection used in windows that events had all of, and in those in which there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sides {
    pub(super) with: Side,
    pub(super) without: Side,
    /// Windows that are on neither side: events had a part of them.
    pub(super) partly: u64,
    /// The shortest window, µs.
    pub(super) shortest_us: u64,
}

impl Part {
    /// `None`: it has none.
    pub(super) fn within(event: &Event<'_>, (start, end): (UnixMicros, UnixMicros)) -> Option<Self> {
        let [start, end] = [start, end].map(|moment| moment.0.saturating_mul(1000));
        let length = i64::try_from(event.length_ns.unwrap_or(0)).unwrap_or(i64::MAX);
        let (from_ns, to_ns) = (event.start_ns.max(start), event.start_ns.saturating_add(length).min(end));
        let is_moment = length == 0 && (start..end).contains(&event.start_ns);
        (from_ns < to_ns || is_moment).then_some(Self { from_ns, to_ns: to_ns.max(from_ns) })
    }

    pub(super) const fn length_ns(self) -> u64 {
        self.to_ns.abs_diff(self.from_ns)
    }
}

impl Lane {
    pub(super) fn new(windows: &Windows, clock: Clock) -> Self {
        Self {
            count: 0,
            total_ns: 0,
            longest_ns: 0,
            has_durations: false,
            drawn: BinaryHeap::new(),
            joined: vec![(0, 0); clock.buckets],
            covered: Covered::of(windows),
        }
    }

    pub(super) fn take(&mut self, part: &Part, event: &Event<'_>, clock: Clock, windows: &Windows) {
        self.has_durations |= event.length_ns.is_some_and(|length| length > 0);
        self.add(*part, || event.text(), clock, windows);
    }

    /// `text` is made only for events that are drawn.
    pub(super) fn add(&mut self, part: Part, text: impl FnOnce() -> String, clock: Clock, windows: &Windows) {
        let length_ns = part.length_ns();
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(length_ns);
        self.longest_ns = self.longest_ns.max(length_ns);
        self.covered.add(windows, part.from_ns.div_euclid(1000), part.to_ns.div_euclid(1000));
        let is_full = self.drawn.len() >= MOST;
        if is_full && self.drawn.peek().is_some_and(|shortest| length_ns <= shortest.0.length_ns) {
            return self.join(clock, part.from_ns, length_ns);
        }
        let text = text().chars().take(MOST_TEXT).collect();
        self.drawn.push(Reverse(Drawn { length_ns, from_ns: Reverse(part.from_ns), text }));
        if is_full && let Some(Reverse(shortest)) = self.drawn.pop() {
            self.join(clock, shortest.from_ns.0, shortest.length_ns);
        }
    }

    fn join(&mut self, clock: Clock, from_ns: i64, length_ns: u64) {
        let (count, sum) = &mut self.joined[clock.bucket(UnixMicros(from_ns.div_euclid(1000)), 0)];
        *count += 1;
        *sum = sum.saturating_add(length_ns);
    }

    /// Those that are drawn one by one, in the order in which they begin.
    pub(super) fn drawn(&self) -> Vec<&Drawn> {
        let mut drawn: Vec<&Drawn> = self.drawn.iter().map(|Reverse(drawn)| drawn).collect();
        drawn.sort_by_key(|drawn| (drawn.from_ns.0, Reverse(drawn.length_ns)));
        drawn
    }

    /// Looks only at windows all of which the JVM recorded.
    pub(super) fn sides(&self, windows: &Windows, recorded: &Covered) -> Sides {
        let mut sides = Sides { shortest_us: u64::MAX, ..Sides::default() };
        for (place, (cover, known)) in self.covered.covers().zip(recorded.covers()).enumerate() {
            if known != Cover::Whole {
                continue;
            }
            sides.shortest_us = sides.shortest_us.min(windows.length_us(place));
            let side = match cover {
                Cover::Whole => &mut sides.with,
                Cover::None => &mut sides.without,
                Cover::Part => {
                    sides.partly += 1;
                    continue;
                }
            };
            side.energy = side.energy.saturating_add(windows.energy(place));
            side.time_us = side.time_us.saturating_add(windows.length_us(place));
            side.windows += 1;
        }
        sides
    }
}

impl Sides {
    /// Why the two means say nothing; `None`: they are of windows enough.
    pub(super) fn why_not(&self, lane: &Lane, windows: &Windows) -> Option<&'static str> {
        if windows.are_side_by_side {
            return Some("several hosts or runs were recorded at that time: choose one with --host or --run");
        }
        if !lane.has_durations {
            return Some("these events have no duration");
        }
        if self.with.windows + self.without.windows + self.partly == 0 {
            return Some("no window lies within the time that the file is of");
        }
        if self.with.windows < LEAST_WINDOWS {
            let is_short = lane.longest_ns / 1000 < self.shortest_us;
            return Some(if is_short {
                "shorter than a window"
            } else {
                "fewer than 3 windows lie within these events"
            });
        }
        (self.without.windows < LEAST_WINDOWS).then_some("fewer than 3 windows are without such an event")
    }
}
