//! Parses times as people write them: `500ms`, `10s`, `1m30s`, `1.5h`.

use std::time::Duration;

use jiff::SignedDuration;

use thiserror::Error;

/// A text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a time: write numbers with units: 500ms, 10s, 1m30s, 1.5h")]
pub struct DurationError;

/// Numbers followed by `ms`, `s`, `m` or `h`, the largest unit first; the last number may have a fraction.
///
/// # Errors
/// If the text is anything else, negative, or more than fits.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let duration: SignedDuration = text.parse().map_err(|_| DurationError)?;
    Duration::try_from(duration).map_err(|_| DurationError)
}

/// In whole nanoseconds; more than fits is the most.
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("500ms", 500),
            ("10s", 10_000),
            ("1.5s", 1_500),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("1h", 3_600_000),
            ("1.5h", 5_400_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in ["", "10", "s", "-1s", "1d", "30s1m", "1..5s", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(parse_duration(text), Err(DurationError), "{text:?}");
        }
    }
}
