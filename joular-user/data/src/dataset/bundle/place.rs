//! Names bundles.

use std::path::{Path, PathBuf};

use super::{BUNDLES, Groups};
use crate::{
    dataset::layout::{FilePlace, date, hour, path_part},
    events::RunInfo,
};

/// Where the bundle of a run belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundlePlace {
    date: String,
    hour: String,
    host_folder: String,
    pub(crate) name: String,
}

impl BundlePlace {
    pub(crate) fn of(info: &RunInfo) -> Self {
        Self {
            date: date(info.started),
            hour: hour(info.started),
            host_folder: format!("host={}", path_part(info.host.raw())),
            name: format!("{}.parquet", path_part(&info.run_id)),
        }
    }

    /// Its folder, with the group that the host is in.
    pub(crate) fn folder(&self, groups: &Groups) -> PathBuf {
        let Self { date, hour, host_folder, .. } = self;
        let group = groups.folder(date, host_folder);
        [BUNDLES, &format!("date={date}"), &format!("hour={hour}"), &group, host_folder].iter().collect()
    }
}

/// The place that files of the run would have, from the path of its bundle within a store; `None` if it is no bundle.
pub(crate) fn place_of(within: &Path) -> Option<FilePlace> {
    let parts: Vec<&str> = within.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    let [BUNDLES, date, hour, group, host, name] = *parts.as_slice() else { return None };
    let is_sound = date.starts_with("date=")
        && hour.starts_with("hour=")
        && group.starts_with("group=")
        && host.starts_with("host=")
        && !name.starts_with('.');
    let run = name.strip_suffix(".parquet").filter(|_| is_sound)?;
    Some(FilePlace::of_bundle(date, host, run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dataset::fixture, model::policy::Policy};

    #[test]
    fn a_bundle_is_the_same_run_as_files_of_tables_are() {
        let mut info = fixture::run_info(Policy::default());
        for (host, run) in [("node-1", "node-1-17.0003"), ("näme/..", "näme/..-17"), ("7", "7-17")] {
            (info.host, info.run_id) = (host.into(), run.to_owned());
            let place = BundlePlace::of(&info);
            let folder = place.folder(&Groups::default());
            assert!(folder.starts_with("raw/date=2026-03-01/hour=23/group=00"), "{}", folder.display());
            let found = place_of(&folder.join(&place.name)).unwrap();
            assert_eq!(found, FilePlace::new(&info, "2026-03-01", 0));
            assert_eq!(found.run(), FilePlace::new(&info, "2026-03-02", 7).run());
        }
    }

    #[test]
    fn what_is_no_bundle_has_no_place() {
        for within in [
            "runs/date=d/host=h/r-0000.parquet",
            "raw/date=d/hour=1/group=1/host=h/r.json",
            "raw/date=d/hour=1/group=1/host=h/.r.parquet",
            "raw/date=d/hour=1/host=h/group=1/r.parquet",
            "raw/date=d/hour=1/group=1/host=h/more/r.parquet",
            "raw/r.parquet",
        ] {
            assert_eq!(place_of(Path::new(within)), None, "{within}");
        }
    }
}
