//! Finds the windows with one sample of a thread that are nearest to a window without any.
//!
//! Windows come in the order of time. Memory holds those within the horizon, whatever the length of a
//! run.

use std::{collections::VecDeque, ops::Range};

use super::{ENOUGH, HORIZON, Share, Unsampled, growth};
use crate::{
    attribution::split::apportion,
    model::units::{MicroJoules, UnixMicros},
};

/// The only sample of a window.
#[derive(Clone, Copy, Debug)]
struct Neighbour<P> {
    start: UnixMicros,
    path: P,
    /// Energy that it stands for so far, µJ.
    energy: f64,
}

/// A thread's windows within the horizon.
#[derive(Clone, Debug)]
pub struct Nearest<P> {
    neighbours: VecDeque<Neighbour<P>>,
    /// Windows without a sample, whose horizon has not passed.
    waiting: VecDeque<Unsampled>,
}

impl<P> Default for Nearest<P> {
    fn default() -> Self {
        Self { neighbours: VecDeque::new(), waiting: VecDeque::new() }
    }
}

impl<P: Copy + PartialEq> Nearest<P> {
    /// Takes a window in which one sample hit the thread.
    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    pub fn single(&mut self, start: UnixMicros, path: P, energy: MicroJoules) {
        self.neighbours.push_back(Neighbour { start, path, energy: energy.0 as f64 });
    }

    /// Takes a window in which no sample hit the thread.
    pub fn unsampled(&mut self, what: Unsampled) {
        self.waiting.push_back(what);
    }

    /// Whether windows wait for samples after them.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether it holds nothing: the thread did not run within the horizon.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.neighbours.is_empty()
    }

    /// Shares out the windows that no sample from `now` on can be near to; without `now` all of them.
    /// Windows without a near sample have no shares.
    pub fn settle(&mut self, now: Option<(UnixMicros, u64)>, mut give: impl FnMut(Unsampled, &[Share<P>])) {
        let is_past =
            |start: UnixMicros, length_ns: u64| now.is_none_or(|(now, _)| distance(start, now, length_ns) > HORIZON);
        let mut shares = Vec::new();
        while let Some(what) = self.waiting.front().copied().filter(|what| is_past(what.start, what.length_ns)) {
            self.waiting.pop_front();
            self.share(&what, &mut shares);
            give(what, &shares);
        }
        let Some((now, length_ns)) = now else {
            self.neighbours.clear();
            return;
        };
        let needed = self.waiting.front().map_or((now, length_ns), |what| (what.start, what.length_ns));
        while self.neighbours.front().is_some_and(|first| distance(first.start, needed.0, needed.1) > HORIZON) {
            self.neighbours.pop_front();
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "for an error estimate")]
    fn share(&mut self, what: &Unsampled, shares: &mut Vec<Share<P>>) {
        shares.clear();
        let chosen = self.choose(what);
        let alike = vec![1; chosen.len()];
        let more = what.energy.0 as f64 / chosen.len().max(1) as f64;
        let (energies, times) = (apportion(what.energy.0, &alike), apportion(what.cpu_ns, &alike));
        // In the order of time, whatever is nearer: it breaks ties.
        for ((neighbour, energy), cpu_ns) in self.neighbours.range_mut(chosen).zip(energies).zip(times) {
            let squares = growth(1, neighbour.energy, more);
            neighbour.energy += more;
            let share = Share { path: neighbour.path, energy: MicroJoules(energy), cpu_ns, squares };
            match shares.iter_mut().find(|known| known.path == share.path) {
                Some(known) => known.plus(&share),
                None => shares.push(share),
            }
        }
    }

    /// Places of the nearest neighbours, until there are enough. Of windows that are equally far none is
    /// left out.
    fn choose(&self, what: &Unsampled) -> Range<usize> {
        let mut after = self.neighbours.partition_point(|neighbour| neighbour.start < what.start);
        let (mut before, mut farthest) = (after, 0);
        let far = |place: Option<usize>| {
            let neighbour = place.and_then(|place| self.neighbours.get(place));
            neighbour.map(|neighbour| distance(neighbour.start, what.start, what.length_ns))
        };
        loop {
            let (is_before, far) = match (far(before.checked_sub(1)), far(Some(after))) {
                (Some(left), Some(right)) if left <= right => (true, left),
                (_, Some(right)) => (false, right),
                (Some(left), None) => (true, left),
                (None, None) => return before..after,
            };
            if far > HORIZON || (after - before >= ENOUGH && far > farthest) {
                return before..after;
            }
            farthest = far;
            if is_before {
                before -= 1;
            } else {
                after += 1;
            }
        }
    }
}

impl<P> Share<P> {
    /// Adds what another has.
    pub fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.squares += other.squares;
    }
}

