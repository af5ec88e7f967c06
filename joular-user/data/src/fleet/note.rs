//! Notes in a tier from which sources a unit was summed, once all of it is there.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{tier::folder_of, unit::Unit};
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
    /// How many of them could not be summed. `None`: an earlier joular-bpf did not note it.
    #[serde(default)]
    pub(super) left_out: Option<usize>,
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
    pub(super) left_out: Option<usize>,
}

impl OfHour {
    pub(super) fn of(note: &Note) -> Self {
        Self { sources: note.sources.clone(), runs: note.runs, left_out: note.left_out }
    }
}

fn folder(unit: Unit) -> String {
    format!("done/{}", folder_of(unit))
}

impl Note {
    /// `None` if the unit was not summed, or what says so cannot be read: then it is summed again.
    pub(super) fn read(store: &Arc<dyn Store>, unit: Unit) -> Result<Option<Self>> {
        let file = StoredFile::new(store, Path::new(&folder(unit)).join(NAME));
        match file.read_whole(MAX_BYTES) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn publish(&self, store: &Arc<dyn Store>, unit: Unit) -> Result<()> {
        let folder = folder(unit);
        let path = store.path().join(&folder).join(NAME);
        let failed = |error: serde_json::Error| OutputError::Io { action: "writing", path, source: error.into() };
        let text = serde_json::to_vec(self).map_err(failed)?;
        Ok(store.publish(Path::new(&folder), NAME, &text)?)
    }
}
