//! Lists the bundles of a place by hour and group: `raw/date=DATE/hour=HOUR/group=GROUP/host=HOST/RUN.parquet`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::{civil::DateTime, tz::TimeZone};
use twox_hash::XxHash64;

use crate::{
    dataset::{
        bundle::BUNDLES,
        error::Result,
        store::{Hour, Part, Store, StoredFile},
    },
    model::units::UnixMicros,
};

const HOUR_US: i64 = 3_600_000_000;
/// Bundles that are listed at most: those of some days of a large fleet. Their names take 200 MB then.
const MOST_BUNDLES: usize = 1_000_000;

/// The bundles of a group of hosts in an hour are loaded together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupHour {
    /// Its start, in UTC.
    pub(super) hour: UnixMicros,
    /// `date=DATE/hour=HOUR/group=GROUP`.
    pub(super) name: String,
}

/// A bundle of a group's hour.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Listed {
    /// `host=HOST/RUN.parquet`.
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// The bundles of hours that end after `since`, by groups and hours, the oldest first; all without it.
///
/// # Errors
/// If the place cannot be listed, or has too many.
pub(super) fn groups(store: &Arc<dyn Store>, since: Option<UnixMicros>) -> Result<BTreeMap<GroupHour, Vec<Listed>>> {
    let part = Part { hours: (since.map(Hour::of), None), ..Part::default() };
    let mut groups: BTreeMap<GroupHour, Vec<Listed>> = BTreeMap::new();
    for path in store.list_bundles(&part, MOST_BUNDLES)? {
        let Some((group, name)) = GroupHour::of(&path).filter(|(group, _)| group.ends_after(since)) else { continue };
        match StoredFile::new(store, &path).size_bytes() {
            Ok(bytes) => groups.entry(group).or_default().push(Listed { name, bytes }),
            // It has expired meanwhile.
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error),
        }
    }
    groups.values_mut().for_each(|bundles| bundles.sort());
    Ok(groups)
}

/// Tells bundles of a group's hour from others, in any order. Sums of parts are added up by [`u64::wrapping_add`].
pub(super) fn names_sum<'a>(names: impl IntoIterator<Item = &'a String>) -> u64 {
    names.into_iter().fold(0, |sum, name| sum.wrapping_add(XxHash64::oneshot(0, name.as_bytes())))
}

impl GroupHour {
    /// Of a bundle's path, with the bundle's name there; `None` if it is not such a path.
    fn of(path: &Path) -> Option<(Self, String)> {
        let parts: Vec<&str> = path.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
        let [BUNDLES, date, hour, group, host, name] = *parts.as_slice() else { return None };
        let start = format!("{}T{}:00:00", date.strip_prefix("date=")?, hour.strip_prefix("hour=")?);
        let start: DateTime = start.parse().ok()?;
        let start = start.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond();
        let is_bundle = name.ends_with(".parquet") && !name.starts_with('.');
        let is_sound = group.starts_with("group=") && host.starts_with("host=") && is_bundle;
        let group = Self { hour: UnixMicros(start), name: format!("{date}/{hour}/{group}") };
        is_sound.then(|| (group, format!("{host}/{name}")))
    }

    /// Whether it ends after a moment.
    pub(super) fn ends_after(&self, since: Option<UnixMicros>) -> bool {
        since.is_none_or(|since| self.hour.0.saturating_add(HOUR_US) > since.0)
    }

    /// Where a bundle lies in the place.
    pub(super) fn path_of(&self, bundle: &str) -> PathBuf {
        [BUNDLES, &self.name, bundle].iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::*;
    use crate::dataset::store::LocalDirectory;

    fn local(root: &Path) -> Arc<dyn Store> {
        Arc::new(LocalDirectory::new(root, None))
    }

    #[test]
    fn an_hour_is_known_by_the_names_of_its_folders() {
        let path = Path::new("raw/date=2026-03-01/hour=12/group=07/host=a/r.parquet");
        let (group, name) = GroupHour::of(path).unwrap();
        let noon: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        assert_eq!((group.hour.0, name.as_str()), (noon.as_microsecond(), "host=a/r.parquet"));
        assert_eq!(group.path_of(&name), path);
        let at = |us: i64| group.ends_after(Some(UnixMicros(group.hour.0 + us)));
        assert!(group.ends_after(None) && at(0) && at(HOUR_US - 1) && !at(HOUR_US));
        for path in [
            "raw/date=2026-13-01/hour=12/group=07/host=a/r.parquet",
            "raw/date=2026-03-01/hour=24/group=07/host=a/r.parquet",
            "raw/2026-03-01/hour=12/group=07/host=a/r.parquet",
            "raw/date=2026-03-01/hour=12/host=a/group=07/r.parquet",
            "raw/date=2026-03-01/hour=12/group=07/host=a/r.json",
            "raw/date=2026-03-01/hour=12/group=07/host=a/.r.parquet",
            "runs/date=2026-03-01/host=a/r.parquet",
        ] {
            assert_eq!(GroupHour::of(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn other_names_have_another_sum_and_another_order_has_not() {
        let sum = |names: &[&str]| names_sum(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(sum(&["a", "b"]), sum(&["b", "a"]));
        assert_eq!(sum(&["a"]).wrapping_add(sum(&["b", "c"])), sum(&["a", "b", "c"]));
        assert!(sum(&["a", "b"]) != sum(&["a", "c"]) && sum(&["a"]) != sum(&[]));
    }

    #[test]
    fn a_directory_has_its_bundles_by_hours_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let hours = ["raw/date=2026-03-02/hour=00", "raw/date=2026-03-01/hour=23", "raw/date=2026-02-01/hour=23"];
        for file in
            ["group=0/host=b/s.parquet", "group=0/host=a/r.parquet", "group=0/host=a/.r.parquet", "group=0/host=a/x"]
        {
            for hour in hours {
                let path = place.path().join(hour).join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "12").unwrap();
            }
        }
        fs::write(place.path().join("raw/x"), "").unwrap();
        let store = local(place.path());
        let all = groups(&store, None).unwrap();
        let names: Vec<&str> = all.keys().map(|group| group.name.as_str()).collect();
        let expected =
            ["date=2026-02-01/hour=23/group=0", "date=2026-03-01/hour=23/group=0", "date=2026-03-02/hour=00/group=0"];
        assert_eq!(names, expected);
        let listed = |name: &str| Listed { name: name.to_owned(), bytes: 2 };
        let (last, bundles) = all.last_key_value().unwrap();
        assert_eq!(*bundles, [listed("host=a/r.parquet"), listed("host=b/s.parquet")]);
        for (before_us, hours) in [(0, 1), (1, 2), (HOUR_US, 2), (HOUR_US + 1, 2)] {
            let since = Some(UnixMicros(last.hour.0 - before_us));
            assert_eq!(groups(&store, since).unwrap().len(), hours, "{before_us}");
        }
        assert!(groups(&local(&place.path().join("absent")), None).unwrap().is_empty());
    }
}
