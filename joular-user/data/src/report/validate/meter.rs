//! Reads a wattmeter's log: CSV with a header, and a time and a power in every line.
//!
//! docs/trust.md describes the format for users. Meters are asked for no more than they commonly
//! write: columns in any order, commas, semicolons or tabs between them, a decimal comma where commas
//! do not separate, comments after `#`. A power that is left blank is a reading that is missing.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read as _},
    path::{Path, PathBuf},
};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use thiserror::Error;

/// Names of the column with times, in lower case.
const TIME_NAMES: [&str; 7] = ["time", "timestamp", "datetime", "date_time", "unix_time", "unix", "epoch"];

/// Names of the column with powers, in lower case.
const POWER_NAMES: [&str; 7] = ["watts", "power_w", "power", "w", "power_watts", "power(w)", "power (w)"];

/// A reading a millisecond for almost three hours, or ten a second for eleven days.
const MAX_READINGS: usize = 10_000_000;

const MAX_LINE_BYTES: u64 = 4096;

/// More than any machine that a meter of one socket feeds: 1 MW.
const MOST_WATTS: f64 = 1e6;

/// The least time that is a date (1973), in seconds since 1970. Smaller ones are since the log's start.
const LEAST_UNIX_SECONDS: f64 = 1e8;

/// One reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeterReading {
    /// By the meter's clock, µs since 1970.
    pub at_us: i64,
    pub watts: f64,
}

/// A log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeterLog {
    /// By time; no two at the same.
    pub readings: Vec<MeterReading>,
    /// Whether a time came without its zone.
    pub is_zone_assumed: bool,
    /// Lines without a power.
    pub blank: u64,
}

/// Why a log cannot be used.
#[derive(Debug, Error)]
pub enum MeterError {
    #[error("opening the meter's log {path}: {cause}: name a CSV file with --reference")]
    Open { path: PathBuf, cause: io::Error },
    #[error("reading the meter's log: {0}")]
    Read(#[from] io::Error),
    #[error(
        "reading the meter's log: its first line names no column of {what}: it has {found}: name one {advice}, in the first line"
    )]
    NoColumn { what: &'static str, found: String, advice: String },
    #[error("reading the meter's log: line {line}: {problem}")]
    Line { line: u64, problem: String },
    #[error("reading the meter's log: more than {MAX_READINGS} readings: cut it to the time of the run")]
    TooMany,
    #[error("reading the meter's log: it has {0} readings, at least 2 are needed: log for the whole run")]
    TooFew(usize),
}

impl MeterLog {
    /// Reads the log at `path`. Times without a zone are `utc_offset_s` ahead of UTC.
    ///
    /// # Errors
    /// If it cannot be read or is no such log; a line that is wrong is named.
    pub fn open(path: &Path, utc_offset_s: i64) -> Result<Self, MeterError> {
        let file = File::open(path).map_err(|cause| MeterError::Open { path: path.into(), cause })?;
        Self::read(BufReader::new(file), utc_offset_s)
    }

    /// Reads a log from its text.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn read(mut input: impl BufRead, utc_offset_s: i64) -> Result<Self, MeterError> {
        let mut log = Self::default();
        let mut columns = None;
        let mut line = 0;
        let mut bytes = Vec::new();
        loop {
            line += 1;
            bytes.clear();
            if input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
                break;
            }
            let wrong = |problem: String| MeterError::Line { line, problem };
            if bytes.len() as u64 == MAX_LINE_BYTES {
                return Err(wrong(format!("it is longer than {MAX_LINE_BYTES} bytes: is this a CSV file?")));
            }
            let text = String::from_utf8_lossy(&bytes);
            let text = text.trim_start_matches('\u{feff}').trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match &columns {
                None => columns = Some(Columns::of(text)?),
                Some(columns) => log.take(columns, text, utc_offset_s).map_err(wrong)?,
            }
            if log.readings.len() > MAX_READINGS {
                return Err(MeterError::TooMany);
            }
        }
        match log.readings.len() {
            few @ 0..=1 => Err(MeterError::TooFew(few)),
            _ => Ok(log),
        }
    }

    fn take(&mut self, columns: &Columns, text: &str, utc_offset_s: i64) -> Result<(), String> {
        let (time, power) = columns.fields(text)?;
        let Some(watts) = columns.watts(power)? else {
            self.blank += 1;
            return Ok(());
        };
        let at_us = match unix_us(&columns.number(time)) {
            Some(at_us) => at_us?,
            None => {
                let (at_us, has_zone) = date_us(time, utc_offset_s)?;
                self.is_zone_assumed |= !has_zone;
                at_us
            }
        };
        match self.readings.last_mut() {
            Some(last) if at_us < last.at_us => Err(format!(
                "time goes back from the line before, at '{time}': sort the log; times without a zone must be \
                     of one offset throughout"
            )),
            // A log of whole seconds may have several readings in one: the last one counts.
            Some(last) if at_us == last.at_us => {
                last.watts = watts;
                Ok(())
            }
            _ => {
                self.readings.push(MeterReading { at_us, watts });
                Ok(())
            }
        }
    }

    /// The usual time between two readings (their median), in µs; at least 1.
    pub fn period_us(&self) -> i64 {
        let mut periods: Vec<i64> = self.readings.windows(2).map(|pair| pair[1].at_us - pair[0].at_us).collect();
        let middle = periods.len() / 2;
        if periods.is_empty() {
            return 1;
        }
        (*periods.select_nth_unstable(middle).1).max(1)
    }
}

