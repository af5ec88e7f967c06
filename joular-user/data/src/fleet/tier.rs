//! Defines the tiers, and opens them.

use std::{path::Path, sync::Arc};

use super::unit::Unit;
use crate::{
    dataset::{
        bundle::TierMark,
        error::Result,
        layout::{date, hour},
        store::{SHARE_MARK, SharedPlace, Store},
    },
    model::units::UnixMicros,
};

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;

/// A tier of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Windows of five minutes.
    Minutes,
    /// Windows of an hour.
    Hourly,
}

impl Tier {
    /// Each is made of what is made before it.
    pub const ALL: [Self; 2] = [Self::Minutes, Self::Hourly];

    /// Its folder within the place.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Minutes => "minutes",
            Self::Hourly => "hourly",
        }
    }

    /// Length of its windows, as flags have lengths.
    pub const fn resolution(self) -> &'static str {
        match self {
            Self::Minutes => "5m",
            Self::Hourly => "1h",
        }
    }

    /// Length of its windows.
    pub(super) const fn window_us(self) -> i64 {
        match self {
            Self::Minutes => 5 * 60 * 1_000_000,
            Self::Hourly => HOUR_US,
        }
    }

    /// Length of what is summed at once.
    pub(super) const fn unit_us(self) -> i64 {
        match self {
            Self::Minutes => HOUR_US,
            Self::Hourly => DAY_US,
        }
    }

    /// The units with hours that lie in a span and have ended, the earliest first. Of days, the present one may be among them.
    pub(super) fn units(self, span: &Span) -> impl Iterator<Item = Unit> {
        let first = span.begin.0.div_euclid(self.unit_us());
        let end = span.end.0.div_euclid(HOUR_US).saturating_mul(HOUR_US);
        let last = end.saturating_sub(1).div_euclid(self.unit_us());
        (first..=last).map(move |number| Unit { tier: self, start: UnixMicros(number * self.unit_us()) })
    }
}

/// The time that is summed. An hour at its end is in it only if it has ended then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub begin: UnixMicros,
    pub end: UnixMicros,
}

impl Span {
    /// The hours before the present one.
    pub const fn of_hours(hours: u32, now: UnixMicros) -> Self {
        let this_hour = now.0.div_euclid(HOUR_US) * HOUR_US;
        Self { begin: UnixMicros(this_hour.saturating_sub(hours as i64 * HOUR_US)), end: now }
    }
}

/// A tier, and what it is made of.
pub(super) struct Opened {
    /// The place, which has the records of what is erased.
    pub(super) records: Arc<dyn Store>,
    pub(super) from: Arc<dyn Store>,
    pub(super) to: Arc<dyn Store>,
}

impl Opened {
    pub(super) fn new(place: &SharedPlace, tier: Tier) -> Result<Self> {
        let root = place.open()?;
        let from = match tier {
            Tier::Minutes => Arc::clone(&root),
            Tier::Hourly => within(place, &root, Tier::Minutes)?,
        };
        let to = within(place, &root, tier)?;
        TierMark::of_hours(u32::try_from(tier.unit_us() / HOUR_US).unwrap_or(1)).publish(&to)?;
        Ok(Self { records: root, from, to })
    }
}

/// A tier's folder is a place as the one that it is in.
pub(super) fn within(place: &SharedPlace, root: &Arc<dyn Store>, tier: Tier) -> Result<Arc<dyn Store>> {
    let path = place.path().join(tier.folder());
    let owner = match place {
        SharedPlace::Directory { owner, .. } => {
            root.publish_new(Path::new(tier.folder()), SHARE_MARK, b"")?;
            *owner
        }
        SharedPlace::Store(_) => None,
    };
    Ok(SharedPlace::of(&path, owner)?.open()?)
}

/// `date=DATE/hour=HH` or `date=DATE`.
pub(super) fn folder_of(unit: Unit) -> String {
    let date = date(unit.start);
    match unit.tier {
        Tier::Minutes => format!("date={date}/hour={}", hour(unit.start)),
        Tier::Hourly => format!("date={date}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_hours_that_have_ended() {
        // 2026-03-02T01:30Z.
        let now = UnixMicros(1_772_415_000_000_000);
        let of = |tier: Tier, span: Span| tier.units(&span).map(folder_of).collect::<Vec<_>>();
        let units = |tier: Tier, hours| of(tier, Span::of_hours(hours, now));
        assert_eq!(
            units(Tier::Minutes, 3),
            ["date=2026-03-01/hour=22", "date=2026-03-01/hour=23", "date=2026-03-02/hour=00"]
        );
        assert_eq!(units(Tier::Hourly, 3), ["date=2026-03-01", "date=2026-03-02"]);
        assert_eq!(units(Tier::Hourly, 1), ["date=2026-03-02"]);
        assert_eq!(units(Tier::Minutes, 0).len(), 0);
        // At midnight, no hour of the new day has ended.
        let midnight = UnixMicros(1_772_409_600_000_000);
        assert_eq!(of(Tier::Hourly, Span::of_hours(1, midnight)), ["date=2026-03-01"]);
        let half_past = Span { begin: UnixMicros(now.0 - 2 * HOUR_US), end: UnixMicros(now.0 - HOUR_US) };
        assert_eq!(
            of(Tier::Minutes, half_past),
            ["date=2026-03-01/hour=23"],
            "the hour in which it ends has not ended"
        );
    }
}
