//! Defines how readings of a domain become energy.

use serde::{Deserialize, Serialize};

use super::use_curve::UseCurve;

/// How readings of a domain become energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Meter {
    /// A running total in µJ that restarts at 0 after `range_uj`: the modulus
    /// is `range_uj` plus one `unit_uj`; a `range_uj` of 0 means that it is not
    /// known. `max_watts` bounds what is plausible.
    Counter { range_uj: u64, unit_uj: u64, max_watts: u32 },
    /// Power in µW, averaged between two readings.
    Power,
    /// Power computed from CPU use: `idle_uw` per CPU always, up to `full_uw`
    /// in proportion to busy time.
    Model { idle_uw: u64, full_uw: u64 },
    /// Power computed from CPU use and frequency: a reading is what one busy
    /// CPU drew on average since the last one.
    BusyPower,
    /// Energy computed from bytes that were moved: `idle_uw` always, and beside it what each byte costs
    /// by [`super::domain::DividedBy::Bytes`].
    PerByte { idle_uw: u64 },
    /// A [`Self::Counter`] that was watched before the run. Recordings have meters by their place, so it
    /// and what came later stand last.
    WatchedCounter { range_uj: u64, unit_uj: u64, max_watts: u32, update: Update },
    /// Power of a whole machine, computed from the use of its CPUs: what it is at no use is drawn always.
    Use(UseCurve),
}

impl Meter {
    /// Without what was seen when it was watched.
    #[must_use]
    pub const fn unwatched(self) -> Self {
        match self {
            Self::WatchedCounter { range_uj, unit_uj, max_watts, update: _ } => {
                Self::Counter { range_uj, unit_uj, max_watts }
            }
            other => other,
        }
    }
}

/// A window with fewer updates of a counter is measured coarsely: the energy of an update at each of its
/// ends may be another window's, which is then more than about 2 % of it.
const FEWEST_UPDATES: u64 = 50;

/// How often a counter advances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// From one update to the next.
    pub interval_us: u32,
    /// Whether that is the least it can be, because too few updates were seen to know it.
    pub is_least: bool,
}

impl Update {
    /// Whether a window of this length has too few updates to be plainly measured.
    pub const fn is_coarse_in(self, window_ns: u64) -> bool {
        window_ns < self.shortest_window_ns()
    }

    /// The shortest window that has enough updates.
    pub const fn shortest_window_ns(self) -> u64 {
        FEWEST_UPDATES * self.interval_us as u64 * 1000
    }
}

/// For people: `1.0 ms`, `70.0 ms or more`.
impl std::fmt::Display for Update {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let or_more = if self.is_least { " or more" } else { "" };
        write!(f, "{:.1} ms{or_more}", f64::from(self.interval_us) / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recordings have the place in the declaration, which never changes.
    #[test]
    fn meters_keep_their_places() {
        let update = Update { interval_us: 1, is_least: false };
        let meters = [
            Meter::Counter { range_uj: 0, unit_uj: 0, max_watts: 0 },
            Meter::Power,
            Meter::Model { idle_uw: 0, full_uw: 0 },
            Meter::BusyPower,
            Meter::PerByte { idle_uw: 0 },
            Meter::WatchedCounter { range_uj: 0, unit_uj: 0, max_watts: 0, update },
            Meter::Use(UseCurve::default()),
        ];
        for (place, meter) in (0_u8..).zip(meters) {
            assert_eq!(postcard::to_stdvec(&meter).unwrap()[0], place);
        }
    }
}
