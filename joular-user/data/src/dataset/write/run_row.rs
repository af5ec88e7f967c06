//! The run's own row: written at its start, so that a crash leaves it, and again
//! at its end in place of the first.

use super::parquet::{Place, date};
use crate::{
    dataset::{
        column::{Buffer, Table as _},
        store::directory::OutputDirectory,
        tables::{RunRecord, Runs},
    },
    events::{RunEnd, RunInfo},
    output::{OutputError, Result},
    totals::Sums,
};

/// Two runs of one id, such as a run and its replay, would replace each other's
/// files, or double the energy where they are cut differently.
pub(crate) fn must_be_new(directory: &OutputDirectory, info: &RunInfo) -> Result<()> {
    let date = date(info.started);
    let place = Place { directory, info, date: &date, number: 0 };
    match directory.find(&place.folder::<Runs>(), &place.name())? {
        None => Ok(()),
        Some(path) => Err(OutputError::RunExists { run_id: info.run_id.clone(), path }),
    }
}

pub(crate) fn publish(directory: &OutputDirectory, info: &RunInfo, end: Option<(&RunEnd, &Sums)>) -> Result<()> {
    let mut rows = Buffer::<Runs>::new();
    rows.push(&RunRecord { run: info, end }).map_err(OutputError::encode(Runs::NAME))?;
    let date = date(info.started);
    Place { directory, info, date: &date, number: 0 }.write(&mut rows)
}
