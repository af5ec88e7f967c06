//! Writes a run that was read from a data set again, with other shares of energy: file by file,
//! each under the name that it had.

use super::{flush::FlushWriter, rows::Rows, run_row};
use crate::{
    attribution::window_report::WindowReport,
    dataset::{layout::FilePlace, store::Store},
    events::{RunEnd, RunInfo},
    output::Result,
    stacks::StackTable,
    totals::RunSums,
};

/// Writes one run.
pub struct RunRewriter<'a> {
    store: &'a dyn Store,
    info: RunInfo,
    rows: Rows,
    sums: RunSums,
}

impl<'a> RunRewriter<'a> {
    /// `info` has the new policy.
    pub fn start(store: &'a dyn Store, info: RunInfo) -> Result<Self> {
        run_row::must_be_new(store, &info)?;
        run_row::publish(store, &info, None)?;
        Ok(Self { store, rows: Rows::at_wall_clock(&info), info, sums: RunSums::default() })
    }

    /// Takes a window whose start times are wall-clock times. With `begins_sum`, a new sum of
    /// methods begins, as in the file that is rewritten.
    pub(crate) fn window(&mut self, report: &WindowReport, stacks: &StackTable, begins_sum: bool) -> Result<()> {
        self.sums.add(report);
        self.rows.window_again(report, stacks, begins_sum)
    }

    /// Writes a file that stays as it is.
    pub(crate) fn copy(&self, table: &str, place: &FilePlace, bytes: &[u8]) -> Result<()> {
        self.store.publish(&place.folder(table), &place.name, bytes)
    }

    /// Writes the windows since the last call. Only tables that depend on the policy have rows.
    pub(crate) fn publish(&mut self, place: &FilePlace) -> Result<()> {
        let Self { store, info, rows, .. } = self;
        rows.method_rows()?;
        rows.tables.each(&mut FlushWriter { store: *store, info, place })
    }

    /// Writes the run's row as it was at its end, if it had one.
    pub fn end(self, end: Option<&RunEnd>) -> Result<()> {
        run_row::publish(self.store, &self.info, end.map(|end| (end, &self.sums)))
    }
}
