//! Writes the run's own row: at its start, so that a crash leaves it, and again at its end in place
//! of the first.

use super::flush::write;
use crate::{
    dataset::{
        buffer::Buffer,
        column::Table as _,
        layout::{FilePlace, date},
        store::Store,
        tables::{RunRecord, Runs},
    },
    events::{RunEnd, RunInfo},
    output::{OutputError, Result},
    totals::RunSums,
};

/// Refuses a second run of the same id, such as a replay. The two would replace each other's files,
/// or double the energy where their files are cut differently.
pub(crate) fn must_be_new(store: &dyn Store, info: &RunInfo) -> Result<()> {
    let place = place(info);
    match store.find(&place.folder(Runs::NAME), &place.name)? {
        None => Ok(()),
        Some(path) => Err(OutputError::RunExists { run_id: info.run_id.clone(), path }),
    }
}

pub(crate) fn publish(store: &dyn Store, info: &RunInfo, end: Option<(&RunEnd, &RunSums)>) -> Result<()> {
    publish_record(store, &RunRecord { run: info, end, rolled_up_from_ns: None })
}

pub(super) fn remove(store: &dyn Store, info: &RunInfo) -> Result<()> {
    let place = place(info);
    store.remove(&place.folder(Runs::NAME).join(&place.name))
}

pub(crate) fn publish_record(store: &dyn Store, record: &RunRecord<'_>) -> Result<()> {
    let mut rows = Buffer::<Runs>::new();
    rows.push(record).map_err(OutputError::encode(Runs::NAME))?;
    write(store, record.run, &place(record.run), &mut rows)
}

fn place(info: &RunInfo) -> FilePlace {
    FilePlace::new(info, &date(info.started), 0)
}
