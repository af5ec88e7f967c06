//! Finds the runs of a data set and the files of each ([`crate::dataset::layout`]).

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::run_row::{self, RunRow};
use crate::dataset::{
    bundle,
    column::Table,
    error::{DataSetError, Result},
    layout::{FilePlace, RunName},
    store::{Hour, Part, Store, StoredFile},
    tables::{Runs, TABLES},
};

/// Files that are listed at most, of those that the filter allows by their folders: their names take some 2 GB then.
pub(crate) const MAX_FILES: usize = 10_000_000;

/// The files of one flush.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlushFiles {
    files: BTreeMap<&'static str, StoredFile>,
}

impl FlushFiles {
    pub(crate) fn of(files: impl IntoIterator<Item = (&'static str, StoredFile)>) -> Self {
        Self { files: files.into_iter().collect() }
    }

    pub(crate) fn file<T: Table>(&self) -> Option<&StoredFile> {
        self.named(T::NAME)
    }

    pub(crate) fn named(&self, table: &str) -> Option<&StoredFile> {
        self.files.get(table)
    }
}

/// A run's files.
#[derive(Clone, Debug)]
pub(crate) struct RunFiles {
    pub(crate) row: StoredFile,
    /// Place of the run's row.
    pub(crate) place: FilePlace,
    /// In the order in which they were written.
    pub(crate) parts: Vec<(FilePlace, FlushFiles)>,
}

impl RunFiles {
    /// The first and the last date of which it has windows. A run without any has that of its start.
    pub(crate) fn dates(&self) -> (&str, &str) {
        let dates = || self.parts.iter().map(|(place, _)| place.date());
        let start = self.place.date();
        (dates().min().unwrap_or(start), dates().max().unwrap_or(start))
    }

    /// All of its files, that with its row first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &StoredFile> {
        [&self.row].into_iter().chain(self.parts.iter().flat_map(|(_, part)| part.files.values()))
    }

    /// Its files of these tables, table by table.
    pub(crate) fn of<'a>(&'a self, tables: &'a [&str]) -> impl Iterator<Item = &'a StoredFile> {
        tables.iter().flat_map(|table| self.parts.iter().filter_map(|(_, part)| part.named(table)))
    }

    /// The hour that a bundle's folders say it began in.
    pub(crate) fn hour(&self) -> Option<Hour> {
        let mut folders = self.row.within().iter().skip(1).map(|folder| folder.to_str());
        Hour::of_folders(folders.next()??, folders.next()??)
    }

    /// Whether it is one file with all tables.
    pub(crate) const fn is_bundle(&self) -> bool {
        self.row.table().is_some()
    }

    /// Whether one of its files has this name for messages.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.all().any(|file| file.path() == path)
    }

    /// What is wrong with files that no row belongs to.
    pub(crate) fn no_row(&self, store: &Arc<dyn Store>) -> DataSetError {
        let (host, run) = self.place.run();
        DataSetError::NoRunRow { path: store.path().into(), run: format!("{host}/{run}") }
    }
}

/// What a data set has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) runs: Vec<RunFiles>,
    /// Files of runs whose row is not there: the first of them stands in its place.
    pub(crate) without_row: Vec<RunFiles>,
}

/// All runs of a data set, by host and name.
///
/// # Errors
/// If there is none, a run has files but no row, or the store cannot be listed.
pub(crate) fn find(store: &Arc<dyn Store>) -> Result<Vec<RunFiles>> {
    let Found { runs, without_row } = find_all(store, &Part::default())?;
    without_row.first().map_or(Ok(runs), |run| Err(run.no_row(store)))
}

/// The same of a part of the data set, with files that no row belongs to. Of a run that is both a bundle and files of tables,
/// the bundle counts: it is whole, and the others may not be.
///
/// # Errors
/// If there is no run, or the store cannot be listed.
pub(crate) fn find_all(store: &Arc<dyn Store>, part: &Part) -> Result<Found> {
    found(store, part, false)
}

