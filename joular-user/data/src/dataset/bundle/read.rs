//! Finds bundles, and opens them as the files of a run.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use super::{Groups, place_of};
use crate::dataset::{
    column::Table as _,
    error::{DataSetError, Result},
    layout::{FilePlace, RunName},
    read::files::{FlushFiles, MAX_FILES, RunFiles},
    store::{Part, Store, StoredFile},
    tables::{OF_ROLLUPS, Runs},
};

/// The runs that are bundles, in a part of a data set. A bundle that lies in two groups is one run.
///
/// # Errors
/// If the store cannot be listed, or does not say in which groups hosts are.
pub(crate) fn found(store: &Arc<dyn Store>, part: &Part) -> Result<BTreeMap<RunName, RunFiles>> {
    let grouped = match part.hosts {
        Some(_) => Part { groups: Groups::read(store)?, ..part.clone() },
        None => part.clone(),
    };
    let mut runs = BTreeMap::new();
    for within in store.list_bundles(&grouped, MAX_FILES)? {
        let Some(place) = place_of(&within) else { continue };
        runs.entry(place.run()).or_insert_with(|| open(store, &within, place));
    }
    Ok(runs)
}

/// Whether there is any.
///
/// # Errors
/// If the store cannot be listed.
pub(crate) fn has_any(store: &Arc<dyn Store>) -> Result<bool> {
    match store.list_bundles(&Part::default(), 1) {
        Ok(bundles) => Ok(!bundles.is_empty()),
        Err(DataSetError::TooManyFiles { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// A bundle as the files of a run, one for each table that a rollup has. Nothing is read yet.
pub(super) fn open(store: &Arc<dyn Store>, within: &Path, place: FilePlace) -> RunFiles {
    let bundle = StoredFile::new(store, within);
    let part = FlushFiles::of(OF_ROLLUPS.map(|table| (table, bundle.in_bundle(table))));
    RunFiles { row: bundle.in_bundle(Runs::NAME), place: place.clone(), parts: vec![(place, part)] }
}
