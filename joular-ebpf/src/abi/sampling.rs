//! Decides when a CPU takes its next sample.
//!
//! Gaps between samples are drawn at random from an exponential distribution. So no timer of a
//! workload can keep step with the sampling, and at any moment the time to the next sample is
//! distributed alike, however long ago the last one was. That makes it right to let the clock of an
//! idle CPU stop, and to draw a new gap when a target runs there again.
//! No sample can hit the time in which one is taken: a gap begins behind it.

/// Mean idle time from which on a CPU's timer is put off when the CPU becomes idle. A CPU that idles so
/// long seldom becomes idle, so that setting its timer each time costs little. One that wakes more
/// often keeps its timer, which seldom finds it idle.
const LONG_IDLE_NS: u64 = 1_000_000;

/// Longest time from when a sample is due to its interrupt that counts as part of the next gap. After a
/// longer one, of a CPU that could not be interrupted, samples are not made up for: they would all
/// find the same place.
const SHORT_DELAY_NS: u64 = 100_000;

/// Shortest time for which a timer is set. One that expires before its interrupt has ended is handled
/// without another interrupt, so its sample is late: the timer is then set again.
const SHORTEST_START_NS: u64 = 5_000;

/// Longest mean gap: 17 s, so that the product below fits 64 bits.
const MAX_MEAN_NS: u64 = (1 << 34) - 1;

/// `ln 2` in units of 2⁻³².
const LN_2: u64 = 2_977_044_472;

/// A gap in nanoseconds: exponentially distributed around `mean_ns` if `random` is uniform over all
/// 32 bits. Between 0 and 22.2 times the mean.
#[inline(always)]
pub const fn gap_ns(random: u32, mean_ns: u64) -> u64 {
    // -ln(u) with u = (random + 1) / 2³², in units of 2⁻²⁴.
    let u = random as u64 + 1;
    let whole = 63 - u.leading_zeros() as u64;
    // Bits below the first 1, as a fraction in units of 2⁻³².
    let fraction = (u << (32 - whole)) & 0xffff_ffff;
    let log2 = (whole << 32) + log2_of_one_plus(fraction);
    let minus_ln = ((((32 << 32) - log2) >> 8) * LN_2) >> 32;
    let mean_ns = if mean_ns < MAX_MEAN_NS { mean_ns } else { MAX_MEAN_NS };
    (mean_ns * minus_ln) >> 24
}

/// `log2(1 + x)` for x below 1, both in units of 2⁻³²: x + x (1 - x) (a - b x), fitted by least
/// squares. It is off by at most 0.0011, so a gap by at most 0.0008 of the mean.
#[inline(always)]
const fn log2_of_one_plus(x: u64) -> u64 {
    const A: u64 = 1_807_599_426;
    const B: u64 = 671_673_228;
    let bulge = (x * ((1 << 32) - x)) >> 32;
    x + ((bulge * (A - ((B * x) >> 32))) >> 32)
}

/// The sampling timer of one CPU, without the timer itself.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SamplingClock {
    /// When the next sample is due, monotonic; only while armed.
    pub due_ns: u64,
    /// How late the interrupt of the last sample was, until the next gap is drawn.
    pub late_ns: u64,
    /// When the CPU became idle, 0 while it is busy.
    pub idle_since_ns: u64,
    /// Mean of the last idle times.
    pub mean_idle_ns: u64,
    /// 1: the timer is set for `due_ns`.
    pub is_armed: u32,
    /// 1: the kernel has made the timer.
    pub is_ready: u32,
    /// Flags for starting the timer, which depend on the kernel.
    pub start_flags: u64,
}

impl SamplingClock {
    /// Whether a sample is due. A timer interrupt may come for other reasons and earlier.
    #[inline(always)]
    pub const fn is_due(&self, now_ns: u64) -> bool {
        self.is_armed != 0 && now_ns >= self.due_ns
    }

    /// A timer interrupt has come, and the timer is not set from now on. Returns whether a sample is due.
    #[inline(always)]
    pub const fn interrupt(&mut self, now_ns: u64) -> bool {
        let is_due = self.is_due(now_ns);
        let late_ns = now_ns.saturating_sub(self.due_ns);
        self.late_ns = if is_due && late_ns < SHORT_DELAY_NS { late_ns } else { 0 };
        self.is_armed = 0;
        is_due
    }

    /// Draws when the next sample is due. The time from when the last one was due to its interrupt is
    /// part of the gap, so that it does not make samples rarer; the time in which it was taken is not.
    #[inline(always)]
    pub const fn draw(&mut self, random: u32, mean_gap_ns: u64, now_ns: u64) {
        let gap_ns = gap_ns(random, mean_gap_ns).saturating_sub(self.late_ns);
        self.due_ns = now_ns + if gap_ns > SHORTEST_START_NS { gap_ns } else { SHORTEST_START_NS };
        self.late_ns = 0;
        self.is_armed = 1;
    }

    /// For how long the timer is to be set for the sample that is due next.
    #[inline(always)]
    pub const fn left_ns(&self, now_ns: u64) -> u64 {
        let left_ns = self.due_ns.saturating_sub(now_ns);
        if left_ns > SHORTEST_START_NS { left_ns } else { SHORTEST_START_NS }
    }

    /// The CPU becomes idle. Returns whether its timer should be put off, because it would probably
    /// wake the CPU for nothing.
    #[inline(always)]
    pub const fn idles(&mut self, now_ns: u64) -> bool {
        self.idle_since_ns = now_ns;
        self.is_armed != 0 && self.mean_idle_ns >= LONG_IDLE_NS
    }

