//! Bounds how much is heard in a time, and shares it between the socket and the pipe.

use std::time::{Duration, Instant};

/// Datagrams and reads of the pipe in a period. A program that sends more waits.
const MOST: u32 = 1000;
const PERIOD: Duration = Duration::from_millis(100);

/// Hears what is there, by turns, so that neither way keeps the other one waiting. Returns how much it was.
pub(super) fn in_turns(mut one: impl FnMut() -> bool, mut other: impl FnMut() -> bool) -> u32 {
    let mut heard = 0;
    while heard < MOST {
        match u32::from(one()) + u32::from(other()) {
            0 => break,
            more => heard += more,
        }
    }
    heard
}

/// How much was heard since the period began.
#[derive(Debug)]
pub(super) struct Period {
    begun: Instant,
    heard: u32,
}

impl Period {
    pub(super) const fn new(begun: Instant) -> Self {
        Self { begun, heard: 0 }
    }

    /// How long to hear nothing after this. All that came in the period counts, not only what was there at once: a thread
    /// that hears as fast as a program sends finds little each time, and would be busy all the time.
    pub(super) fn rest(&mut self, heard: u32, now: Instant) -> Option<Duration> {
        self.heard = self.heard.saturating_add(heard);
        let rest = PERIOD.saturating_sub(now.saturating_duration_since(self.begun));
        if !rest.is_zero() && self.heard < MOST {
            return None;
        }
        *self = Self::new(now + rest);
        (!rest.is_zero()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_one_way_does_not_keep_the_other_way_waiting() {
        for (one, other, expected) in [
            (0, 0, (0, 0)),
            (3, 5, (3, 5)),
            // Of a flood as much is taken as leaves the other way its turns.
            (u32::MAX, 7, (MOST - 7, 7)),
            (7, u32::MAX, (7, MOST - 7)),
            (u32::MAX, u32::MAX, (MOST / 2, MOST / 2)),
        ] {
            let (mut of_one, mut of_other) = (0, 0);
            let take = |taken: &mut u32, there: u32| {
                let is_there = *taken < there;
                *taken += u32::from(is_there);
                is_there
            };
            let heard = in_turns(|| take(&mut of_one, one), || take(&mut of_other, other));
            assert_eq!((of_one, of_other, heard), (expected.0, expected.1, expected.0 + expected.1), "{one} {other}");
        }
    }

    #[test]
    fn who_says_more_than_a_period_has_waits_however_little_comes_at_once() {
        let start = Instant::now();
        let mut period = Period::new(start);
        let millisecond = Duration::from_millis(1);
        // A hundred at once, every millisecond.
        let rests: Vec<_> = (1..=9).map(|at| period.rest(MOST / 10, start + at * millisecond)).collect();
        assert_eq!(rests, [None; 9]);
        assert_eq!(period.rest(MOST / 10, start + 10 * millisecond), Some(PERIOD - 10 * millisecond));
        // The next period begins after the rest. What is within its bounds never waits.
        for at in 1..50 {
            assert_eq!(period.rest(MOST / 2 - 1, start + PERIOD + at * PERIOD / 2), None, "{at}");
        }
    }
}
