//! Measures how long two hyper-threads of a core were busy at the same time.
//!
//! Each CPU keeps one word that says how long it has been busy in all, as a function of the time:
//! [`BusyWord`]. Only that CPU writes the word, when it goes from idle to busy or back. The other
//! hyper-thread reads it with a single load whenever it accounts. The function's growth since the
//! last time is the part of the slice in which both were busy.

/// Cumulative busy time of a CPU. If bit 0 is set, the CPU is busy, and the rest is what to add to
/// the time to get the busy time until then (wrapping). Otherwise the rest is the busy time itself.
/// Times count in steps of 2 ns.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyWord(pub u64);

impl BusyWord {
    const BUSY: u64 = 1;

    /// Busy nanoseconds until `now_ns`, wrapping.
    #[inline(always)]
    pub const fn busy_ns(self, now_ns: u64) -> u64 {
        let rest = self.0 & !Self::BUSY;
        if self.0 & Self::BUSY == 0 { rest } else { rest.wrapping_add(now_ns & !1) }
    }

    /// The word once the CPU is busy, or idle, from `now_ns` on; the same word
    /// if it was so before.
    #[inline(always)]
    pub const fn at(self, now_ns: u64, is_busy: bool) -> Self {
        let busy_ns = self.busy_ns(now_ns);
        if is_busy { Self(busy_ns.wrapping_sub(now_ns & !1) | Self::BUSY) } else { Self(busy_ns) }
    }
}

/// The part of the slice that ends at `now_ns` and is `slice_ns` long in which the other
/// hyper-thread was busy too. `seen_ns` is that one's busy time when the slice began, and is moved
/// on.
///
/// The other may have written its word after our clock was read. If it became
/// busy then, the word says less for now than it did before: no time. If it
/// became idle then, it says more than there was: no more than the slice.
#[inline(always)]
pub fn corun_ns(other: BusyWord, seen_ns: &mut u64, now_ns: u64, slice_ns: u64) -> u64 {
    let grown_ns = other.busy_ns(now_ns).wrapping_sub(*seen_ns);
    if grown_ns >> 63 != 0 {
        return 0;
    }
    *seen_ns = seen_ns.wrapping_add(grown_ns);
    if grown_ns < slice_ns { grown_ns } else { slice_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_grows_while_busy_and_stands_still_while_idle() {
        let idle = BusyWord::default();
        let busy = idle.at(1_000, true);
        let idle_again = busy.at(1_500, false);
        for (word, now, expected) in [
            (idle, 900, 0),
            (busy, 1_000, 0),
            (busy, 1_300, 300),
            (idle_again, 1_500, 500),
            (idle_again, 9_000, 500),
            (idle_again.at(9_000, true), 9_100, 600),
        ] {
            assert_eq!(word.busy_ns(now), expected, "{word:?} at {now}");
        }
    }

    #[test]
    fn a_word_changes_only_when_the_state_does() {
        let busy = BusyWord::default().at(1_001, true);
        assert_eq!(busy.at(5_555, true), busy);
        let idle = busy.at(7_777, false);
        assert_eq!(idle.at(9_999, false), idle);
    }

    #[test]
    fn busy_time_never_shrinks_and_never_outruns_the_clock() {
        let mut random = 1_u64;
        // Near its end the clock wraps, and with it nothing else.
        for start in [0, 1_234_567, u64::MAX - 50_000] {
            let (mut word, mut now, mut busy) = (BusyWord::default(), start, 0_u64);
            for _ in 0..10_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                now = now.wrapping_add(random >> 54);
                let grown = word.busy_ns(now).wrapping_sub(busy);
                assert!(grown <= (random >> 54) + 1, "{grown} in {}", random >> 54);
                busy = word.busy_ns(now);
                word = word.at(now, random & (1 << 30) != 0);
                assert_eq!(word.busy_ns(now), busy, "a change of state takes no time");
            }
            assert!(busy > 0);
        }
    }

    #[test]
    fn time_in_common_is_what_the_other_was_busy_within_the_slice() {
        let busy = BusyWord::default().at(1_000, true);
        for (name, word, seen, slice, expected) in [
            ("idle all the time", BusyWord(500), 500, 1_000, 0),
            ("busy all the time", busy, 0, 1_000, 1_000),
            ("busy at first", busy.at(1_400, false), 0, 1_000, 400),
            ("busy at last", BusyWord(500).at(1_700, true), 500, 1_000, 300),
            ("became busy after our clock", BusyWord(500).at(2_010, true), 500, 1_000, 0),
            ("became idle after our clock", busy.at(2_010, false), 0, 1_000, 1_000),
        ] {
            let mut seen_ns = seen;
            assert_eq!(corun_ns(word, &mut seen_ns, 2_000, slice), expected, "{name}");
        }
    }

    #[test]
    fn a_switch_that_went_unnoticed_is_put_right_afterwards() {
        let taken_for_busy = BusyWord::default().at(1_000, true);
        let mut seen_ns = 0;
        assert_eq!(corun_ns(taken_for_busy, &mut seen_ns, 2_000, 1_000), 1_000);
        let idle = taken_for_busy.at(1_000, false);
        assert_eq!(corun_ns(idle, &mut seen_ns, 3_000, 1_000), 0);
        let busy = idle.at(3_000, true);
        assert_eq!(corun_ns(busy, &mut seen_ns, 5_500, 2_500), 1_500, "2500 ns in all, as it was busy");
    }

    #[test]
    fn what_a_newer_word_seems_to_take_back_is_not_counted_twice() {
        let word = BusyWord(500).at(2_010, true);
        let mut seen_ns = 500;
        assert_eq!(corun_ns(word, &mut seen_ns, 2_000, 1_000), 0);
        assert_eq!(corun_ns(word, &mut seen_ns, 2_110, 110), 100);
    }
}
