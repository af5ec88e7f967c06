//! Defines the tiers, and opens them.

use std::{path::Path, sync::Arc};

use super::unit::Unit;
use crate::{
    dataset::{
        error::Result,
        layout::{date, hour},
        store::{SHARE_MARK, SharedPlace, Store},
    },
    model::units::UnixMicros,
};

const HOUR_US: i64 = 3_600_000_000;
const DAY_US: i64 = 24 * HOUR_US;

/// A tier of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// The units that have ended hours, the earliest first. Of days, the present one is among them.
    pub(super) fn units(self, now: UnixMicros, hours: u32) -> impl Iterator<Item = Unit> {
        let this_hour = now.0.div_euclid(HOUR_US) * HOUR_US;
        let first = this_hour.saturating_sub(i64::from(hours).saturating_mul(HOUR_US)).div_euclid(self.unit_us());
        let last = this_hour.saturating_sub(1).div_euclid(self.unit_us());
        (first..=last).map(move |number| Unit { tier: self, start: UnixMicros(number * self.unit_us()) })
    }
}

/// A tier, and what it is made of.
pub(super) struct Opened {
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
        Ok(Self { from, to: within(place, &root, tier)? })
    }
}

/// A tier's folder is a place as the one that it is in.
fn within(place: &SharedPlace, root: &Arc<dyn Store>, tier: Tier) -> Result<Arc<dyn Store>> {
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
        let units = |tier: Tier, hours| tier.units(now, hours).map(folder_of).collect::<Vec<_>>();
        assert_eq!(
            units(Tier::Minutes, 3),
            ["date=2026-03-01/hour=22", "date=2026-03-01/hour=23", "date=2026-03-02/hour=00"]
        );
        assert_eq!(units(Tier::Hourly, 3), ["date=2026-03-01", "date=2026-03-02"]);
        assert_eq!(units(Tier::Hourly, 1), ["date=2026-03-02"]);
        assert_eq!(units(Tier::Minutes, 0).len(), 0);
        // At midnight, no hour of the new day has ended.
        let midnight = UnixMicros(1_772_409_600_000_000);
        let days: Vec<_> = Tier::Hourly.units(midnight, 1).map(folder_of).collect();
        assert_eq!(days, ["date=2026-03-01"]);
    }
}
