//! Reads moments that limit a selection: wall-clock time, time within a run, or time of the day.

use std::time::Duration;

use jiff::{Timestamp, civil::Time};

use super::{catalog::Run, filter::FilterError};
use crate::model::units::UnixMicros;

/// Microseconds.
pub(super) const DAY_US: i64 = 86_400_000_000;

/// A moment, in wall-clock time or within a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    At(UnixMicros),
    /// After the run's start.
    Into(Duration),
    /// Microseconds after midnight, UTC: on the day on which the run began, or on the next one if that is nearer.
    Clock(i64),
}

impl Moment {
    /// # Errors
    /// If the text is neither; `duration` reads times into a run.
    pub fn parse(text: &str, duration: impl Fn(&str) -> Option<Duration>) -> Result<Self, FilterError> {
        if let Ok(moment) = text.parse::<Timestamp>() {
            return Ok(Self::At(UnixMicros(moment.as_microsecond())));
        }
        // Not a length of hours, minutes and seconds.
        if let Some(clock) = Some(text).filter(|text| text.contains(':')).and_then(|text| text.parse::<Time>().ok()) {
            let since_midnight = clock.duration_since(Time::midnight());
            return Ok(Self::Clock(i64::try_from(since_midnight.as_micros()).unwrap_or(0)));
        }
        duration(text).map(Self::Into).ok_or_else(|| FilterError::Time { text: text.to_owned() })
    }

    /// `None`: it depends on the run.
    pub(super) const fn at(self) -> Option<UnixMicros> {
        match self {
            Self::At(moment) => Some(moment),
            Self::Into(_) | Self::Clock(_) => None,
        }
    }

    pub(super) fn in_run(self, run: &Run) -> UnixMicros {
        match self {
            Self::At(moment) => moment,
            Self::Into(duration) => {
                let into = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
                UnixMicros(run.info.started.0.saturating_add(into))
            }
            Self::Clock(since_midnight_us) => {
                let started = run.info.started.0;
                let same_day = started.saturating_sub(started.rem_euclid(DAY_US)).saturating_add(since_midnight_us);
                let is_long_before = same_day < started.saturating_sub(DAY_US / 2);
                UnixMicros(if is_long_before { same_day.saturating_add(DAY_US) } else { same_day })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::RunInfo;

    #[test]
    fn a_time_of_day_is_the_one_nearest_to_the_run() {
        const MINUTE_US: i64 = 60_000_000;
        // 23:50 on the third day of time.
        let started = 3 * DAY_US - 10 * MINUTE_US;
        let info = RunInfo { started: UnixMicros(started), ..RunInfo::default() };
        let run = Run { info, ..Run::default() };
        for (text, expected) in [
            ("23:55", started + 5 * MINUTE_US),
            ("23:40:00", started - 10 * MINUTE_US),
            ("00:10", started + 20 * MINUTE_US),
            ("00:10:00.5", started + 20 * MINUTE_US + 500_000),
        ] {
            assert_eq!(Moment::parse(text, |_| None).unwrap().in_run(&run), UnixMicros(expected), "{text}");
        }
        for text in ["25:00", "5", "-5s", "tomorrow"] {
            assert!(Moment::parse(text, |_| None).is_err(), "{text}");
        }
    }
}
