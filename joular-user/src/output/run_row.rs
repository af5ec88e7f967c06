//! The run's own row: written at its start, so that a crash leaves it, and again
//! at its end in place of the first.

use super::{
    column::{Buffer, Table as _},
    directory::OutputDirectory,
    error::{OutputError, Result},
    parquet::{Place, date},
    tables::{RunRecord, Runs},
    totals::Sums,
};
use crate::events::{RunEnd, RunInfo};

/// Two runs of one id, such as a run and its replay, would replace each other's
/// files, or double the energy where they are cut differently.
pub(super) fn must_be_new(directory: &OutputDirectory, info: &RunInfo) -> Result<()> {
    let date = date(info.started);
    let place = Place { directory, info, date: &date, number: 0 };
    match directory.find(&place.folder::<Runs>(), &place.name())? {
        None => Ok(()),
        Some(path) => Err(OutputError::RunExists { run_id: info.run_id.clone(), path }),
    }
}

pub(super) fn publish(directory: &OutputDirectory, info: &RunInfo, end: Option<(&RunEnd, &Sums)>) -> Result<()> {
    let mut rows = Buffer::<Runs>::new();
    rows.push(&RunRecord { run: info, end }).map_err(OutputError::encode(Runs::NAME))?;
    let date = date(info.started);
    Place { directory, info, date: &date, number: 0 }.write(&mut rows)
}