/// The same with all files: a run that is both is there twice.
///
/// # Errors
/// As [`find_all`].
pub(crate) fn find_each(store: &Arc<dyn Store>, part: &Part) -> Result<Found> {
    found(store, part, true)
}

fn found(store: &Arc<dyn Store>, part: &Part, wants_both: bool) -> Result<Found> {
    let tables: Vec<&str> = [Runs::NAME].into_iter().chain(TABLES).collect();
    let mut rows: Vec<(FilePlace, StoredFile)> = Vec::new();
    let mut parts: BTreeMap<RunName, BTreeMap<FilePlace, FlushFiles>> = BTreeMap::new();
    for within in store.list_part(&tables, part, MAX_FILES)? {
        let Some((table, place)) = place_of(store, &within) else { continue };
        let file = StoredFile::new(store, within);
        match TABLES.into_iter().find(|known| *known == table) {
            Some(table) => {
                drop(parts.entry(place.run()).or_default().entry(place).or_default().files.insert(table, file))
            }
            None => rows.push((place, file)),
        }
    }
    let bundles = bundle::found(store, part)?;
    rows.retain(|(place, _)| wants_both || !bundles.contains_key(&place.run()));
    parts.retain(|run, _| wants_both || !bundles.contains_key(run));
    rows.extend(earlier_rows(store, part, &rows, &parts)?);
    let mut runs: Vec<RunFiles> = bundles.into_values().collect();
    for (place, row) in rows {
        let parts = in_order(parts.remove(&place.run()).unwrap_or_default());
        runs.push(RunFiles { row, place, parts });
    }
    runs.sort_by(|a, b| a.place.cmp(&b.place));
    if runs.is_empty() && !((part.is_narrow() || part.services.is_some()) && has_run(store)?) {
        return Err(DataSetError::NoRun { path: store.path().into() });
    }
    let of_parts = |parts| {
        let parts = in_order(parts);
        let (place, first) = parts.first()?;
        Some(RunFiles { row: first.files.values().next()?.clone(), place: place.clone(), parts })
    };
    Ok(Found { runs, without_row: parts.into_values().filter_map(of_parts).collect() })
}

/// The same of several parts, each run once.
///
/// # Errors
/// As [`find_all`].
pub(crate) fn find_parts(store: &Arc<dyn Store>, parts: &[Part]) -> Result<Found> {
    if let [part] = parts {
        return find_all(store, part);
    }
    let mut known = BTreeSet::new();
    let mut all = Found::default();
    for part in parts {
        let mut found = find_all(store, part)?;
        found.runs.retain(|run| known.insert(run.place.clone()));
        found.without_row.retain(|run| known.insert(run.place.clone()));
        all.runs.append(&mut found.runs);
        all.without_row.append(&mut found.without_row);
    }
    all.runs.sort_by(|a, b| a.place.cmp(&b.place));
    Ok(all)
}

