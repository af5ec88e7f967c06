//! Lets one at a time sum a unit. That saves work and nothing else: two who sum the same sources write the same bytes, and who
//! sums older ones writes nothing ([`super::before`]).

use std::{
    hash::{BuildHasher as _, RandomState},
    path::Path,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{tier::folder_of, unit::Unit};
use crate::{
    dataset::{
        error::Result,
        store::{Published, Store, StoredFile},
    },
    model::units::UnixMicros,
    output::OutputError,
};

const NAME: &str = "claim.json";
const MAX_BYTES: u64 = 4096;

/// Whoever takes longer has ended, or is taken for that.
const LONGEST_US: i64 = 30 * 60 * 1_000_000;

#[derive(Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Claim {
    since_us: i64,
    /// A number by chance: the claim is there already if the answer to its first request was lost, and it is known by this.
    #[serde(default)]
    by: u64,
}

/// A unit that nobody else is at. Its end is noted when this is dropped.
pub(super) struct Claimed {
    store: Arc<dyn Store>,
    folder: String,
    /// There is nothing to remove any more.
    is_lost: bool,
}

impl Claimed {
    /// `None` if somebody else is at it.
    pub(super) fn take(store: &Arc<dyn Store>, unit: Unit, now: UnixMicros) -> Result<Option<Self>> {
        let folder = format!("claims/{}", folder_of(unit));
        let path = store.path().join(&folder).join(NAME);
        let failed = |error: serde_json::Error| OutputError::Io { action: "writing", path, source: error.into() };
        let own = Claim { since_us: now.0, by: RandomState::new().hash_one(&folder) };
        let text = serde_json::to_vec(&own).map_err(failed)?;
        if store.publish_new(Path::new(&folder), NAME, &text)? == Published::AlreadyThere {
            let file = StoredFile::new(store, Path::new(&folder).join(NAME));
            // One that cannot be read was given up meanwhile, or is nobody's.
            let known: Option<Claim> =
                file.read_whole(MAX_BYTES).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let is_young = |claim: &Claim| now.0.saturating_sub(claim.since_us) < LONGEST_US;
            if known.is_some_and(|claim| claim != own && is_young(&claim)) {
                return Ok(None);
            }
            store.publish(Path::new(&folder), NAME, &text)?;
        }
        Ok(Some(Self { store: Arc::clone(store), folder, is_lost: false }))
    }

    /// Gives the unit up.
    pub(super) fn end(mut self) -> Result<()> {
        self.is_lost = true;
        Ok(self.remove()?)
    }

    fn remove(&self) -> Result<(), OutputError> {
        self.store.remove(&Path::new(&self.folder).join(NAME))
    }

    /// Says that another one has been at the unit since, whose claim it may be by now.
    pub(super) fn lose(mut self) {
        self.is_lost = true;
    }
}

impl Drop for Claimed {
    /// A claim that cannot be removed ends by its age.
    fn drop(&mut self) {
        if !self.is_lost {
            drop(self.remove());
        }
    }
}
