//! Lets one at a time sum a unit, or do other work. That saves work and nothing else: two who sum the same sources write the same
//! bytes, and who sums older ones writes nothing ([`super::before`]).

use std::{
    cell::Cell,
    hash::{BuildHasher as _, RandomState},
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
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
    own: Claim,
    /// There is nothing to remove any more.
    is_lost: bool,
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
        let own = Claim { since_us: now.0, by: RandomState::new().hash_one(&folder) };
        let text = own.text(path)?;
        if store.publish_new(Path::new(&folder), NAME, &text)? == Published::AlreadyThere {
            let file = StoredFile::new(store, Path::new(&folder).join(NAME));
            // One that cannot be read was given up meanwhile, or is nobody's.
            let known: Option<Claim> =
                file.read_whole(MAX_BYTES).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let is_young = |claim: &Claim| now.0.saturating_sub(claim.since_us) < longest_us;
            if known.is_some_and(|claim| claim != own && is_young(&claim)) {
                return Ok(None);
            }
            store.publish(Path::new(&folder), NAME, &text)?;
        }
        let (begun, renewed) = (Instant::now(), Cell::default());
        Ok(Some(Self { store: Arc::clone(store), folder, own, is_lost: false, begun, renewed }))
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

    /// Says that it is still at it, if that was not said just now.
    pub(super) fn renew(&self) -> Result<()> {
        let elapsed = self.begun.elapsed();
        if elapsed.saturating_sub(self.renewed.get()) < RENEWS_AFTER {
            return Ok(());
        }
        self.renewed.set(elapsed);
        let micros = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
        let renewed = Claim { since_us: self.own.since_us.saturating_add(micros), ..self.own };
        let text = renewed.text(self.store.path().join(&self.folder).join(NAME))?;
        Ok(self.store.publish(Path::new(&self.folder), NAME, &text)?)
    }
}

impl Claim {
    fn text(&self, path: PathBuf) -> Result<Vec<u8>, OutputError> {
        let failed = |error: serde_json::Error| OutputError::Io { action: "writing", path, source: error.into() };
        serde_json::to_vec(self).map_err(failed)
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
