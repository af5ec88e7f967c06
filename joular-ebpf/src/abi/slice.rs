//! Defines a slice of CPU time and what was counted in it.

/// Longest slice that is cut in proportion, 2⁴³ ns or 2.4 hours. Every CPU
/// accounts at least once per window.
const LONGEST_NS: u64 = 1 << 43;
/// Bits of a proportion.
const FRACTION_BITS: u32 = 20;

/// Time on CPU between two accountings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    pub ns: u64,
    /// Of `ns`: while the core's other hyper-thread was busy too.
    pub corun_ns: u64,
    /// Unhalted cycles.
    pub cycles: u64,
}

impl Slice {
    /// The first `before_ns` of the slice, and the rest. It is not known when in the slice its
    /// cycles were spent, so they are divided like the time, to a millionth.
    #[inline(always)]
    pub const fn cut(self, before_ns: u64) -> (Self, Self) {
        if before_ns >= self.ns || self.ns > LONGEST_NS {
            return (self, Self { ns: 0, corun_ns: 0, cycles: 0 });
        }
        let fraction = Fraction::of(before_ns, self.ns);
        let before = Self {
            ns: before_ns,
            corun_ns: least(part(self.corun_ns, fraction), before_ns),
            cycles: part(self.cycles, fraction),
        };
        let after_ns = self.ns - before_ns;
        let after = Self {
            ns: after_ns,
            corun_ns: least(self.corun_ns - before.corun_ns, after_ns),
            cycles: self.cycles - before.cycles,
        };
        (before, after)
    }
}

/// A part of a slice's time, to a millionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction(u64);

impl Fraction {
    const WHOLE: u64 = 1 << FRACTION_BITS;

    /// `part_ns` of `ns`; all of a slice that is no longer than the part, or too long to be cut.
    #[inline(always)]
    pub const fn of(part_ns: u64, ns: u64) -> Self {
        if part_ns >= ns || ns > LONGEST_NS { Self(Self::WHOLE) } else { Self((part_ns << FRACTION_BITS) / ns) }
    }
}

/// Never more than the whole, however large that is.
#[inline(always)]
pub(super) const fn part(whole: u64, fraction: Fraction) -> u64 {
    if fraction.0 >= Fraction::WHOLE {
        return whole;
    }
    least(whole.wrapping_mul(fraction.0) >> FRACTION_BITS, whole)
}

#[inline(always)]
const fn least(a: u64, b: u64) -> u64 {
    if a < b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn slice(ns: u64, corun_ns: u64, cycles: u64) -> Slice {
        Slice { ns, corun_ns, cycles }
    }

    #[test]
    fn a_slice_is_cut_in_proportion() {
        for (whole, before_ns, before, after) in [
            (slice(1_024, 512, 4_096), 256, slice(256, 128, 1_024), slice(768, 384, 3_072)),
            (slice(1_000, 1_000, 0), 0, slice(0, 0, 0), slice(1_000, 1_000, 0)),
            (slice(1_000, 7, 9), 1_000, slice(1_000, 7, 9), slice(0, 0, 0)),
            (slice(0, 0, 0), 0, slice(0, 0, 0), slice(0, 0, 0)),
        ] {
            assert_eq!(whole.cut(before_ns), (before, after), "{whole:?} at {before_ns}");
        }
    }

    #[test]
    fn a_cut_gains_and_loses_nothing() {
        let mut x = 1_u64;
        for _ in 0..100_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let ns = (x >> 30) & 0xf_ffff_ffff;
            let whole = slice(ns, ns / 3, x >> 22);
            let (before, after) = whole.cut(ns / ((x & 7) + 1));
            assert_eq!(before.ns + after.ns, ns);
            assert_eq!(before.corun_ns + after.corun_ns, whole.corun_ns);
            assert_eq!(before.cycles + after.cycles, whole.cycles);
        }
    }

    #[test]
    fn no_part_has_more_time_in_common_than_time() {
        for before_ns in 0..300 {
            let (before, after) = slice(300, 300, u64::MAX).cut(before_ns);
            assert!(before.corun_ns <= before.ns && after.corun_ns <= after.ns, "{before:?} {after:?}");
        }
    }
}
