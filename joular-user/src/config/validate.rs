//! Resolves from flags what is compared with a wattmeter.

use std::time::Duration;

use joular_data::report::validate::Request;

use super::{ConfigError, duration::parse_duration, part::part};
use crate::{
    cli::{PartFlags, ValidateFlags},
    experiment::protocol::{self, Schedule},
};

/// Of the protocol, unless something else is asked for: 40 minutes, and five values for each figure.
const ROUNDS: u32 = 5;
const STEP: Duration = Duration::from_secs(20);

/// Zones are at most this far from UTC: 18 hours, as in ISO 8601's readers.
const MOST_OFFSET_HOURS: i64 = 18;

/// # Errors
/// If a flag cannot be understood.
pub fn validation(flags: &ValidateFlags) -> Result<Request, ConfigError> {
    let invalid = |place: &str, cause: String| ConfigError::Invalid { place: place.to_owned(), cause };
    let (since, until) = (flags.since.clone(), flags.until.clone());
    let (host, run) = (flags.host.clone(), flags.run.clone());
    // A reference is compared with all that was recorded beside it.
    let (filter, _) = part(&PartFlags { since, until, host, run, strict: true, ..PartFlags::default() })?;
    let most_shift = parse_duration(&flags.max_shift).map_err(|error| invalid("--max-shift", error.to_string()))?;
    if most_shift.as_secs() > 3600 {
        return Err(invalid("--max-shift", "more than an hour: set the meter's clock, or correct its log".to_owned()));
    }
    let offset = flags.utc_offset.as_deref().map(|text| {
        utc_offset_s(text)
            .ok_or_else(|| invalid("--utc-offset", format!("'{text}' is not an offset: write +01:00 or -05:30")))
    });
    if flags.meter_class.is_some_and(|percent| !(0.0..=100.0).contains(&percent)) {
        return Err(invalid("--meter-class", "not between 0 and 100 percent".to_owned()));
    }
    Ok(Request {
        filter,
        domains: flags.domain.clone(),
        most_shift,
        utc_offset_s: offset.transpose()?.unwrap_or(0),
        meter_class: flags.meter_class,
        fits_board: flags.board_model.is_some(),
        is_json: flags.json,
    })
}

/// How the protocol runs, if it does.
///
/// # Errors
/// If a figure is out of its range.
pub fn schedule(flags: &ValidateFlags) -> Result<Schedule, ConfigError> {
    let invalid = |place: &str, cause: &str| ConfigError::Invalid { place: place.to_owned(), cause: cause.to_owned() };
    let rounds = flags.rounds.unwrap_or(ROUNDS);
    if !protocol::ROUNDS.contains(&rounds) {
        return Err(invalid("--rounds", "not between 2 and 100"));
    }
    let step = flags.step.as_deref().map_or(Ok(STEP), parse_duration);
    let step = step.map_err(|error| invalid("--step", &error.to_string()))?;
    if !protocol::STEP.contains(&step) {
        return Err(invalid("--step", "not between 2s and 10m"));
    }
    Ok(Schedule { rounds, step, seed: flags.seed.unwrap_or_else(|| fastrand::u64(..)) })
}

/// Seconds ahead of UTC, of `+HH:MM`, `-HH:MM` or `Z`.
fn utc_offset_s(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("utc") {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let number = |text: &str, most: i64| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| is_plain && *number <= most)
    };
    Some(sign * (number(hours, MOST_OFFSET_HOURS)? * 3600 + number(minutes, 59)? * 60))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn flags(max_shift: &str, utc_offset: Option<&str>) -> ValidateFlags {
        ValidateFlags {
            max_shift: max_shift.into(),
            utc_offset: utc_offset.map(Into::into),
            ..ValidateFlags::default()
        }
    }

    #[test]
    fn offsets_are_ahead_of_utc() {
        for (text, expected) in
            [(None, 0), (Some("Z"), 0), (Some("+01:00"), 3600), (Some("-05:30"), -19_800), (Some("+18:59"), 68_340)]
        {
            let request = validation(&flags("30s", text)).unwrap();
            assert_eq!((request.utc_offset_s, request.most_shift), (expected, Duration::from_secs(30)), "{text:?}");
        }
    }

    #[test]
    fn a_class_is_a_percentage() {
        for (meter_class, is_right) in [(0.5, true), (100.0, true), (-1.0, false), (f64::NAN, false), (101.0, false)] {
            let flags = ValidateFlags { meter_class: Some(meter_class), ..flags("30s", None) };
            assert_eq!(validation(&flags).is_ok_and(|request| request.meter_class == Some(meter_class)), is_right);
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (max_shift, utc_offset, expected) in [
            ("soon", None, "--max-shift: not a time"),
            ("2h", None, "--max-shift: more than an hour"),
            ("30s", Some("CET"), "--utc-offset: 'CET' is not an offset: write +01:00"),
            ("30s", Some("+1:00"), "--utc-offset: '+1:00'"),
            ("30s", Some("+19:00"), "--utc-offset: '+19:00'"),
        ] {
            let message = validation(&flags(max_shift, utc_offset)).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
