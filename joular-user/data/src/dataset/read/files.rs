//! Which runs a data set holds, and which files belong to each.
//!
//! `TABLE/date=DATE/host=HOST/RUN-NNNN.parquet`: the files of one number were
//! written together and hold the same windows; `runs` has one file per run.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::dataset::error::{DataSetError, Result};

/// Tables that a flush writes, in its order.
pub(crate) const TABLES: [&str; 9] =
    ["processes", "stacks", "branches", "methods", "quality", "jvms", "threads", "weights", "windows"];

/// Files of one table, as many as ten hosts write in a year; bounds a hostile directory.
const MAX_FILES: usize = 10_000_000;

/// Where a file stands within the data set: its date's and host's folders, and
/// its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) date: String,
    host: String,
    pub(crate) name: String,
}

impl Place {
    pub(crate) fn folder(&self, table: &str) -> PathBuf {
        [table, &self.date, &self.host].iter().collect()
    }

    /// Whether both are of one date and host.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        (&self.date, &self.host) == (&other.date, &other.host)
    }

    /// The run's file of this number.
    pub(crate) fn numbered(&self, number: usize) -> String {
        format!("{}-{number:04}.parquet", self.run().1)
    }

    fn run(&self) -> (String, String) {
        let run = self.name.rsplit_once('-').map_or(self.name.as_str(), |(run, _)| run);
        (self.host.clone(), run.to_owned())
    }
}

/// The files of one flush.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    files: BTreeMap<&'static str, PathBuf>,
}

impl Part {
    pub(crate) fn file(&self, table: &str) -> Option<&Path> {
        self.files.get(table).map(PathBuf::as_path)
    }
}

/// A run's files.
#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    pub(crate) row: PathBuf,
    /// Where the row is.
    pub(crate) place: Place,
    /// In the order in which they were written.
    pub(crate) parts: Vec<(Place, Part)>,
}

/// All runs of a data set, by host and name.
pub(crate) fn find(root: &Path) -> Result<Vec<RunFiles>> {
    fs::read_dir(root).map_err(|cause| DataSetError::Open { path: root.into(), cause })?;
    let mut parts: BTreeMap<(String, String), BTreeMap<Place, Part>> = BTreeMap::new();
    for table in TABLES {
        for (place, path) in table_files(root, table)? {
            parts.entry(place.run()).or_default().entry(place).or_default().files.insert(table, path);
        }
    }
    let mut runs = Vec::new();
    for (place, row) in table_files(root, "runs")? {
        let parts = parts.remove(&place.run()).unwrap_or_default();
        // By the number, not by date: a longer one is a later one.
        let mut parts: Vec<(Place, Part)> = parts.into_iter().collect();
        parts.sort_by(|(a, _), (b, _)| (a.name.len(), &a.name, &a.date).cmp(&(b.name.len(), &b.name, &b.date)));
        runs.push(RunFiles { row, place, parts });
    }
    if runs.is_empty() {
        return Err(DataSetError::NoRun { path: root.into() });
    }
    match parts.into_keys().next() {
        Some((host, run)) => Err(DataSetError::NoRunRow { path: root.into(), run: format!("{host}/{run}") }),
        None => Ok(runs),
    }
}

fn table_files(root: &Path, table: &str) -> Result<Vec<(Place, PathBuf)>> {
    let mut files = Vec::new();
    for (date, date_path) in entries(&root.join(table))? {
        for (host, host_path) in entries(&date_path)? {
            for (name, path) in entries(&host_path)? {
                if files.len() >= MAX_FILES {
                    return Err(DataSetError::TooManyFiles { path: root.join(table), most: MAX_FILES });
                }
                if name.ends_with(".parquet") {
                    files.push((Place { date: date.clone(), host: host.clone(), name }, path));
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

/// What a folder holds, hidden entries apart; nothing if there is no folder.
fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |cause| DataSetError::Io { path: folder.into(), cause };
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(cause) => return Err(failed(cause)),
    };
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry.map_err(failed)?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_told_apart_and_their_parts_are_in_order() {
        let root = tempfile::tempdir().unwrap();
        for file in [
            "runs/date=2026-03-01/host=a/a-1-0000.parquet",
            "runs/date=2026-03-01/host=b/a-1-0000.parquet",
            "windows/date=2026-03-02/host=a/a-1-10000.parquet",
            "windows/date=2026-03-01/host=a/a-1-9999.parquet",
            "threads/date=2026-03-01/host=a/a-1-9999.parquet",
            "threads/date=2026-03-01/host=a/.hidden.parquet",
            "windows/notes.txt",
            ".partial/x.parquet",
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let runs = find(root.path()).unwrap();
        let parts = |run: &RunFiles| {
            run.parts.iter().map(|(place, part)| (place.date.clone(), part.files.len())).collect::<Vec<_>>()
        };
        assert_eq!(runs.len(), 2);
        assert_eq!(parts(&runs[0]), [("date=2026-03-01".to_owned(), 2), ("date=2026-03-02".to_owned(), 1)]);
        assert_eq!(parts(&runs[1]), []);
    }

    #[test]
    fn files_without_their_runs_row_are_an_error() {
        let root = tempfile::tempdir().unwrap();
        for file in ["runs/date=d/host=a/a-1-0000.parquet", "methods/date=d/host=a/a-2-0000.parquet"] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let message = find(root.path()).unwrap_err().to_string();
        assert!(message.contains("host=a/a-2"), "{message}");
    }

    #[test]
    fn a_directory_without_a_run_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let message = find(root.path()).unwrap_err().to_string();
        assert!(message.contains("there is no run in it"), "{message}");
        let message = find(&root.path().join("absent")).unwrap_err().to_string();
        assert!(message.contains("name the directory that --output named"), "{message}");
    }
}
