//! Notes in a tier from which sources a unit was summed, once all of it is there.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{before::Before, tier::folder_of, unit::Unit};
use crate::{
    dataset::{
        error::Result,
        store::{Store, StoredFile},
    },
    output::OutputError,
};

const NAME: &str = "sources.json";
const MAX_BYTES: u64 = 64 << 20;

/// What is known of a unit that was summed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// Hash of the names of its sources, or of their notes.
    pub(super) sources: String,
    /// How many there were.
    pub(super) runs: usize,
    /// Those of them that could not be read, by their paths. `None`: an earlier joular-bpf did not note it.
    #[serde(default)]
    pub(super) left_out: Option<BTreeSet<PathBuf>>,
    /// Of a day: what its hours were made of when it was summed, from midnight on.
    #[serde(default)]
    pub(super) hours: Vec<OfHour>,
    /// Files of the unit, within the tier.
    pub(super) files: BTreeSet<PathBuf>,
    /// Energy of all its files, µJ.
    pub(super) measured_uj: u64,
}

/// What an hour was made of; of one that was not summed, nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OfHour {
    pub(super) sources: String,
    pub(super) runs: usize,
    /// Whether none of them was left out, and that is certain.
    pub(super) is_whole: bool,
}

impl OfHour {
    pub(super) fn of(note: &Note) -> Self {
        Self { sources: note.sources.clone(), runs: note.runs, is_whole: note.is_whole() }
    }
}

/// Where it is within the tier.
pub(super) fn path(unit: Unit) -> PathBuf {
    Path::new(&folder(unit)).join(NAME)
}

fn folder(unit: Unit) -> String {
    format!("done/{}", folder_of(unit))
}

impl Note {
    /// Whether none of its sources was left out, and that is certain.
    pub(super) fn is_whole(&self) -> bool {
        self.left_out.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Whether this source was left out.
    pub(super) fn lacks(&self, source: &Path) -> bool {
        self.left_out.as_ref().is_some_and(|left_out| left_out.contains(source))
    }

    /// `None` if the unit was not summed, or what says so cannot be read: then it is summed again.
    pub(super) fn read(store: &Arc<dyn Store>, unit: Unit) -> Result<Option<Self>> {
        match StoredFile::new(store, path(unit)).read_whole(MAX_BYTES) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether it is what the unit has now: another one may have been noted since.
    pub(super) fn publish(&self, before: &Before<'_>, unit: Unit) -> Result<bool> {
        before.replace(Path::new(&folder(unit)), NAME, &self.text(before.root(), unit)?)
    }

    /// Publishes it in place of whatever is there.
    pub(super) fn overwrite(&self, store: &Arc<dyn Store>, unit: Unit) -> Result<()> {
        Ok(store.publish(Path::new(&folder(unit)), NAME, &self.text(store.path(), unit)?)?)
    }

    fn text(&self, root: &Path, unit: Unit) -> Result<Vec<u8>, OutputError> {
        let path = root.join(path(unit));
        let failed = |error: serde_json::Error| OutputError::Io { action: "writing", path, source: error.into() };
        serde_json::to_vec(self).map_err(failed)
    }
}
