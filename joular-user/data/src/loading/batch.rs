//! Decides which bundles go together, once and for all: a batch is a list in a file of the place, which nobody changes.
//!
//! `claims/load/date=DATE/hour=HOUR/group=GROUP/NNNN.json` is created or there already. So whoever sends a batch again sends
//! the same bundles in the same order, and a database that remembers its token leaves it out. Batches have no say in what a
//! database holds: several can be loaded by the same ones.

use std::{
    collections::HashSet,
    hash::Hasher as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::{
    LoadError,
    listing::{GroupHour, Listed},
};
use crate::dataset::{
    error::DataSetError,
    store::{Store, StoredFile},
};

const CLAIMS: &str = "claims/load";
const FORMAT: u32 = 1;

/// Bundles of a batch: those of a group in a quarter of an hour.
pub(super) const MOST_BUNDLES: usize = 32;
/// Their bytes together. The file that is sent is about as large.
const MOST_BYTES: u64 = 64 << 20;
/// Batches of a group's hour.
const MOST_BATCHES: u32 = 9999;
const MAX_CLAIM_BYTES: u64 = 1 << 20;

/// What the file of a batch has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    format: u32,
    /// Seconds since 1970.
    claimed_at: i64,
    bundles: Vec<String>,
}

/// Bundles that are sent together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// `date=DATE/hour=HOUR/group=GROUP/NNNN`.
    pub(super) name: String,
    /// Names within the group's hour, sorted.
    pub(super) bundles: Vec<String>,
    /// Seconds since 1970.
    pub(super) claimed_at: i64,
}

impl Batch {
    /// Tells it from all others.
    pub(super) fn token(&self) -> String {
        let mut hasher = XxHash64::with_seed(0);
        for text in [&self.name].into_iter().chain(&self.bundles) {
            hasher.write(text.as_bytes());
            hasher.write(b"\n");
        }
        format!("{:016x}", hasher.finish())
    }
}

/// The batches of a group's hour, so that each bundle is in one.
///
/// # Errors
/// If a claim cannot be read or created.
pub(super) fn batches(
    store: &Arc<dyn Store>,
    group: &GroupHour,
    bundles: &[Listed],
    now: i64,
) -> Result<Vec<Batch>, LoadError> {
    let folder: PathBuf = [CLAIMS, &group.name].iter().collect();
    let mut batches: Vec<Batch> = Vec::new();
    for number in 1..=MOST_BATCHES {
        let name = format!("{number:04}");
        let claim = match claim(store, &folder, &name)? {
            Some(claim) => claim,
            None => {
                let rest = rest(bundles, &batches);
                if rest.is_empty() {
                    return Ok(batches);
                }
                let own = Claim { format: FORMAT, claimed_at: now, bundles: rest };
                let text = serde_json::to_vec(&own).map_err(|cause| LoadError::Claim { name: name.clone(), cause })?;
                store.publish_new(&folder, &file(&name), &text)?;
                // Another loader may have been first: what is there counts.
                claim_that_is_there(store, &folder, &name)?
            }
        };
        batches.push(Batch {
            name: format!("{}/{name}", group.name),
            bundles: claim.bundles,
            claimed_at: claim.claimed_at,
        });
    }
    Err(DataSetError::TooManyFiles { path: store.path().join(folder), most: MOST_BATCHES as usize }.into())
}

fn file(name: &str) -> String {
    format!("{name}.json")
}

/// The next bundles that are in no batch.
fn rest(bundles: &[Listed], batches: &[Batch]) -> Vec<String> {
    let taken: HashSet<&str> = batches.iter().flat_map(|batch| &batch.bundles).map(String::as_str).collect();
    let mut rest: Vec<&Listed> = bundles.iter().filter(|bundle| !taken.contains(bundle.name.as_str())).collect();
    rest.sort();
    let mut bytes = 0_u64;
    let fits = |(index, bundle): &(usize, &Listed)| {
        bytes = bytes.saturating_add(bundle.bytes);
        // One that is larger than a batch may be goes alone.
        *index == 0 || (*index < MOST_BUNDLES && bytes <= MOST_BYTES)
    };
    rest.into_iter().enumerate().take_while(fits).map(|(_, bundle)| bundle.name.clone()).collect()
}