/// Whether there is a run anywhere in the data set.
pub(crate) fn has_run(store: &Arc<dyn Store>) -> Result<bool> {
    match store.list(Runs::NAME, 1) {
        Ok(rows) => Ok(!rows.is_empty() || bundle::has_any(store)?),
        Err(DataSetError::TooManyFiles { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Rows of runs that began before the part of a data set that was listed, and go on in it.
fn earlier_rows(
    store: &Arc<dyn Store>,
    part: &Part,
    rows: &[(FilePlace, StoredFile)],
    parts: &BTreeMap<RunName, BTreeMap<FilePlace, FlushFiles>>,
) -> Result<Vec<(FilePlace, StoredFile)>> {
    let known: HashSet<RunName> = rows.iter().map(|(place, _)| place.run()).collect();
    let missing: HashSet<&RunName> = parts.keys().filter(|run| !known.contains(*run)).collect();
    if part.since.is_none() || missing.is_empty() {
        return Ok(Vec::new());
    }
    let hosts: BTreeSet<String> = missing.iter().map(|(host, _)| host.clone()).collect();
    let hosts = Some(hosts.into_iter().collect());
    let earlier = Part { since: None, until: part.since.clone(), hosts, ..Part::default() };
    let listed = store.list_part(&[Runs::NAME], &earlier, MAX_FILES)?.into_iter();
    let row = |within: PathBuf| Some((place_of(store, &within)?.1, StoredFile::new(store, within)));
    Ok(listed.filter_map(row).filter(|(place, _)| missing.contains(&place.run())).collect())
}

/// In the order in which they were written.
fn in_order(parts: BTreeMap<FilePlace, FlushFiles>) -> Vec<(FilePlace, FlushFiles)> {
    let mut parts: Vec<(FilePlace, FlushFiles)> = parts.into_iter().collect();
    parts.sort_by(|(a, _), (b, _)| a.order().cmp(&b.order()));
    parts
}

/// All runs with their rows. The rows are read before the files are listed, so a run that has ended by its row has
/// all its files here, also while a recording goes on. A run that begins or is removed meanwhile is left out.
pub(crate) fn find_with_rows(store: &Arc<dyn Store>) -> Result<Vec<(RunRow, RunFiles)>> {
    let mut read = BTreeMap::new();
    for (name, file) in rows(store)? {
        match run_row::read(&file) {
            Ok(row) => drop(read.insert(name, row)),
            Err(error) if error.is_gone() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(find(store)?.into_iter().filter_map(|files| Some((read.remove(&files.place.run())?, files))).collect())
}

/// All runs, by host and name, with the files of their rows; other files are those of bundles only.
pub(crate) fn rows_alone(store: &Arc<dyn Store>) -> Result<Vec<RunFiles>> {
    let bundles = bundle::found(store, &Part::default())?;
    let row = |within: PathBuf| {
        let (_, place) = place_of(store, &within)?;
        let row = StoredFile::new(store, within);
        (!bundles.contains_key(&place.run())).then_some(RunFiles { row, place, parts: Vec::new() })
    };
    let mut runs: Vec<RunFiles> = store.list(Runs::NAME, MAX_FILES)?.into_iter().filter_map(row).collect();
    runs.extend(bundles.into_values());
    runs.sort_by(|a, b| a.place.cmp(&b.place));
    Ok(runs)
}

/// The files with the rows of all runs, by host and name.
pub(crate) fn rows(store: &Arc<dyn Store>) -> Result<BTreeMap<RunName, StoredFile>> {
    Ok(rows_alone(store)?.into_iter().map(|run| (run.place.run(), run.row)).collect())
}

/// The table of a file and its place in it.
fn place_of(store: &Arc<dyn Store>, within: &Path) -> Option<(String, FilePlace)> {
    let within = store.data_set_of(within).1;
    Some((within.iter().next()?.to_str()?.to_owned(), FilePlace::of(within)?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::dataset::store::open as local_store;

    fn local(root: &Path) -> Arc<dyn Store> {
        local_store(root).unwrap()
    }

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
        let runs = find(&local(root.path())).unwrap();
        let parts = |run: &RunFiles| {
            run.parts.iter().map(|(place, part)| (place.folder("t"), part.files.len())).collect::<Vec<_>>()
        };
        assert_eq!(runs.len(), 2);
        assert_eq!(parts(&runs[0]), [("t/date=2026-03-01/host=a".into(), 2), ("t/date=2026-03-02/host=a".into(), 1)]);
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
        let message = find(&local(root.path())).unwrap_err().to_string();
        assert!(message.contains("host=a/a-2"), "{message}");
    }

    #[test]
    fn a_directory_without_a_run_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let message = find(&local(root.path())).unwrap_err().to_string();
        assert!(message.contains("there is no run in it"), "{message}");
        let message = local_store(&root.path().join("absent")).unwrap_err().to_string();
        assert!(message.contains("name the directory that --output named"), "{message}");
    }
}
