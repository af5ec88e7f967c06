//! Removes runs that do not count, such as those of an experiment that were interrupted.

use std::{collections::BTreeSet, path::Path};

use super::{
    column::Table as _,
    error::Result,
    layout::{FilePlace, path_part},
    read::files::MAX_FILES,
    store::{self, ClaimKind},
    tables::{Runs, TABLES},
};

/// Removes the runs of the data set in the directory `root` whose ids are not among `kept`. Returns how many those are.
/// A directory that is not there has none.
///
/// # Errors
/// If the directory cannot be listed, a file cannot be removed, or somebody writes to the data set.
pub fn keep_only(root: &Path, kept: &BTreeSet<String>) -> Result<usize> {
    store::refuse_bucket("removing runs", root)?;
    if !root.exists() {
        return Ok(0);
    }
    let store = store::open(root)?;
    let _claim = store.claim(ClaimKind::Write)?;
    let kept: BTreeSet<String> = kept.iter().map(|id| path_part(id)).collect();
    let mut removed = BTreeSet::new();
    // `windows`, which says which rows are whole, goes first, and the run's row last.
    for table in TABLES.iter().rev().chain([&Runs::NAME]) {
        for file in store.list(table, MAX_FILES)? {
            let Some((_, run)) = FilePlace::of(&file).map(|place| place.run()) else { continue };
            if !kept.contains(&run) {
                store.remove(&file)?;
                removed.insert(run);
            }
        }
    }
    Ok(removed.len())
}