fn claim(store: &Arc<dyn Store>, folder: &Path, name: &str) -> Result<Option<Claim>, LoadError> {
    match claim_that_is_there(store, folder, name) {
        Err(LoadError::DataSet(error)) if error.is_gone() => Ok(None),
        claim => claim.map(Some),
    }
}

fn claim_that_is_there(store: &Arc<dyn Store>, folder: &Path, name: &str) -> Result<Claim, LoadError> {
    let stored = StoredFile::new(store, folder.join(file(name)));
    let bytes = stored.read_whole(MAX_CLAIM_BYTES)?;
    let damaged = |problem: String| DataSetError::Damaged { path: stored.path(), problem };
    let claim: Claim = serde_json::from_slice(&bytes)
        .map_err(|error| damaged(format!("{error}: it is not a list of bundles: remove it, and load the hour anew")))?;
    let is_inside = |name: &String| !name.split('/').any(|part| matches!(part, "" | "." | ".."));
    if claim.format != FORMAT || !claim.bundles.iter().all(is_inside) {
        let problem = "it is not a list of bundles that this joular-bpf knows: use a newer one".to_owned();
        return Err(damaged(problem).into());
    }
    Ok(claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dataset::store::LocalDirectory, model::units::UnixMicros};

    fn hour(hour: i64) -> GroupHour {
        let name = format!("date=2026-03-01/hour={hour}/group=0");
        GroupHour { hour: UnixMicros(1_772_323_200_000_000 + hour * 3_600_000_000), name }
    }

    fn group() -> GroupHour {
        hour(12)
    }

    fn listed(count: usize, bytes: u64) -> Vec<Listed> {
        (0..count).rev().map(|index| Listed { name: format!("host=a/{index:03}.parquet"), bytes }).collect()
    }

    fn sizes(batches: &[Batch]) -> Vec<usize> {
        batches.iter().map(|batch| batch.bundles.len()).collect()
    }

    #[test]
    fn a_batch_stays_as_it_is_whatever_comes_later() {
        let place = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(place.path(), None));
        let first = batches(&store, &group(), &listed(40, 1), 5).unwrap();
        assert_eq!(sizes(&first), [MOST_BUNDLES, 8]);
        assert!(first[0].bundles.is_sorted() && first[0].claimed_at == 5);
        // One has come, and one that was listed is gone.
        let mut changed = listed(41, 1);
        changed.pop();
        let second = batches(&store, &group(), &changed, 6).unwrap();
        assert_eq!((&second[..2], sizes(&second)), (&first[..], vec![MOST_BUNDLES, 8, 1]));
        let tokens: HashSet<String> = second.iter().map(Batch::token).collect();
        assert_eq!(tokens.len(), 3);
        assert_eq!(first[1].token(), second[1].token());
    }

    #[test]
    fn bytes_of_a_batch_are_bounded_and_a_large_bundle_goes_alone() {
        let place = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(place.path(), None));
        assert_eq!(sizes(&batches(&store, &group(), &listed(5, MOST_BYTES / 2), 0).unwrap()), [2, 2, 1]);
        assert_eq!(sizes(&batches(&store, &hour(13), &listed(2, 2 * MOST_BYTES), 0).unwrap()), [1, 1]);
    }

    #[test]
    fn a_claim_that_is_damaged_or_leads_out_of_its_hour_is_an_error() {
        for text in [
            "",
            "[]",
            r#"{"format":2,"claimed_at":0,"bundles":[]}"#,
            r#"{"format":1,"claimed_at":0,"bundles":["../x"]}"#,
        ] {
            let place = tempfile::tempdir().unwrap();
            let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(place.path(), None));
            let folder = Path::new(CLAIMS).join(group().name);
            store.publish_new(&folder, "0001.json", text.as_bytes()).unwrap();
            let error = batches(&store, &group(), &listed(1, 1), 0).unwrap_err().to_string();
            assert!(error.contains("0001.json") && error.contains("it is not a list of bundles"), "{text}: {error}");
        }
    }
}
