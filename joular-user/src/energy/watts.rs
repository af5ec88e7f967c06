//! Parses power as people and files write it: decimal watts.

use thiserror::Error;

/// Nothing this program runs on draws more: 100 kW.
pub const MOST_WATTS: u32 = 100_000;
pub const MOST_POWER_UW: u64 = MOST_WATTS as u64 * 1_000_000;

/// A text that is not a power.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{text}\" is not a power in watts: use a number between 0 and {MOST_WATTS}, e.g. 12.5")]
pub struct WattsError {
    text: String,
}

/// Watts, 0 to 100 000, to µW, rounded to the nearest.
///
/// # Errors
/// If `text` is not one number in that range.
pub fn parse_microwatts(text: &str) -> Result<u64, WattsError> {
    let text = text.trim();
    let microwatts = text.parse().ok().and_then(microwatts);
    microwatts.ok_or_else(|| WattsError { text: text.chars().take(40).flat_map(char::escape_debug).collect() })
}

/// Watts to µW, rounded to the nearest; `None` beyond 0 to 100 000.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10^11 after the range check")]
pub fn microwatts(watts: f64) -> Option<u64> {
    (0.0..=f64::from(MOST_WATTS)).contains(&watts).then(|| (watts * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watts_become_microwatts() {
        for (text, expected) in [("0", 0), ("12.5\n", 12_500_000), (" 1.0E-4 ", 100), ("100000", 100_000_000_000)] {
            assert_eq!(parse_microwatts(text), Ok(expected), "{text:?}");
        }
    }

    #[test]
    fn what_is_not_a_power_is_refused() {
        for text in ["", "watts", "-1", "NaN", "inf", "100000.1", "1e300", "12 13", "12,5", "0x10"] {
            assert!(parse_microwatts(text).is_err(), "{text:?}");
        }
    }
}