/// Where a log has what.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Columns {
    separator: char,
    time: usize,
    power: usize,
}

impl Columns {
    fn of(header: &str) -> Result<Self, MeterError> {
        let separator = [',', ';', '\t'].into_iter().max_by_key(|separator| {
            // The first of equals: a comma.
            (header.matches(*separator).count(), *separator == ',')
        });
        let separator = separator.unwrap_or(',');
        let names: Vec<String> = split(header, separator).map(str::to_lowercase).collect();
        let find = |what, known: &[&str]| {
            let place = known.iter().find_map(|known| names.iter().position(|name| name == known));
            place.ok_or_else(|| MeterError::NoColumn {
                what,
                found: names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", "),
                advice: known.join(", ").replacen(", ", " or ", 1),
            })
        };
        Ok(Self { separator, time: find("times", &TIME_NAMES)?, power: find("powers", &POWER_NAMES)? })
    }

    /// The time's and the power's.
    fn fields<'a>(&self, text: &'a str) -> Result<(&'a str, &'a str), String> {
        let field = |place| split(text, self.separator).nth(place);
        match (field(self.time), field(self.power)) {
            (Some(time), Some(power)) => Ok((time, power)),
            _ => Err(format!(
                "it has {} fields, fewer than the first line names: complete or remove it",
                split(text, self.separator).count()
            )),
        }
    }

    /// A number with a point, whatever it was written with.
    fn number(&self, text: &str) -> String {
        if self.separator == ',' { text.to_owned() } else { text.replace(',', ".") }
    }

    /// `None`: a blank.
    fn watts(&self, text: &str) -> Result<Option<f64>, String> {
        let text = text.trim_end_matches(['W', 'w', ' ']);
        if text.is_empty() || text.eq_ignore_ascii_case("nan") || text == "-" {
            return Ok(None);
        }
        let watts = self.number(text).parse::<f64>().ok().filter(|watts| (-1.0..=MOST_WATTS).contains(watts));
        watts
            .map(Some)
            .ok_or_else(|| format!("'{text}' is not a power: write watts as a number from 0 to 1e6, such as 85.2"))
    }
}

fn split(line: &str, separator: char) -> impl Iterator<Item = &str> {
    line.split(separator).map(|field| field.trim().trim_matches('"').trim())
}

/// A time in seconds since 1970, or in ms, µs or ns if it is that large; `None` if it is not a number.
fn unix_us(text: &str) -> Option<Result<i64, String>> {
    let number: f64 = text.parse().ok()?;
    let seconds = match number {
        number if number >= 1e17 => number / 1e9,
        number if number >= 1e14 => number / 1e6,
        number if number >= 1e11 => number / 1e3,
        number => number,
    };
    Some(if (LEAST_UNIX_SECONDS..1e11).contains(&seconds) {
        #[allow(clippy::cast_possible_truncation, reason = "less than 10¹⁷")]
        Ok((seconds * 1e6).round() as i64)
    } else {
        Err(format!("'{text}' is not a wall-clock time: write RFC 3339 (2026-03-01T12:00:00Z) or seconds since 1970"))
    })
}

