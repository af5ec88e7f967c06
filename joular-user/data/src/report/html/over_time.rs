//! Gathers what the page draws over time, while rows are read.

use super::{
    activity::Activity, clock::Clock, collections::AllocatedOverTime, flight::Windows, moved::MovedOverTime,
    power::Power,
};
use crate::report::{
    footprint::Account,
    measure::Measure,
    profile::{AmountRow, Catalog, EnergyRow, Watch},
};

/// What is drawn over time, as rows are read.
pub(super) struct OverTime<'a> {
    pub(super) clock: Clock,
    pub(super) account: Option<Account<'a>>,
    pub(super) power: Power<'a>,
    pub(super) activity: Activity,
    pub(super) allocated: AllocatedOverTime,
    pub(super) moved: MovedOverTime,
    /// The selection's energy by window.
    pub(super) windows: Windows,
}

impl Watch for OverTime<'_> {
    fn wants_time(&self) -> bool {
        true
    }

    fn in_time(&mut self, catalog: &Catalog, row: &EnergyRow) {
        self.account.iter_mut().for_each(|account| account.in_time(catalog, row));
        if self.power.take(catalog, row) {
            self.activity.take(catalog, row);
            self.windows.take(row);
        }
    }

    fn amount(&mut self, _: &Catalog, row: &AmountRow<'_>) {
        if row.is_path_allowed {
            let bucket = self.clock.bucket(row.window_start, row.window_ns);
            match row.part.measure {
                Measure::Allocated => self.allocated.take(bucket, row.part.class, row.part.amount),
                Measure::Moved(way) => self.moved.take(bucket, way, row.part.amount),
                Measure::Energy | Measure::Counted(_) => {}
            }
        }
    }
}
