//! Defines what is counted beside CPU time, by events of the kernel or of the hardware.

use super::slice::{Fraction, part};

/// Most counters of a recording. Each is read at every accounting.
pub const MAX_COUNTERS: usize = 8;

/// What one thread's counters counted in one window in one place, in the order in which they were asked for.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterSlot {
    pub counts: [u64; MAX_COUNTERS],
}

/// What a CPU keeps of its counters.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterState {
    /// The counters at the last accounting, plus 1; 0 if one could not be read.
    pub last: [u64; MAX_COUNTERS],
    /// Of the slice that is accounted: before the window's boundary, and after it.
    pub earlier: CounterSlot,
    pub later: CounterSlot,
}

impl CounterState {
    /// Takes what a counter says now, `None` if it could not be read. Returns what it counted in the slice that
    /// has just ended, `None` if that is not known.
    #[inline(always)]
    pub const fn step(last: &mut u64, now: Option<u64>) -> Option<u64> {
        let before = *last;
        *last = match now {
            Some(now) => now.wrapping_add(1),
            None => 0,
        };
        match now {
            Some(now) if before != 0 && now.wrapping_add(1) >= before => Some(now.wrapping_add(1) - before),
            _ => None,
        }
    }
}

/// Cuts a count like the time of its slice, because it is not known when in the slice it was counted. Nothing is
/// gained or lost: the second part is what the first leaves.
#[inline(always)]
pub const fn cut_count(count: u64, before: Fraction) -> (u64, u64) {
    let first = part(count, before);
    (first, count - first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_counts_from_its_second_reading_on() {
        let mut last = 0;
        let mut step = |now| CounterState::step(&mut last, now);
        // A counter of events that are rare stands at 0 for long.
        assert_eq!(step(Some(0)), None);
        assert_eq!(step(Some(0)), Some(0));
        assert_eq!(step(Some(7)), Some(7));
    }

    #[test]
    fn what_a_failed_reading_leaves_out_is_not_guessed() {
        let mut last = 0;
        let mut step = |now| CounterState::step(&mut last, now);
        step(Some(5));
        assert_eq!(step(None), None);
        assert_eq!(step(Some(90)), None, "counted in two slices, of two threads");
        assert_eq!(step(Some(91)), Some(1));
        assert_eq!(step(Some(3)), None, "another counter, of a CPU that came back");
        assert_eq!(step(Some(4)), Some(1));
    }

    #[test]
    fn a_cut_count_is_divided_like_the_time_and_whole() {
        for (count, before_ns, ns, first) in
            [(1_000, 250, 1_000, 250), (1, 999, 1_000, 0), (1, 1_000, 1_000, 1), (7, 0, 1_000, 0), (9, 5, 0, 9)]
        {
            let (earlier, later) = cut_count(count, Fraction::of(before_ns, ns));
            assert_eq!((earlier, earlier + later), (first, count), "{before_ns} of {ns} ns");
        }
        for count in [0, 1, 3, u64::from(u32::MAX), u64::MAX] {
            for before_ns in (0..2_000_000_000_u64).step_by(77_777_777) {
                let (earlier, later) = cut_count(count, Fraction::of(before_ns, 2_000_000_000));
                assert_eq!(earlier.checked_add(later), Some(count));
            }
        }
    }
}
