//! Resolves from flags how long the windows of a rollup are.

use super::{
    ConfigError,
    duration::{nanoseconds, parse_duration},
};

/// Nanoseconds.
///
/// # Errors
/// If it is not a time, or longer than a day.
pub fn rollup_window_ns(window: &str) -> Result<u64, ConfigError> {
    let invalid = |cause: String| ConfigError::Invalid { place: "--window".to_owned(), cause };
    let length = parse_duration(window).map_err(|error| invalid(error.to_string()))?;
    if length.as_secs() > 24 * 3600 {
        return Err(invalid("longer than a day: a data set has folders by date".to_owned()));
    }
    Ok(nanoseconds(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_at_most_a_day_long() {
        let window = |window: &str| rollup_window_ns(window).map_err(|error| error.to_string());
        assert_eq!(window("60s"), Ok(60_000_000_000));
        assert_eq!(window("24h"), Ok(86_400_000_000_000));
        assert!(window("25h").is_err_and(|error| error.contains("--window: longer than a day")));
        assert!(window("a minute").is_err_and(|error| error.contains("--window: not a time")));
    }
}
