//! Erases processes of a run that is as it was recorded.
//!
//! Its energy can be attributed again from its rows, so no row can go alone. A rollup of it takes its place: one file, which is
//! there at once and is what counts from then on. Then its files of tables go.

use std::{path::Path, slice, sync::Arc};

use super::rewrite::{self, Rewritten};
use crate::{
    dataset::{
        bundle::{self, BundlePlace, Groups},
        erasing::Keys,
        error::{DataSetError, Result},
        expire,
        read::{
            files::{self, RunFiles},
            run_row::RunRow,
        },
        store::{Scratch, Store},
    },
    redact::{CommandLines, Redaction},
    rollup,
};

/// Length of its new windows: what hosts ship.
const WINDOW_NS: u64 = 60_000_000_000;

/// Erases processes of a run. Files are made in the folder `scratch`.
///
/// # Errors
/// If a file cannot be read or written, or the run is too long or too large for one file.
pub(super) fn run(
    store: &Arc<dyn Store>,
    run: &RunFiles,
    row: &RunRow,
    keys: &Keys,
    scratch: &Path,
) -> Result<Rewritten> {
    let as_they_are = Redaction::default().showing(CommandLines::Full);
    let rolled_up: Arc<dyn Store> = Arc::new(Scratch::within(scratch)?);
    rollup::of_run(row.clone(), run, rolled_up.as_ref(), WINDOW_NS, &as_they_are)?;
    let no_run = || DataSetError::NoRun { path: run.row.path() };
    let (row, files) = files::find_with_rows(&rolled_up)?.pop().ok_or_else(no_run)?;
    if !bundle::fits(&row, &files)? {
        let problem =
            "it is as it was recorded, and too long or too large to become one file: remove it whole, with all \
                       files of its name"
                .to_owned();
        return Err(DataSetError::Damaged { path: run.row.path(), problem });
    }
    let done = rewrite::run(&rolled_up, &files, &row, keys, scratch)?;
    let erased = files::find(&rolled_up)?.pop().ok_or_else(no_run)?;
    let bytes = bundle::encode(&erased, &as_they_are)?;
    let place = BundlePlace::of(&row.info);
    store.publish(&place.folder(&Groups::read(store)?), &place.name, &bytes)?;
    let removed = expire::remove(store, slice::from_ref(run), false)?;
    Ok(Rewritten { files: 1, removed, ..done })
}
