//! Makes the rows of a table anew: without those about erased processes, and with those that come in their place. [`fates`] says
//! what becomes of each table.

pub(crate) mod fates;

use std::{collections::HashSet, path::Path};

use arrow_array::{BooleanArray, RecordBatch, UInt32Array, cast::AsArray as _, types::TimestampMicrosecondType};
use arrow_schema::ArrowError;
use arrow_select::{concat::concat_batches, filter::filter_record_batch, take::take_record_batch};

use self::fates::Fate;
use crate::dataset::{
    align::aligned,
    column::Table as _,
    error::{DataSetError, Result},
    read::{
        columns::{Columns, TableFile},
        files::RunFiles,
        footer::Footer,
    },
    redacting,
    store::StoredFile,
    tables::{
        Allocations, Amounts, Branches, GcCharges, Io, runs,
        shared::{PID, PROCESS_START, WINDOW_START},
        stacks, work,
    },
    write::MergedFile,
};

/// Tables whose rows refer to call paths.
const WITH_PATHS: [&str; 5] = [Branches::NAME, Allocations::NAME, GcCharges::NAME, Io::NAME, Amounts::NAME];

/// What everything that was erased is called.
pub(crate) const ERASED: &str = "[erased]";

/// A process as rows know it: pid and start, µs since 1970. One without a window has no start.
pub(crate) type Key = (u32, Option<i64>);
pub(crate) type Keys = HashSet<Key>;

/// What goes.
pub(crate) struct Going {
    /// Processes, with the one that stands for those that were erased before.
    keys: Keys,
    stand_in: Key,
    /// Call paths that rows of others refer to.
    paths: HashSet<i64>,
}

/// A table, made anew.
pub(crate) struct Made {
    /// `None`: no row is left.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Rows that went. Those that had been made in place of others are not counted.
    pub(crate) gone: u64,
    /// Whether it is as it was.
    pub(crate) is_same: bool,
}

impl Going {
    /// What goes of a run with these processes, one of which stands for those that were erased before.
    pub(crate) fn of(run: &RunFiles, keys: Keys, stand_in: Key) -> Result<Self> {
        let mut going = Self { keys, stand_in, paths: HashSet::new() };
        let mut paths = HashSet::new();
        for file in run.of(&WITH_PATHS) {
            TableFile::open(file)?.batches(|columns| {
                let (stays, ids) = (going.stays(columns)?, columns.ints(work::STACK_ID)?);
                let kept = stays.iter().zip(0..).filter(|(stays, _)| **stays);
                paths.extend(kept.filter_map(|(_, row)| ids.maybe(row)));
                Ok(())
            })?;
        }
        going.paths = paths;
        Ok(going)
    }

    /// Of each row about processes, whether it stays.
    fn stays(&self, columns: &Columns<'_>) -> Result<Vec<bool>> {
        self.owners(columns, |key| !self.keys.contains(key), |pid| !self.keys.iter().any(|(known, _)| *known == pid))
    }

    /// What `of_process` says of each row, or `of_pid` in tables that do not say when the process started. Rows of no process
    /// stay.
    fn owners(
        &self,
        columns: &Columns<'_>,
        of_process: impl Fn(&(u32, Option<i64>)) -> bool,
        of_pid: impl Fn(u32) -> bool,
    ) -> Result<Vec<bool>> {
        let pids = columns.ints(PID)?;
        let starts = columns.has(&PROCESS_START)?.then(|| columns.times(PROCESS_START)).transpose()?;
        let row = |row| {
            let Some(pid) = pids.maybe_natural(row)? else { return Ok(true) };
            Ok(starts.as_ref().map_or_else(|| of_pid(pid), |starts| of_process(&(pid, starts.maybe(row)))))
        };
        (0..columns.rows()).map(row).collect()
    }

    /// Rows that were made in place of others.
    fn made_before(&self, columns: &Columns<'_>) -> Result<u64> {
        let made = self.owners(columns, |key| *key != self.stand_in, |_| true)?;
        Ok(made.iter().filter(|is_other| !**is_other).count() as u64)
    }

