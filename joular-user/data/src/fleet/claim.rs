//! Lets one at a time sum a unit. That saves work and nothing else: two who sum the same sources write the same bytes.

use std::{path::Path, sync::Arc};

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

#[derive(Debug, Deserialize, Serialize)]
struct Claim {
    since_us: i64,
}

/// A unit that nobody else is at. Its end is noted when this is dropped.
pub(super) struct Claimed {
    store: Arc<dyn Store>,
    folder: String,
}

impl Claimed {
    /// `None` if somebody else is at it.
    pub(super) fn take(store: &Arc<dyn Store>, unit: Unit, now: UnixMicros) -> Result<Option<Self>> {
        let folder = format!("claims/{}", folder_of(unit));
        let path = store.path().join(&folder).join(NAME);
        let failed = |error: serde_json::Error| OutputError::Io { action: "writing", path, source: error.into() };
        let text = serde_json::to_vec(&Claim { since_us: now.0 }).map_err(failed)?;
        if store.publish_new(Path::new(&folder), NAME, &text)? == Published::AlreadyThere {
            let file = StoredFile::new(store, Path::new(&folder).join(NAME));
            // One that cannot be read was given up meanwhile, or is nobody's.
            let known: Option<Claim> =
                file.read_whole(MAX_BYTES).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if known.is_some_and(|claim| now.0.saturating_sub(claim.since_us) < LONGEST_US) {
                return Ok(None);
            }
            store.publish(Path::new(&folder), NAME, &text)?;
        }
        Ok(Some(Self { store: Arc::clone(store), folder }))
    }
}

impl Drop for Claimed {
    /// A claim that cannot be removed ends by its age.
    fn drop(&mut self) {
        drop(self.store.remove(&Path::new(&self.folder).join(NAME)));
    }
}
