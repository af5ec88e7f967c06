//! Finds the bundles of a place: `raw/date=DATE/hour=HOUR/group=GROUP/host=HOST/RUN.parquet`.
//!
//! [`Listing`] is all that a loader asks of a place beside files by their names, which [`Store`](crate::dataset::store::Store)
//! opens and creates.

use std::{
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
/// Bundles of a group in an hour: some 32 hosts, a few runs each.
const MOST_BUNDLES: usize = 100_000;

/// The bundles of a group of hosts in an hour.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupHour {
    /// Its start, in UTC.
    pub hour: UnixMicros,
    /// `date=DATE/hour=HOUR/group=GROUP`.
    pub name: String,
}

/// A bundle of a group's hour.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// `host=HOST/RUN.parquet`.
    pub name: String,
    pub bytes: u64,
}

/// Says which bundles there are.
pub trait Listing {
    /// The groups' hours that end after `since`, the oldest first; all without it.
    ///
    /// # Errors
    /// If the place cannot be listed.
    fn groups(&self, since: Option<UnixMicros>) -> Result<Vec<GroupHour>>;

    /// The bundles of a group's hour, in no order.
    ///
    /// # Errors
    /// If the place cannot be listed, or has too many.
    fn bundles(&self, group: &GroupHour) -> Result<Vec<Listed>>;
}

impl GroupHour {
    /// By the names of its folders; `None` if they are not such names.
    pub fn of(date: &str, hour: &str, group: &str) -> Option<Self> {
        let start = format!("{}T{}:00:00", date.strip_prefix("date=")?, hour.strip_prefix("hour=")?);
        let start: DateTime = start.parse().ok()?;
        let start = start.to_zoned(TimeZone::UTC).ok()?.timestamp().as_microsecond();
        group.strip_prefix("group=").filter(|group| !group.is_empty())?;
        Some(Self { hour: UnixMicros(start), name: format!("{date}/{hour}/{group}") })
    }

    /// Whether it ends after a moment.
    pub fn ends_after(&self, since: Option<UnixMicros>) -> bool {
        since.is_none_or(|since| self.hour.0.saturating_add(HOUR_US) > since.0)
    }

    /// Where a bundle lies in the place.
    pub fn path_of(&self, bundle: &str) -> PathBuf {
        [RAW, &self.name, bundle].iter().collect()
    }

    /// As people write its start.
    pub fn start(&self) -> String {
        Timestamp::from_microsecond(self.hour.0).map(|start| start.to_string()).unwrap_or_default()
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
}

impl Listing for DirectoryListing {
    fn groups(&self, since: Option<UnixMicros>) -> Result<Vec<GroupHour>> {
        let mut found = Vec::new();
        let raw = self.root.join(RAW);
        for date in folders(&raw)? {
            for hour in folders(&raw.join(&date))? {
                let groups = folders(&raw.join(&date).join(&hour))?;
                let of_hour = groups.iter().filter_map(|group| GroupHour::of(&date, &hour, group));
                found.extend(of_hour.filter(|group| group.ends_after(since)));
            }
        }
        found.sort();
        Ok(found)
    }

    fn bundles(&self, group: &GroupHour) -> Result<Vec<Listed>> {
        let mut found = Vec::new();
        let folder = self.root.join(RAW).join(&group.name);
        for host in folders(&folder)? {
            for name in names(&folder.join(&host))? {
                let path = folder.join(&host).join(&name);
                // One that goes meanwhile is not there.
                let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
                if name.ends_with(".parquet") && metadata.is_file() {
                    found.push(Listed { name: format!("{host}/{name}"), bytes: metadata.len() });
                }
                if found.len() > MOST_BUNDLES {
                    return Err(DataSetError::TooManyFiles { path: folder, most: MOST_BUNDLES });
                }
            }
        }
        Ok(found)
    }
}

/// Folders that have a name and a value.
fn folders(folder: &Path) -> Result<Vec<String>> {
    Ok(names(folder)?.into_iter().filter(|name| name.contains('=')).collect())
}

/// What a folder holds, hidden entries apart; nothing if there is no folder.
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
        let group = GroupHour::of("date=2026-03-01", "hour=12", "group=07").unwrap();
        assert_eq!((group.start().as_str(), group.hour.0 % HOUR_US), ("2026-03-01T12:00:00Z", 0));
        assert_eq!(
            group.path_of("host=a/r.parquet"),
            Path::new("raw/date=2026-03-01/hour=12/group=07/host=a/r.parquet")
        );
        let at = |us: i64| group.ends_after(Some(UnixMicros(group.hour.0 + us)));
        assert!(group.ends_after(None) && at(0) && at(HOUR_US - 1) && !at(HOUR_US));
        for (date, hour, name) in [
            ("date=2026-13-01", "hour=12", "group=07"),
            ("date=2026-03-01", "hour=24", "group=07"),
            ("2026-03-01", "hour=12", "group=07"),
            ("date=2026-03-01", "hour=12", "host=07"),
        ] {
            assert_eq!(GroupHour::of(date, hour, name), None, "{date}/{hour}/{name}");
        }
    }

    #[test]
    fn a_directory_lists_bundles_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let hours = ["raw/date=2026-03-02/hour=00", "raw/date=2026-03-01/hour=23"];
        for file in
            ["group=0/host=a/r.parquet", "group=0/host=a/.r.parquet", "group=0/host=a/x", "group=0/host=b/s.parquet"]
        {
            for hour in hours {
                let path = place.path().join(hour).join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "12").unwrap();
            }
        }
        let listing = DirectoryListing::new(place.path());
        let groups = listing.groups(None).unwrap();
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["date=2026-03-01/hour=23/group=0", "date=2026-03-02/hour=00/group=0"]);
        let mut bundles = listing.bundles(&groups[0]).unwrap();
        bundles.sort();
        let listed = |name: &str| Listed { name: name.to_owned(), bytes: 2 };
        assert_eq!(bundles, [listed("host=a/r.parquet"), listed("host=b/s.parquet")]);
        assert_eq!(listing.groups(Some(groups[1].hour)).unwrap(), groups[1..]);
        assert_eq!(DirectoryListing::new(&place.path().join("absent")).groups(None).unwrap(), []);
    }
}