    /// A table of a part of a run. `made` has the rows that come.
    pub(crate) fn table(
        &self,
        table: &'static str,
        fate: Fate,
        file: Option<&StoredFile>,
        made: Option<&StoredFile>,
    ) -> Result<Made> {
        let mut result = Made { bytes: None, gone: 0, is_same: true };
        let made = made.filter(|_| matches!(fate, Fate::Described | Fate::Referred | Fate::Summed));
        let Some(model) = file.or(made) else { return Ok(result) };
        let footer = Footer::read(model)?;
        let failed = |cause| DataSetError::Arrow { path: model.path(), cause };
        let mut batches: Vec<RecordBatch> = Vec::new();
        if let Some(file) = file {
            let mut rows = TableFile::open(file)?;
            while let Some(batch) = rows.next_batch().transpose()? {
                batches.push(self.left(fate, (&rows.columns(&batch), &batch), &file.path(), &mut result)?);
            }
        }
        if let Some(made) = made {
            let mut rows = TableFile::open(made)?;
            while let Some(batch) = rows.next_batch().transpose()? {
                result.is_same = false;
                batches.push(aligned(&model.path(), &batch, &footer.schema)?);
            }
        }
        let all = concat_batches(&footer.schema, &batches).map_err(failed)?;
        let all = if fate == Fate::Summed { in_order(&all).map_err(failed)? } else { all };
        if all.num_rows() > 0 {
            let mut file = MergedFile::start(table, footer.schema, footer.metadata)?;
            file.write(&all)?;
            result.bytes = Some(file.into_bytes()?);
        }
        Ok(result)
    }

    /// Rows without those that go.
    fn left(
        &self,
        fate: Fate,
        (columns, batch): (&Columns<'_>, &RecordBatch),
        path: &Path,
        result: &mut Made,
    ) -> Result<RecordBatch> {
        let stays = match fate {
            Fate::Kept => return Ok(batch.clone()),
            Fate::Unsaid => {
                let unsaid = unsaid(columns, batch, path)?;
                result.is_same &= unsaid == *batch;
                return Ok(unsaid);
            }
            Fate::Referred => self.referred(columns)?,
            Fate::Described | Fate::Summed | Fate::Removed | Fate::RolledUp => self.stays(columns)?,
        };
        let gone = stays.iter().filter(|stays| !**stays).count() as u64;
        result.is_same &= gone == 0;
        if fate != Fate::Referred {
            result.gone = result.gone.saturating_add(gone.saturating_sub(self.made_before(columns)?));
        }
        let failed = |cause| DataSetError::Arrow { path: path.to_owned(), cause };
        filter_record_batch(batch, &BooleanArray::from(stays)).map_err(failed)
    }

    fn referred(&self, columns: &Columns<'_>) -> Result<Vec<bool>> {
        let ids = columns.ints(stacks::STACK_ID)?;
        (0..columns.rows()).map(|row| Ok(self.paths.contains(&ids.get(row)?))).collect()
    }
}

/// Rows of runs, with nothing of the command line but the program.
fn unsaid(columns: &Columns<'_>, batch: &RecordBatch, path: &Path) -> Result<RecordBatch> {
    let known = columns.text_lists(runs::COMMAND_LINE)?;
    let mut lines: Vec<Vec<&str>> = (0..columns.rows()).map(|row| known.of(row)).collect();
    for words in lines.iter_mut().filter(|words| words.len() > 1) {
        words.truncate(1);
        words.push(ERASED);
    }
    let mut arrays = batch.columns().to_vec();
    for (array, field) in arrays.iter_mut().zip(batch.schema_ref().fields()) {
        if *field.name() == runs::COMMAND_LINE.name() {
            *array = redacting::word_lists(lines.iter().map(|words| words.iter().copied()), field);
        }
    }
    let failed = |cause| DataSetError::Arrow { path: path.to_owned(), cause };
    RecordBatch::try_new(batch.schema(), arrays).map_err(failed)
}

/// Rows in the order of their windows. Those of one window stay in the order in which they were.
fn in_order(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let starts = batch.column_by_name(&WINDOW_START.name());
    let Some(starts) = starts.and_then(|starts| starts.as_primitive_opt::<TimestampMicrosecondType>()) else {
        return Ok(batch.clone());
    };
    let mut order: Vec<(i64, u32)> = starts.values().iter().copied().zip(0..).collect();
    order.sort_unstable();
    take_record_batch(batch, &order.into_iter().map(|(_, row)| row).collect::<UInt32Array>())
}
