//! Lets one at a time sum a unit, or do other work. That saves work and nothing else: two who sum the same sources write the same
//! bytes.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
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

/// Whoever takes longer for a unit has ended, or is taken for that.
const LONGEST_US: i64 = 30 * 60 * 1_000_000;

/// The same of work whose claim is renewed.
const RENEWED_US: i64 = 5 * 60 * 1_000_000;
const RENEWS_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize, Serialize)]
struct Claim {
    since_us: i64,
}

/// A unit that nobody else is at. Its end is noted when this is dropped.
pub(super) struct Claimed {
    store: Arc<dyn Store>,
    folder: String,
    since: UnixMicros,
    begun: Instant,
    /// Time since then at which it was last renewed.
    renewed: Cell<Duration>,
}

impl Claimed {
    /// `None` if somebody else is at it.
    pub(super) fn take(store: &Arc<dyn Store>, unit: Unit, now: UnixMicros) -> Result<Option<Self>> {
        Self::within(store, format!("claims/{}", folder_of(unit)), LONGEST_US, now)
    }

    /// Claims other work, for as long as it is [renewed](Self::renew). `None` if somebody else is at it.
    pub(super) fn of_work(store: &Arc<dyn Store>, name: &str, now: UnixMicros) -> Result<Option<Self>> {
        Self::within(store, format!("claims/{name}"), RENEWED_US, now)
    }

    fn within(store: &Arc<dyn Store>, folder: String, longest_us: i64, now: UnixMicros) -> Result<Option<Self>> {
        let path = store.path().join(&folder).join(NAME);
        let text = text(path, now)?;
        if store.publish_new(Path::new(&folder), NAME, &text)? == Published::AlreadyThere {
            let file = StoredFile::new(store, Path::new(&folder).join(NAME));
            // One that cannot be read was given up meanwhile, or is nobody's.
            let known: Option<Claim> =
                file.read_whole(MAX_BYTES).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            if known.is_some_and(|claim| now.0.saturating_sub(claim.since_us) < longest_us) {
                return Ok(None);
            }
            store.publish(Path::new(&folder), NAME, &text)?;
        }
        let (begun, renewed) = (Instant::now(), Cell::default());
        Ok(Some(Self { store: Arc::clone(store), folder, since: now, begun, renewed }))
    }

    /// Says that it is still at it, if that was not said just now.
    pub(super) fn renew(&self) -> Result<()> {
        let elapsed = self.begun.elapsed();
        if elapsed.saturating_sub(self.renewed.get()) < RENEWS_AFTER {
            return Ok(());
        }
        self.renewed.set(elapsed);
        let micros = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
        let text = text(self.store.path().join(&self.folder), UnixMicros(self.since.0.saturating_add(micros)))?;
        Ok(self.store.publish(Path::new(&self.folder), NAME, &text)?)
    }
}

fn text(path: PathBuf, since: UnixMicros) -> Result<Vec<u8>, OutputError> {
    let failed = |error: serde_json::Error| OutputError::Io { action: "writing", path, source: error.into() };
    serde_json::to_vec(&Claim { since_us: since.0 }).map_err(failed)
}

impl Drop for Claimed {
    /// A claim that cannot be removed ends by its age.
    fn drop(&mut self) {
        drop(self.store.remove(&Path::new(&self.folder).join(NAME)));
    }
}
