//! Yields what threads have of a measure on call paths, window by window, whatever the measure is.

use super::{
    Allocated, Counting, Filter, Moved, PathIndex, SeenMoved, ThreadIndex, amounts::AmountRow, in_time::Summed,
    reader::DataSet, row::Row,
};
use crate::{
    dataset::error::Result,
    model::{measure::Measure, units::UnixMicros, way::Way},
};

/// What a thread has of a measure on a call path in a window.
#[derive(Clone, Copy, Debug)]
pub struct InWindow {
    /// Place in [`super::Catalog::runs`].
    pub run: usize,
    pub window_start: UnixMicros,
    pub thread: ThreadIndex,
    pub path: PathIndex,
    /// In the measure's unit.
    pub amount: u64,
    pub samples: u64,
    /// Part of `amount` that samples of other windows tell.
    pub inferred: u64,
    /// What it adds to Σ amount² / samples: see [`crate::sampling`].
    pub squares: f64,
}

impl InWindow {
    pub fn of_energy(row: &Row) -> Self {
        let Row { run, window_start, thread, path, energy, samples, .. } = *row;
        let inferred = row.amounts().inferred.0;
        Self { run, window_start, thread, path, amount: energy.0, samples, inferred, squares: row.squares() }
    }

    pub(super) fn of_amount(row: &AmountRow<'_>) -> Self {
        let AmountRow { run, window_start, thread, path, amount, sampled, .. } = *row;
        Self {
            run,
            window_start,
            thread,
            path,
            amount,
            samples: sampled.samples,
            inferred: 0,
            squares: sampled.squares,
        }
    }

    /// `None` if nothing went that way.
    fn of_bytes(seen: &SeenMoved, way: Way) -> Option<Self> {
        let SeenMoved { run, window_start, of_row, .. } = seen;
        let (amount, sampled) = (way.of(&of_row.bytes), of_row.sampled_of(way));
        (amount > 0).then_some(Self {
            run: *run,
            window_start: *window_start,
            thread: of_row.thread,
            path: of_row.path,
            amount,
            samples: sampled.samples,
            inferred: 0,
            squares: sampled.squares,
        })
    }
}

impl DataSet {
    /// What threads have of a measure in windows that `filter` allows; conditions on methods are ignored. `summed` is of
    /// the same filter. All rows are in memory at once, 56 bytes for each.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub fn in_windows(&mut self, measure: Measure, filter: &Filter, summed: &Summed) -> Result<Vec<InWindow>> {
        let mut rows = Vec::new();
        match measure {
            Measure::Energy => self.scan_in_time(filter, summed, |_, row| rows.push(InWindow::of_energy(row)))?,
            Measure::Allocated => {
                Allocated::read_watched(self, filter, |row| rows.push(InWindow::of_amount(row)))?;
            }
            Measure::Moved(way) => {
                Moved::read_watched(self, filter, |row| rows.extend(InWindow::of_bytes(row, way)))?;
            }
            Measure::Counted(counter) => {
                if let Some(mut counting) = Counting::watching(self, filter, Some(counter))? {
                    self.scan_in_time(filter, summed, |_, row| counting.take(row))?;
                    rows = counting.watched();
                }
            }
        }
        Ok(rows)
    }
}
