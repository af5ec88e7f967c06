//! Reads the windows of a selection, whether anybody ran in them or not.
//!
//! Table `windows` is written last and says which windows are whole. Rows of other tables that
//! belong to none of them are left from a crash. Nobody knows where the rest of such a window's
//! energy went, so they count for nothing.

use std::collections::BTreeMap;

use super::{filter::Filter, reader::DataSet};
use crate::{
    dataset::{
        error::Result,
        read::{decode_ahead, span::Span},
        store::StoredFile,
        tables::shared,
    },
    model::units::UnixMicros,
};

/// A window of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpan {
    /// Place in [`super::Catalog::runs`].
    pub run: usize,
    pub start: UnixMicros,
    pub length_ns: u64,
}

impl WindowSpan {
    pub fn end(&self) -> UnixMicros {
        UnixMicros(self.start.0.saturating_add(i64::try_from(self.length_ns / 1000).unwrap_or(i64::MAX)))
    }
}

/// Lengths of a run's windows in ns, by their start.
pub(super) type RunWindows = BTreeMap<UnixMicros, u64>;

pub(super) fn read(files: &[StoredFile]) -> Result<RunWindows> {
    let mut windows = RunWindows::new();
    decode_ahead::batches(files, &Span::default(), |columns| {
        let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
        for row in 0..columns.rows() {
            windows.insert(UnixMicros(starts.get(row)?), lengths.natural(row)?);
        }
        Ok(())
    })?;
    Ok(windows)
}

impl DataSet {
    /// All windows that `filter` allows, run by run, each run's by time.
    pub fn windows(&self, filter: &Filter) -> Vec<WindowSpan> {
        let of_run = |(run, (row, windows)): (usize, (&super::Run, &RunWindows))| {
            let span = filter.span(row);
            let allowed = windows.iter().filter(|(start, _)| span.allows(**start));
            allowed
                .map(|(start, length_ns)| WindowSpan { run, start: *start, length_ns: *length_ns })
                .collect::<Vec<_>>()
        };
        self.catalog.runs.iter().zip(&self.windows).enumerate().flat_map(of_run).collect()
    }
}