/// A date and time, and whether it says its zone.
fn date_us(text: &str, utc_offset_s: i64) -> Result<(i64, bool), String> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok((moment.as_microsecond(), true));
    }
    let local: Option<Timestamp> =
        text.parse::<DateTime>().ok().and_then(|local| Some(local.to_zoned(TimeZone::UTC).ok()?.timestamp()));
    match local {
        Some(local) => Ok((local.as_microsecond() - utc_offset_s * 1_000_000, false)),
        None => Err(format!("'{text}' is not a time: write RFC 3339 (2026-03-01T12:00:00Z) or seconds since 1970")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-03-01T12:00:00Z.
    const NOON_US: i64 = 1_772_366_400_000_000;

    fn read(text: &str) -> Result<MeterLog, MeterError> {
        MeterLog::read(text.as_bytes(), 0)
    }

    #[track_caller]
    fn check(text: &str, expected: &[(i64, f64)]) {
        let expected: Vec<MeterReading> = expected
            .iter()
            .map(|(after_us, watts)| MeterReading { at_us: NOON_US + after_us, watts: *watts })
            .collect();
        assert_eq!(read(text).unwrap().readings, expected, "{text}");
    }

    #[test]
    fn logs_of_common_meters_are_read() {
        let expected = [(0, 80.0), (1_000_000, 85.5)];
        check("time,watts\n2026-03-01T12:00:00Z,80\n2026-03-01T12:00:01Z,85.5\n", &expected);
        check("Timestamp,Power_W\n1772366400,80\n1772366401.0,85.5", &expected);
        check("\u{feff}\"time\";\"U\";\"Power\"\r\n1772366400;230,1;80\r\n1772366401;230,2;85,5\r\n", &expected);
        check("# a meter\n\nw\tepoch\n80\t1772366400000\n\n85.5 W\t1772366401000\n", &expected);
        check("power,unix\n80,1772366400000000\n85.5,1772366401000000000\n", &expected);
        check("time,watts\n2026-03-01T13:00:00+01:00,80\n2026-03-01 12:00:01Z,85.5", &expected);
    }

    #[test]
    fn a_time_without_zone_is_of_the_offset_given() {
        let text = "time,watts\n2026-03-01 13:00:00,80\n2026-03-01T13:00:01.250,81\n";
        let log = MeterLog::read(text.as_bytes(), 3600).unwrap();
        assert!(log.is_zone_assumed);
        assert_eq!(log.readings.iter().map(|reading| reading.at_us - NOON_US).collect::<Vec<_>>(), [0, 1_250_000]);
    }

    #[test]
    fn a_blank_is_a_reading_that_is_missing_and_of_one_moment_the_last_counts() {
        let log =
            read("time,watts\n1772366400,80\n1772366401,\n1772366402,NaN\n1772366403,82\n1772366403,83\n").unwrap();
        assert_eq!(log.blank, 2);
        assert_eq!(log.readings.iter().map(|reading| reading.watts).collect::<Vec<_>>(), [80.0, 83.0]);
        assert_eq!(log.period_us(), 3_000_000);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, expected) in [
            ("time,volts\n1,2\n", "names no column of powers: it has 'time', 'volts': name one watts or power_w"),
            ("watts\n1\n", "names no column of times"),
            ("time,watts\n1772366400,80\n\n1772366401,high\n", "line 4: 'high' is not a power: write watts"),
            ("time,watts\n1772366400,80\n1772366401,-20\n", "line 3: '-20' is not a power"),
            ("time,watts\n1772366400,80\nnoon,81\n", "line 3: 'noon' is not a time: write RFC 3339"),
            ("time,watts\n0.5,80\n", "line 2: '0.5' is not a wall-clock time"),
            ("time,watts\n1772366401,80\n1772366400,81\n", "line 3: time goes back"),
            ("time,watts\n1772366401\n", "line 2: it has 1 fields, fewer than the first line names"),
            ("time,watts\n1772366401,80\n", "it has 1 readings, at least 2 are needed"),
            ("", "it has 0 readings"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{text:?}: {message}");
        }
        let long = format!("time,watts\n{}", "x".repeat(5000));
        assert!(read(&long).unwrap_err().to_string().contains("line 2: it is longer than 4096 bytes"));
        let absent = MeterLog::open(Path::new("/nonexistent/meter.csv"), 0).unwrap_err().to_string();
        assert!(absent.starts_with("opening the meter's log /nonexistent/meter.csv: "), "{absent}");
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_a_log_or_an_error(bytes: Vec<u8>, lines in proptest::collection::vec("[0-9.,;eT:Z+-]{0,30}", 0..5)) {
            let _ = MeterLog::read(&bytes[..], i64::from(i32::MAX));
            let _ = read(&format!("time,watts\n{}", lines.join("\n")));
        }
    }
}
