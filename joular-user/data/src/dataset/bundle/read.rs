//! Finds bundles, and opens them as the files of a run.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use super::{Groups, TierMark, place_of};
use crate::dataset::{
    column::Table as _,
    error::{DataSetError, Result},
    layout::{FilePlace, RunName},
    read::files::{FlushFiles, MAX_FILES, RunFiles},
    store::{Hour, Part, Store, StoredFile},
    tables::{OF_ROLLUPS, Runs},
};

/// The runs that are bundles, in a part of a data set. A bundle that lies in two groups is one run.
///
/// # Errors
/// If the store cannot be listed, or does not say in which groups hosts are.
pub(crate) fn found(store: &Arc<dyn Store>, part: &Part) -> Result<BTreeMap<RunName, RunFiles>> {
    let part = as_place(store, part)?;
    let mut runs = BTreeMap::new();
    for within in store.list_bundles(&part, MAX_FILES)? {
        let Some(place) = place_of(&within) else { continue };
        runs.entry(place.run()).or_insert_with(|| open(store, &within, place));
    }
    Ok(runs)
}

/// The part as folders of this place have it.
fn as_place(store: &Arc<dyn Store>, part: &Part) -> Result<Part> {
    let mut part = part.clone();
    let tier = if part.hours.0.is_some() || part.services.is_some() { TierMark::read(store)? } else { None };
    if let Some(tier) = tier {
        part.hosts = part.hosts.or_else(|| part.services.take());
        if tier.hours > 1 {
            part.hours.0 = part.hours.0.map(Hour::first_of_day);
        }
    }
    if part.hosts.is_some() {
        part.groups = Groups::read(store)?;
    }
    Ok(part)
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
    let bundle = StoredFile::bundle(store, within);
    let part = FlushFiles::of(OF_ROLLUPS.map(|table| (table, bundle.in_bundle(table))));
    RunFiles { row: bundle.in_bundle(Runs::NAME), place: place.clone(), parts: vec![(place, part)] }
}
