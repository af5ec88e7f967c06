//! The windows of a selection, whether anybody ran in them or not.

use std::collections::BTreeMap;

use super::{filter::Filter, reader::DataSet};
use crate::{
    report::{columns::TableFile, error::Result},
    units::UnixMicros,
};

/// A window of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpan {
    /// Place in [`super::Catalog::runs`].
    pub run: usize,
    pub start: UnixMicros,
    pub length_ns: u64,
}

impl DataSet {
    /// All windows that `filter` allows, run by run, each run's by time.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn windows(&self, filter: &Filter) -> Result<Vec<WindowSpan>> {
        let mut windows = Vec::new();
        for (run, row) in self.catalog.runs.iter().enumerate() {
            let mut lengths: BTreeMap<UnixMicros, u64> = BTreeMap::new();
            for path in self.files(run, "windows") {
                TableFile::open_columns(&path, &["window_start", "window_ns"])?.batches(|columns| {
                    let (starts, all) = (columns.times("window_start")?, columns.ints("window_ns")?);
                    for at in 0..columns.rows() {
                        let start = UnixMicros(starts.get(at)?);
                        if filter.allows_window(row, start) {
                            lengths.insert(start, all.natural(at)?);
                        }
                    }
                    Ok(())
                })?;
            }
            windows.extend(lengths.into_iter().map(|(start, length_ns)| WindowSpan { run, start, length_ns }));
        }
        Ok(windows)
    }
}
