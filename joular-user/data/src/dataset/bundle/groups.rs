//! Says in which group a host is: so that the runs of one host can be listed without those of all others, however many there
//! are. `fleet.json` at a place has the number of groups, from a date on:
//!
//! ```json
//! {"format":1,"groups":[{"since":"2026-11-26","n":64}]}
//! ```
//!
//! A host is in group `xxh64(HOST) % n`, with seed 0 and the name as its folder has it. Without the file, all hosts are in
//! group 0. The file is made once, before there are many hosts, and never changes.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    ops::Bound,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

use super::has_any;
use crate::{
    dataset::{
        error::{DataSetError, Result},
        layout::date,
        store::{Published, Store, StoredFile},
    },
    model::units::UnixMicros,
    output::OutputError,
    text::escape,
};

/// The name of the file.
pub const FLEET: &str = "fleet.json";

/// What a program that knows this form understands.
const FORMAT: u32 = 1;
const MAX_BYTES: u64 = 64 << 10;
/// Hosts in a group: so many prefixes are listed at once.
const HOSTS: u32 = 32;
const DAY_US: i64 = 86_400_000_000;

/// Numbers of groups, by the date from which they hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups(BTreeMap<String, NonZeroU32>);

/// What the file holds.
#[derive(Debug, Deserialize, Serialize)]
struct Fleet {
    format: u32,
    groups: Vec<Entry>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Entry {
    since: String,
    n: NonZeroU32,
}

/// What was made for a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Init {
    /// The file.
    pub path: PathBuf,
    pub groups: u32,
    /// The first date of which runs are put in these groups.
    pub since: String,
}

impl Groups {
    /// Those of a place. Without a file there is one.
    ///
    /// # Errors
    /// If the file cannot be read, or is not of this form.
    pub fn read(place: &Arc<dyn Store>) -> Result<Self> {
        let file = StoredFile::new(place, FLEET);
        let bytes = match file.read_whole(MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.is_gone() => return Ok(Self::default()),
            Err(error) => return Err(error),
        };
        Self::parse(&bytes).map_err(|problem| DataSetError::Damaged { path: file.path(), problem })
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let wrong = |error: serde_json::Error| format!("it does not say groups: {}", escape(&error.to_string()));
        let fleet: Fleet = serde_json::from_slice(bytes).map_err(wrong)?;
        if fleet.format != FORMAT {
            return Err(format!("it has format {}, this joular-bpf reads {FORMAT}: use a newer one", fleet.format));
        }
        Ok(Self(fleet.groups.into_iter().map(|entry| (entry.since, entry.n)).collect()))
    }

    /// The folder of the group of a host, for runs that began on this date. `host_folder` is `host=HOST`.
    pub fn folder(&self, date: &str, host_folder: &str) -> String {
        let until = (Bound::Unbounded, Bound::Included(date));
        let count = self.0.range::<str, _>(until).next_back().map_or(1, |(_, count)| count.get());
        let host = host_folder.strip_prefix("host=").unwrap_or(host_folder);
        let group = XxHash64::oneshot(0, host.as_bytes()).checked_rem(count.into()).unwrap_or(0);
        format!("group={group:02}")
    }
}

/// Makes the file for a fleet of so many hosts. Runs that are there keep their group: if there are any, the groups hold from
/// the next day on.
///
/// # Errors
/// If the file is there already, or the place cannot be listed or written.
pub fn init(place: &Arc<dyn Store>, hosts: NonZeroU32, now: UnixMicros) -> Result<Init> {
    let days = i64::from(has_any(place)?);
    let since = date(UnixMicros(now.0.saturating_add(days * DAY_US)));
    let count = NonZeroU32::new(hosts.get().div_ceil(HOSTS)).unwrap_or(NonZeroU32::MIN);
    let fleet = Fleet { format: FORMAT, groups: vec![Entry { since: since.clone(), n: count }] };
    let path = place.path().join(FLEET);
    let failed =
        |error: serde_json::Error| OutputError::Io { action: "writing", path: path.clone(), source: error.into() };
    let text = serde_json::to_vec(&fleet).map_err(failed)?;
    if place.find(Path::new(""), FLEET)?.is_some() {
        return Err(DataSetError::FleetThere { path });
    }
    // It may be there by this call, if an answer was lost.
    let is_made = place.publish_new(Path::new(""), FLEET, &text)? == Published::Created
        || StoredFile::new(place, FLEET).read_whole(MAX_BYTES)? == text;
    if is_made { Ok(Init { path, groups: count.get(), since }) } else { Err(DataSetError::FleetThere { path }) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::dataset::store::LocalDirectory;

    /// 2026-03-01T23:00Z.
    const NOW: UnixMicros = UnixMicros(1_772_406_000_000_000);

    fn local(root: &Path) -> Arc<dyn Store> {
        Arc::new(LocalDirectory::new(root, None))
    }

    fn hosts(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    #[test]
    fn hosts_are_in_groups_by_their_names_from_a_date_on() {
        let text = br#"{"format":1,"groups":[{"since":"2026-03-10","n":64},{"since":"2026-03-02","n":4}]}"#;
        let groups = Groups::parse(text).unwrap();
        let group = |date: &str, host: &str| groups.folder(date, &format!("host={host}"));
        assert_eq!(group("2026-03-01", "web-1"), "group=00", "before the first date");
        for (date, count) in [("2026-03-02", 4), ("2026-03-09", 4), ("2026-03-10", 64), ("2027-01-01", 64)] {
            let all: std::collections::BTreeSet<String> =
                (0..1000).map(|host| group(date, &format!("web-{host}"))).collect();
            assert_eq!(all.len(), count, "{date}");
            assert_eq!(all.first().map(String::as_str), Some("group=00"));
        }
        // As Python's xxhash has it: xxhash.xxh64("web-1").intdigest() % 64.
        assert_eq!(group("2026-03-10", "web-1"), "group=08");
    }

    #[test]
    fn what_is_not_of_this_form_says_why() {
        for (text, problem) in [
            ("", "does not say groups"),
            (r#"{"format":1,"groups":[{"since":"2026-03-02","n":0}]}"#, "does not say groups"),
            (r#"{"format":2,"groups":[]}"#, "use a newer one"),
        ] {
            let root = tempfile::tempdir().unwrap();
            fs::write(root.path().join(FLEET), text).unwrap();
            let error = Groups::read(&local(root.path())).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(FLEET), "{error}");
        }
    }

    #[test]
    fn the_file_is_made_once_and_holds_for_runs_to_come() {
        let root = tempfile::tempdir().unwrap();
        let place = local(root.path());
        assert_eq!(Groups::read(&place).unwrap(), Groups::default());
        let made = init(&place, hosts(2000), NOW).unwrap();
        assert_eq!((made.groups, made.since.as_str()), (63, "2026-03-01"));
        let groups = Groups::read(&place).unwrap();
        assert_eq!(groups, Groups(BTreeMap::from([("2026-03-01".to_owned(), hosts(63))])));
        let error = init(&place, hosts(4000), NOW).unwrap_err().to_string();
        assert!(error.contains(root.path().join(FLEET).to_str().unwrap()), "{error}");
        assert_eq!(Groups::read(&place).unwrap(), groups);
        let used = tempfile::tempdir().unwrap();
        let folder = used.path().join("raw/date=2026-03-01/hour=09/group=00/host=web-1");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("web-1-1.parquet"), "").unwrap();
        assert_eq!(init(&local(used.path()), hosts(1), NOW).unwrap().since, "2026-03-02");
    }
}
