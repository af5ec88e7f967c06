//! Reads which thread a row of `branches` is about.

use super::{ThreadIndex, reader::DataSet};
use crate::{
    attribution::window_report::Category,
    dataset::{
        error::Result,
        read::columns::{Columns, Names, Numbers},
        tables::{shared, work},
    },
    model::units::{Tid, UnixMicros},
};

/// Name of what stands for all threads of a category of a process.
const ALL_THREADS: &str = "[all threads]";

/// Process, its start, thread, its start; the key of its name; its place.
type LastThread = ((u32, i64, u32, i64), Option<usize>, ThreadIndex);

/// The columns that say which thread a row is about. Rows of a thread stand
/// together, so the last answer is kept.
pub(super) struct ThreadColumns<'a> {
    pids: Numbers<'a>,
    process_starts: Numbers<'a>,
    comms: Names<'a>,
    /// `None` in a rollup: a row is about all threads of a category of a process.
    own: Option<OwnColumns<'a>>,
    categories: Names<'a>,
    last: Option<LastThread>,
    /// Whether the last row asked for is of the same thread, under the same name, as the one before.
    pub(super) is_as_before: bool,
}

/// What a single thread is known by.
struct OwnColumns<'a> {
    tids: Numbers<'a>,
    starts: Numbers<'a>,
    names: Names<'a>,
}

impl<'a> OwnColumns<'a> {
    fn of(columns: &'a Columns<'a>) -> Result<Option<Self>> {
        if !columns.has(&shared::TID)? {
            return Ok(None);
        }
        let (tids, starts) = (columns.ints(shared::TID)?, columns.times(shared::THREAD_START)?);
        Ok(Some(Self { tids, starts, names: columns.names(work::THREAD_NAME)? }))
    }
}

impl<'a> ThreadColumns<'a> {
    pub(super) fn of(columns: &'a Columns<'a>) -> Result<Self> {
        Ok(Self {
            pids: columns.ints(shared::PID)?,
            process_starts: columns.times(shared::PROCESS_START)?,
            comms: columns.names(shared::COMM)?,
            own: OwnColumns::of(columns)?,
            categories: columns.names(work::CATEGORY)?,
            last: None,
            is_as_before: false,
        })
    }

    pub(super) fn thread(&mut self, data: &mut DataSet, run: usize, row: usize) -> Result<ThreadIndex> {
        let (pid, process_start) = (self.pids.natural(row)?, self.process_starts.get(row)?);
        let (tid, start, name) = match &self.own {
            Some(own) => (own.tids.natural(row)?, own.starts.get(row)?, own.names.key(row)),
            // No thread of a process has number 0. The category tells such rows apart.
            None => (0, self.category(row)? as i64, None),
        };
        let key = (pid, process_start, tid, start);
        if let Some((last, last_name, index)) = self.last
            && (last, last_name) == (key, name)
        {
            self.is_as_before = true;
            return Ok(index);
        }
        self.is_as_before = false;
        let process = data.process_index(run, pid, key.1, self.comms.get(row)?);
        let category = self.category(row)?;
        let text = match &self.own {
            Some(own) => own.names.get(row)?,
            None => ALL_THREADS,
        };
        let index = data.thread_index(process, Tid(tid), UnixMicros(key.3), text, category);
        self.last = Some((key, name, index));
        Ok(index)
    }

    fn category(&self, row: usize) -> Result<Category> {
        self.categories.name_of(row, |name| Category::ALL.into_iter().find(|is| is.name() == name))
    }
}