    /// The CPU runs a thread (again).
    #[inline(always)]
    pub const fn runs(&mut self, now_ns: u64) {
        if self.idle_since_ns != 0 {
            let idle_ns = now_ns.saturating_sub(self.idle_since_ns);
            // A mean over some eight times; one long time does not outweigh many short ones for long.
            let idle_ns = if idle_ns > 16 * LONG_IDLE_NS { 16 * LONG_IDLE_NS } else { idle_ns };
            self.mean_idle_ns = self.mean_idle_ns - self.mean_idle_ns / 8 + idle_ns / 8;
            self.idle_since_ns = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN_NS: u64 = 10_101_010;

    /// Evenly spread values stand for all random ones.
    fn gaps() -> impl Iterator<Item = f64> {
        (0..1_u32 << 20).map(|index| gap_ns((index << 12) | 0x800, MEAN_NS) as f64 / MEAN_NS as f64)
    }

    #[test]
    fn gaps_have_the_mean_and_the_spread_of_an_exponential_distribution() {
        let count = f64::from(1 << 20);
        let mean = gaps().sum::<f64>() / count;
        let variance = gaps().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / count;
        assert!((mean - 1.0).abs() < 0.001, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.003, "variance {variance}");
    }

    #[test]
    fn as_many_gaps_are_longer_than_a_time_as_the_distribution_says() {
        for times in [0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 7.0] {
            let longer = gaps().filter(|gap| *gap > times).count() as f64 / f64::from(1 << 20);
            let expected = f64::exp(-times);
            assert!((longer - expected).abs() < 0.001, "{times}: {longer} instead of {expected}");
        }
    }

    #[test]
    fn every_random_number_gives_a_gap_within_bounds() {
        for random in [0, 1, 2, 3, u32::MAX / 2, u32::MAX / 2 + 1, u32::MAX - 1, u32::MAX] {
            for mean_ns in [0, 1, 100_000, MEAN_NS, 1_000_000_000, u64::MAX] {
                assert!(gap_ns(random, mean_ns) <= 23 * mean_ns.min(MAX_MEAN_NS), "{random} {mean_ns}");
            }
        }
        assert!(gap_ns(u32::MAX, MEAN_NS) < MEAN_NS / 1_000);
    }

    #[test]
    fn a_timer_is_put_off_only_on_cpus_that_idle_for_long() {
        let after = |idle_ns: u64| {
            let mut clock = SamplingClock { is_armed: 1, ..SamplingClock::default() };
            let mut now_ns = 1;
            for _ in 0..50 {
                let _ = clock.idles(now_ns);
                now_ns += idle_ns;
                clock.runs(now_ns);
                now_ns += 100_000;
            }
            clock.idles(now_ns)
        };
        assert!(!after(50_000) && !after(500_000));
        assert!(after(2_000_000) && after(50_000_000) && after(u64::MAX >> 8));
    }

    /// When the sample after one is due that was late and took some time, counted from when that was due.
    fn next(late_ns: u64, taken_ns: u64, random: u32) -> u64 {
        let mut clock = SamplingClock { due_ns: 1_000_000, is_armed: 1, ..SamplingClock::default() };
        assert!(clock.interrupt(1_000_000 + late_ns));
        clock.draw(random, MEAN_NS, 1_000_000 + late_ns + taken_ns);
        clock.due_ns - 1_000_000
    }

    #[test]
    fn a_gap_begins_when_the_last_sample_was_due_unless_that_is_long_ago() {
        let gap_ns = gap_ns(77, MEAN_NS);
        for (late_ns, begin_ns) in [(0, 0), (20_000, 0), (100_000, 100_000), (4_000_000, 4_000_000)] {
            assert_eq!(next(late_ns, 0, 77), begin_ns + gap_ns);
        }
        // A timer that was not set is not late.
        let mut clock = SamplingClock { due_ns: 1_000_000, ..SamplingClock::default() };
        assert!(!clock.interrupt(1_020_000));
        clock.draw(77, MEAN_NS, 1_020_000);
        assert_eq!(clock.due_ns, 1_020_000 + gap_ns);
    }

    #[test]
    fn a_gap_does_not_contain_the_time_in_which_a_sample_is_taken() {
        assert_eq!(next(0, 200_000, 77), 200_000 + gap_ns(77, MEAN_NS));
        // The shortest gaps of all.
        assert_eq!(next(0, 200_000, u32::MAX), 200_000 + SHORTEST_START_NS);
        assert_eq!(next(20_000, 200_000, u32::MAX), 220_000 + SHORTEST_START_NS);
    }

    #[test]
    fn a_timer_that_expired_unseen_is_set_again_for_what_is_left_of_its_gap() {
        let clock = SamplingClock { due_ns: 1_000_000, is_armed: 1, ..SamplingClock::default() };
        for (now_ns, left_ns) in
            [(0, 1_000_000), (900_000, 100_000), (999_999, SHORTEST_START_NS), (9_000_000, SHORTEST_START_NS)]
        {
            assert_eq!(clock.left_ns(now_ns), left_ns, "at {now_ns}");
        }
    }

    #[test]
    fn a_timer_that_is_not_set_is_not_due() {
        let clock = SamplingClock { due_ns: 5, ..SamplingClock::default() };
        assert!(!clock.is_due(6));
        let clock = SamplingClock { is_armed: 1, ..clock };
        assert!(clock.is_due(6) && clock.is_due(5) && !clock.is_due(4));
    }
}
