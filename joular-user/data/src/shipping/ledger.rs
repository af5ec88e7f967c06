//! Notes which runs have arrived, in a file of the data set's own directory.
//!
//! A ledger that is lost costs time, and nothing else: what it no longer knows is shipped again, and found to be
//! there already.

use std::{
    collections::BTreeSet,
    mem,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use crate::{
    dataset::{
        error::DataSetError,
        layout::RunName,
        store::{SHIPPED, Store, StoredFile},
    },
    output::OutputError,
};

/// As many runs as a ring may hold, with room for their names.
const MAX_BYTES: u64 = 64 << 20;

/// What the file holds.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Content {
    /// To which store, and as which windows.
    target: String,
    runs: BTreeSet<RunName>,
}

/// What the shipper of a data set and who removes its runs tell each other. Copies share it.
#[derive(Clone, Debug, Default)]
pub struct Spool(Arc<Mutex<Runs>>);

#[derive(Debug, Default)]
struct Runs {
    arrived: BTreeSet<RunName>,
    /// Those that go, or have gone, before they have arrived.
    removed: BTreeSet<RunName>,
    /// Those that had no window. Nothing is missed of them.
    empty: BTreeSet<RunName>,
}

impl Spool {
    pub fn has_arrived(&self, run: &RunName) -> bool {
        self.runs().arrived.contains(run)
    }

    /// To be called before the first file of the run is removed.
    pub fn removing(&self, run: &RunName, has_windows: bool) {
        let mut runs = self.runs();
        if !has_windows {
            runs.empty.insert(run.clone());
        } else if !runs.arrived.contains(run) {
            runs.removed.insert(run.clone());
        }
    }

    /// Also if it is being removed meanwhile: the other store has all of it.
    fn arrived(&self, run: RunName) {
        let mut runs = self.runs();
        runs.removed.remove(&run);
        runs.arrived.insert(run);
    }

    pub(super) fn is_removed(&self, run: &RunName) -> bool {
        let runs = self.runs();
        runs.removed.contains(run) || runs.empty.contains(run)
    }

    pub(super) fn was_empty(&self, run: &RunName) -> bool {
        self.runs().empty.contains(run)
    }

    /// Those that were removed since this was last asked.
    pub(super) fn take_removed(&self) -> BTreeSet<RunName> {
        mem::take(&mut self.runs().removed)
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes the runs that have arrived.
#[derive(Debug)]
pub(super) struct Ledger {
    /// Of the file: a data set may be shipped to several stores.
    name: String,
    target: String,
    pub(super) spool: Spool,
}

impl Ledger {
    /// Reads what is noted of `target`. A ledger that cannot be understood counts as lost.
    pub(super) fn read(store: &Arc<dyn Store>, target: String) -> Result<Self, DataSetError> {
        let name = format!("{:016x}.json", XxHash64::oneshot(0, target.as_bytes()));
        let file = StoredFile::new(store, PathBuf::from(SHIPPED).join(&name));
        let content = match store.find(Path::new(SHIPPED), &name)? {
            Some(_) => serde_json::from_slice::<Content>(&file.read_whole(MAX_BYTES)?).unwrap_or_default(),
            None => Content::default(),
        };
        let arrived = if content.target == target { content.runs } else { BTreeSet::new() };
        let runs = Runs { arrived, ..Runs::default() };
        Ok(Self { name, target, spool: Spool(Arc::new(Mutex::new(runs))) })
    }

    /// Forgets runs that are no more.
    pub(super) fn retain(&mut self, exists: impl Fn(&RunName) -> bool) {
        let mut runs = self.spool.runs();
        runs.arrived.retain(&exists);
        runs.empty.retain(&exists);
    }

    pub(super) fn add(&mut self, store: &Arc<dyn Store>, run: RunName) -> Result<(), OutputError> {
        self.spool.arrived(run);
        let path = || PathBuf::from(SHIPPED).join(&self.name);
        let content = Content { target: self.target.clone(), runs: self.spool.runs().arrived.clone() };
        let bytes = serde_json::to_vec(&content).map_err(|error| OutputError::Io {
            action: "writing",
            path: path(),
            source: error.into(),
        })?;
        store.publish(Path::new(SHIPPED), &self.name, &bytes)
    }
}
