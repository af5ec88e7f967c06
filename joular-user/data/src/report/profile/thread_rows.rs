//! Walks the rows of tables that say what threads did on call paths: what they allocated, what they moved. Rows of
//! energy have the same columns in front, and are read by [`super::reader`].

use super::{Filter, PathIndex, ThreadIndex, filter::Allowed, reader::DataSet, thread_columns::ThreadColumns};
use crate::{
    dataset::{
        column::Named,
        error::Result,
        read::columns::Columns,
        tables::{shared, work},
    },
    model::units::UnixMicros,
};

/// Columns that say of which window, thread and path a row is.
const OF_ROW: [&dyn Named; 10] = [
    &shared::WINDOW_START,
    &shared::WINDOW_NS,
    &shared::PID,
    &shared::PROCESS_START,
    &shared::COMM,
    &shared::TID,
    &work::THREAD_NAME,
    &work::CATEGORY,
    &shared::THREAD_START,
    &work::STACK_ID,
];

/// These, and those that only the table has.
pub(super) fn with(of_table: &[&'static dyn Named]) -> Vec<&'static dyn Named> {
    [OF_ROW.as_slice(), of_table].concat()
}

/// What a row is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadRow {
    /// Its number in the batch.
    pub(super) index: usize,
    pub(super) window_start: UnixMicros,
    pub(super) window_ns: u64,
    pub(super) thread: ThreadIndex,
    pub(super) path: PathIndex,
    /// Whether the filter allows the path, too.
    pub(super) is_path_allowed: bool,
}

/// Calls with each row of a whole window whose window, process and thread `filter` allows. Only rows that `is_of_thread`
/// says are of one are looked at.
pub(super) fn each(
    (data, run): (&mut DataSet, usize),
    (filter, allowed): (&Filter, &mut Allowed),
    columns: &Columns<'_>,
    is_of_thread: impl Fn(usize) -> Result<bool>,
    mut take: impl FnMut(ThreadRow) -> Result<()>,
) -> Result<()> {
    let (starts, lengths) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::WINDOW_NS)?);
    let stacks = columns.ints(work::STACK_ID)?;
    let mut threads = ThreadColumns::of(columns)?;
    let span = filter.span(&data.catalog.runs[run]);
    for index in 0..columns.rows() {
        let window_start = UnixMicros(starts.get(index)?);
        if !is_of_thread(index)? || !span.allows(window_start) || !data.is_whole(run, window_start) {
            continue;
        }
        let thread = threads.thread(data, run, index)?;
        if !allowed.thread(&data.catalog, filter, thread) {
            continue;
        }
        let path = data.path_of(stacks.get(index)?, columns)?;
        let is_path_allowed = filter.allows_path(data.catalog.paths.frames_of(path));
        take(ThreadRow { index, window_start, window_ns: lengths.natural(index)?, thread, path, is_path_allowed })?;
    }
    Ok(())
}
