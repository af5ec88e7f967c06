//! Converts a PMU's counts to µJ, exactly.
//!
//! An event's `.scale` file holds joules per count as a decimal number. For RAPL it is
//! 2.3283064365386962890625e-10: 2⁻³² written out. As a double it would be a rounded factor. Here
//! it becomes a fraction in lowest terms: µJ = count × 15625 / 2²⁶. A running total is converted,
//! not its differences. So what the division leaves in one window is there in the next, and nothing
//! is lost.

use joular_data::model::domain::Meter;

const MICRO: u128 = 1_000_000;

/// More digits than a u128 can hold need not be looked at.
const MAX_TEXT_BYTES: usize = 64;

/// µJ per count, a fraction in lowest terms; more than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// At most 2⁶⁴ − 1, so that no count overflows.
    numerator: u64,
    denominator: u128,
}

impl Scale {
    /// From joules per count as sysfs has it; `None` if the text is not a positive
    /// decimal number or cannot be kept exactly.
    pub fn parse(text: &str) -> Option<Self> {
        let text = Some(text.trim()).filter(|text| text.len() <= MAX_TEXT_BYTES)?;
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
        let digits: u128 = digits.parse().ok()?;
        if exponent < 0 { Self::lowest(digits, power) } else { Self::lowest(digits.checked_mul(power)?, 1) }
    }

    /// `joules / per` in µJ.
    fn lowest(joules: u128, per: u128) -> Option<Self> {
        // Both steps make the numbers smaller before they are multiplied.
        let first = common_divisor(joules, per);
        let (joules, per) = (joules / first, per / first);
        let second = common_divisor(MICRO, per);
        let numerator = joules.checked_mul(MICRO / second)?;
        let numerator = u64::try_from(numerator).ok().filter(|numerator| *numerator > 0)?;
        Some(Self { numerator, denominator: per / second })
    }

    /// The running total in µJ, rounded down.
    pub fn microjoules(self, count: u64) -> u64 {
        let total = u128::from(count) * u128::from(self.numerator) / self.denominator;
        u64::try_from(total).unwrap_or(u64::MAX)
    }

    /// A counter of 64 bits. It wraps, if ever, where the count does: at 2⁶⁴,
    /// for RAPL after 4.3 GJ, which is a whole number of µJ.
    pub fn meter(self, max_watts: u32) -> Meter {
        let modulus = (1_u128 << 64) * u128::from(self.numerator) / self.denominator;
        let range_uj = u64::try_from(modulus.saturating_sub(1)).unwrap_or(0);
        Meter::Counter { range_uj, unit_uj: 1, max_watts }
    }
}

/// At least 1: `b` is never 0.
fn common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `arch/x86/events/rapl.c` has it.
    const RAPL: &str = "2.3283064365386962890625e-10\n";

    #[test]
    fn a_scale_is_an_exact_fraction() {
        for (text, expected) in [
            (RAPL, Some((15_625, 1 << 26))),
            ("1e-9", Some((1, 1000))),
            ("1", Some((1_000_000, 1))),
            ("0.5", Some((500_000, 1))),
            ("2.5e1", Some((25_000_000, 1))),
            ("1e-6", Some((1, 1))),
            ("", None),
            ("0", None),
            ("-1", None),
            ("+1", None),
            (".", None),
            ("1e", None),
            ("1e-2147483648", None),
            ("1e40", None),
            ("1.0.0", None),
            ("inf", None),
            ("0x10", None),
        ] {
            let expected = expected.map(|(numerator, denominator)| Scale { numerator, denominator });
            assert_eq!(Scale::parse(text), expected, "{text:?}");
        }
    }

    #[test]
    fn counts_of_rapl_are_energies() {
        let scale = Scale::parse(RAPL).unwrap();
        for (count, expected) in [(0, 0), (4294, 0), (4295, 1), (1 << 32, 1_000_000), (u64::MAX, 4_294_967_295_999_999)]
        {
            assert_eq!(scale.microjoules(count), expected, "{count}");
        }
        let modulus = Meter::Counter { range_uj: 4_294_967_295_999_999, unit_uj: 1, max_watts: 7 };
        assert_eq!(scale.meter(7), modulus);
    }

    proptest::proptest! {
        /// However the counts are cut into windows: nothing is lost.
        #[test]
        fn differences_sum_to_the_total(counts in proptest::collection::vec(0..1_u64 << 40, 1..100)) {
            let scale = Scale::parse(RAPL).unwrap();
            let (mut count, mut sum) = (0, 0);
            for step in counts {
                sum += scale.microjoules(count + step) - scale.microjoules(count);
                count += step;
            }
            proptest::prop_assert_eq!(sum, scale.microjoules(count));
        }

        #[test]
        fn no_text_panics(text in "[0-9]{0,40}\\.?[0-9]{0,40}(e-?[0-9]{0,12})?|.{0,70}", count: u64) {
            if let Some(scale) = Scale::parse(&text) {
                scale.microjoules(count);
                scale.meter(1);
            }
        }
    }
}