/// How many windows of a length lie between two starts. Wall-clock times of windows are corrected, so
/// it is rounded.
pub fn distance(one: UnixMicros, other: UnixMicros, length_ns: u64) -> u64 {
    let length_us = (length_ns / 1000).max(1);
    one.0.abs_diff(other.0).saturating_add(length_us / 2) / length_us
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    /// A thread's windows of one second: the path of its one sample, or none with energy.
    enum Window {
        One(char),
        None(u64),
    }
    use Window::{None as Empty, One};

    fn at(second: usize) -> UnixMicros {
        // Clocks are corrected by a little.
        UnixMicros(i64::try_from(second).unwrap() * SECOND + i64::from(second.is_multiple_of(2)))
    }

    /// What each window without a sample gives to whom; nothing where it stays.
    fn shared(windows: &[(usize, Window)]) -> Vec<(usize, Vec<(char, u64)>)> {
        let (mut nearest, mut found) = (Nearest::default(), Vec::new());
        let mut give = |what: Unsampled, shares: &[Share<char>]| {
            let sum: u64 = shares.iter().map(|share| share.energy.0).sum();
            assert!(shares.is_empty() || sum == what.energy.0, "nothing is lost");
            let second = usize::try_from((what.start.0 + SECOND / 2) / SECOND).unwrap();
            found.push((second, shares.iter().map(|share| (share.path, share.energy.0)).collect()));
        };
        for (second, window) in windows {
            match window {
                One(path) => nearest.single(at(*second), *path, MicroJoules(10)),
                Empty(energy) => nearest.unsampled(Unsampled {
                    start: at(*second),
                    length_ns: 1_000_000_000,
                    energy: MicroJoules(*energy),
                    cpu_ns: 3,
                }),
            }
            nearest.settle(Some((at(*second), 1_000_000_000)), &mut give);
        }
        nearest.settle(None, &mut give);
        found
    }

    #[test]
    fn samples_before_and_after_share_a_window_until_they_are_enough() {
        let windows = [
            (0, One('z')),
            (3, One('a')),
            (4, One('b')),
            (5, Empty(100)),
            (6, One('c')),
            (8, One('b')),
            (10, One('z')),
        ];
        assert_eq!(shared(&windows), [(5, vec![('a', 25), ('b', 50), ('c', 25)])]);
    }

    #[test]
    fn windows_that_are_equally_far_count_alike() {
        let windows =
            [(0, One('a')), (1, One('a')), (2, One('a')), (3, Empty(100)), (4, One('b')), (5, One('b')), (6, One('b'))];
        assert_eq!(shared(&windows), [(3, vec![('a', 50), ('b', 50)])], "four are enough: the third pair is farther");
    }

    #[test]
    fn what_is_farther_than_the_horizon_says_nothing() {
        let horizon = usize::try_from(HORIZON).unwrap();
        let near = [(0, One('a')), (horizon, Empty(5)), (2 * horizon + 1, One('b'))];
        assert_eq!(shared(&near), [(horizon, vec![('a', 5)])]);
        let far = [(0, One('a')), (horizon + 1, Empty(5)), (2 * horizon + 2, One('b'))];
        assert_eq!(shared(&far), [(horizon + 1, vec![])]);
    }

    #[test]
    fn memory_holds_no_more_than_the_horizon() {
        let mut nearest = Nearest::default();
        for second in 0..10_000_usize {
            if second.is_multiple_of(100) {
                nearest.single(at(second), 'a', MicroJoules(1));
            } else {
                let (energy, cpu_ns) = (MicroJoules(1), 1);
                nearest.unsampled(Unsampled { start: at(second), length_ns: 1_000_000_000, energy, cpu_ns });
            }
            nearest.settle(Some((at(second), 1_000_000_000)), |_, _| {});
            assert!(nearest.waiting.len() <= 31 && nearest.neighbours.len() <= 1, "at {second}");
        }
    }

    /// Two samples of 10 µJ that get 5 µJ, then 3 µJ each: their squares are those of two of 18 µJ.
    #[test]
    fn squares_grow_as_samples_count_for_more() {
        let mut nearest = Nearest::default();
        let mut squares = 2.0 * 10.0_f64.powi(2);
        nearest.single(at(0), 'a', MicroJoules(10));
        nearest.single(at(3), 'a', MicroJoules(10));
        for (second, energy) in [(1, 10), (2, 6)] {
            let (energy, cpu_ns) = (MicroJoules(energy), 1);
            nearest.unsampled(Unsampled { start: at(second), length_ns: 1_000_000_000, energy, cpu_ns });
        }
        nearest.settle(None, |_, shares| squares += shares.iter().map(|share| share.squares).sum::<f64>());
        assert!((squares - 2.0 * 18.0_f64.powi(2)).abs() < 1e-9, "{squares}");
    }
}
