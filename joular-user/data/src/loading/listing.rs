//! Finds the bundles of a place: `raw/date=DATE/hour=HOUR/group=GROUP/host=HOST/RUN.parquet`.
//!
//! [`Listing`] is all that a loader asks of a place beside files by their names, which [`Store`](crate::dataset::store::Store)
//! opens and creates.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::{
    dataset::error::{DataSetError, Result},
    model::units::UnixMicros,
};

/// Folder of bundles.
const RAW: &str = "raw";
const HOUR_US: i64 = 3_600_000_000;
/// Bundles that are listed at most: those of some days of a large fleet. Their names take 200 MB then.
const MOST_BUNDLES: usize = 1_000_000;

/// A bundle of a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Within the place.
    pub path: PathBuf,
    /// 0 if it is not known.
    pub bytes: u64,
}

/// Says which bundles there are.
pub trait Listing {
    /// The bundles of hours that end after `since`, in no order, and perhaps others; all without it.
    ///
    /// # Errors
    /// If the place cannot be listed, or has too many.
    fn bundles(&self, since: Option<UnixMicros>) -> Result<Vec<Found>>;
}

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

/// The bundles of a place by groups and hours, the oldest first.
///
/// # Errors
/// If the place cannot be listed, or has too many.
pub(super) fn groups(listing: &dyn Listing, since: Option<UnixMicros>) -> Result<BTreeMap<GroupHour, Vec<Listed>>> {
    let mut groups: BTreeMap<GroupHour, Vec<Listed>> = BTreeMap::new();
    for Found { path, bytes } in listing.bundles(since)? {
        if let Some((group, name)) = GroupHour::of(&path).filter(|(group, _)| group.ends_after(since)) {
            groups.entry(group).or_default().push(Listed { name, bytes });
        }
    }
    groups.values_mut().for_each(|bundles| bundles.sort());
    Ok(groups)
}

impl GroupHour {
    /// Of a bundle's path, with the bundle's name there; `None` if it is not such a path.
    fn of(path: &Path) -> Option<(Self, String)> {
        let parts: Vec<&str> = path.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
        let [RAW, date, hour, group, host, name] = *parts.as_slice() else { return None };
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
        [RAW, &self.name, bundle].iter().collect()
    }
}

/// The bundles of a directory.
#[derive(Clone, Debug)]
pub struct DirectoryListing {
    root: PathBuf,
}

impl DirectoryListing {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// What is in a folder and its folders, so many levels deep.
    fn walk(&self, folder: &Path, levels: usize, found: &mut Vec<Found>) -> Result<()> {
        for name in names(&self.root.join(folder))? {
            let path = folder.join(name);
            if levels > 0 {
                self.walk(&path, levels - 1, found)?;
                continue;
            }
            // One that goes meanwhile is not there.
            let Ok(metadata) = fs::symlink_metadata(self.root.join(&path)) else { continue };
            if metadata.is_file() {
                found.push(Found { path, bytes: metadata.len() });
            }
            if found.len() > MOST_BUNDLES {
                return Err(DataSetError::TooManyFiles { path: self.root.join(RAW), most: MOST_BUNDLES });
            }
        }
        Ok(())
    }
}

impl Listing for DirectoryListing {
    /// A day that is over is not looked into.
    fn bundles(&self, since: Option<UnixMicros>) -> Result<Vec<Found>> {
        let first = since.and_then(|since| Timestamp::from_microsecond(since.0).ok());
        // An hour that ends after midnight began before.
        let first = first.map(|first| (first.as_second() - 3600).div_euclid(86_400) * 86_400);
        let first = first.and_then(|second| Timestamp::from_second(second).ok());
        let first = first.map(|first| format!("date={}", first.strftime("%Y-%m-%d")));
        let mut found = Vec::new();
        for date in names(&self.root.join(RAW))? {
            if first.as_ref().is_none_or(|first| &date >= first) {
                self.walk(&Path::new(RAW).join(date), 3, &mut found)?;
            }
        }
        Ok(found)
    }
}

/// What a folder holds, hidden entries apart; nothing if it is not a folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    let failed = |cause| DataSetError::Io { path: folder.into(), cause };
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(cause) => return Err(failed(cause)),
    };
    let names = listed.map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).map_err(failed));
    let names = names.collect::<Result<Vec<_>>>()?.into_iter().flatten();
    Ok(names.filter(|name| !name.starts_with('.')).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let listing = DirectoryListing::new(place.path());
        let all = groups(&listing, None).unwrap();
        let names: Vec<&str> = all.keys().map(|group| group.name.as_str()).collect();
        let expected =
            ["date=2026-02-01/hour=23/group=0", "date=2026-03-01/hour=23/group=0", "date=2026-03-02/hour=00/group=0"];
        assert_eq!(names, expected);
        let listed = |name: &str| Listed { name: name.to_owned(), bytes: 2 };
        let (last, bundles) = all.last_key_value().unwrap();
        assert_eq!(*bundles, [listed("host=a/r.parquet"), listed("host=b/s.parquet")]);
        for (before_us, hours) in [(0, 1), (1, 2), (HOUR_US, 2), (HOUR_US + 1, 2)] {
            let since = Some(UnixMicros(last.hour.0 - before_us));
            assert_eq!(groups(&listing, since).unwrap().len(), hours, "{before_us}");
        }
        assert!(groups(&DirectoryListing::new(&place.path().join("absent")), None).unwrap().is_empty());
    }
}
