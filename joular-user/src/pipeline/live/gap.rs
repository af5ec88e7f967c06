//! Keeps samples of bytes few: when there are many, each has to stand for more.

/// Samples in a second beyond which each has to stand for more. At 10 µs each they take 1 % of a CPU.
const MOST_SAMPLES_PER_S: u64 = 1_000;
const LARGEST_GAP_BYTES: u32 = 1 << 30;

/// Bytes that a sample stands for at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    bytes: u32,
    /// It is never less.
    first: u32,
}

impl Gap {
    pub(super) const fn new(first: u32) -> Self {
        Self { bytes: first, first }
    }

    /// The gap for the next window, after one with so many samples; `None`: it stays as it is.
    pub(super) fn after(&mut self, samples: u64, window_ns: u64) -> Option<u32> {
        let per_s = u128::from(samples) * 1_000_000_000 / u128::from(window_ns.max(1));
        let adapted = self.adapted(u64::try_from(per_s).unwrap_or(u64::MAX));
        let is_new = adapted != self.bytes;
        self.bytes = adapted;
        is_new.then_some(adapted)
    }

    fn adapted(&self, samples_per_s: u64) -> u32 {
        if samples_per_s > MOST_SAMPLES_PER_S {
            let factor = u32::try_from(samples_per_s.div_ceil(MOST_SAMPLES_PER_S)).unwrap_or(u32::MAX);
            self.bytes.saturating_mul(factor).min(LARGEST_GAP_BYTES)
        } else if samples_per_s < MOST_SAMPLES_PER_S / 4 {
            (self.bytes / 2).max(self.first)
        } else {
            self.bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_samples_make_each_stand_for_more_and_few_for_less() {
        const FIRST: u32 = 512 << 10;
        for (bytes, samples, expected) in [
            (FIRST, 1_000, None),
            (FIRST, 3_500, Some(4 * FIRST)),
            (4 * FIRST, 600, None),
            (4 * FIRST, 100, Some(2 * FIRST)),
            (FIRST, 0, None),
            (1 << 29, u64::MAX, Some(LARGEST_GAP_BYTES)),
        ] {
            let mut gap = Gap { bytes, first: FIRST };
            assert_eq!(gap.after(samples, 1_000_000_000), expected, "{samples} samples with a gap of {bytes}");
            assert_eq!(gap.bytes, expected.unwrap_or(bytes));
        }
        assert_eq!(Gap::new(FIRST).after(700, 500_000_000), Some(2 * FIRST), "1400 a second");
    }
}
