//! Ends a run whose writing failed, once its directory can be written again: what is not whole is removed, and the run's
//! row says what is. So the run can be shipped and audited as any other.

use super::run_row;
use crate::{
    dataset::{layout::FilePlace, store::Store, tables::TABLES},
    events::{RunEnd, RunInfo},
    model::units::UnixMicros,
    output::Result,
    totals::RunSums,
};

/// How runs end whose writing failed.
const REASON: &str = "unwritten";

/// What the complete files of a run hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    pub(super) sums: RunSums,
    pub(super) until: UnixMicros,
}

/// A run that is not written any more.
pub(super) struct BrokenRun {
    pub(super) info: RunInfo,
    pub(super) written: Written,
    /// The files of which some may be there.
    pub(super) incomplete: Option<FilePlace>,
}

impl BrokenRun {
    pub(super) fn end(&self, store: &dyn Store) -> Result<()> {
        if let Some(place) = &self.incomplete {
            TABLES.iter().rev().try_for_each(|table| store.remove(&place.folder(table).join(&place.name)))?;
        }
        if self.written.sums.windows == 0 {
            return run_row::remove(store, &self.info);
        }
        let end = RunEnd { ended: self.written.until, reason: REASON.to_owned() };
        run_row::publish(store, &self.info, Some((&end, &self.written.sums)))
    }
}
