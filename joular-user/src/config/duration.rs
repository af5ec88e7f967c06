//! Parses times as people write them: `500ms`, `10s`, `2m`, `1h`.

use std::time::Duration;

use thiserror::Error;

/// A text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a time: write a whole number and a unit: 500ms, 10s, 2m, 1h")]
pub struct DurationError;

/// A whole number followed by `ms`, `s`, `m` or `h`.
///
/// # Errors
/// If the text is anything else, or more than fits.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or(DurationError)?;
    let number: u64 = number.parse().map_err(|_| DurationError)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(DurationError),
    };
    number.checked_mul(milliseconds).map(Duration::from_millis).ok_or(DurationError)
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
        for (text, milliseconds) in [("0s", 0), ("500ms", 500), ("10s", 10_000), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "10",
            "s",
            "1.5s",
            "-1s",
            "+1s",
            " 1s",
            "1 s",
            "1S",
            "1d",
            "1m30s",
            "1µs",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert_eq!(parse_duration(text), Err(DurationError), "{text:?}");
        }
    }
}
