//! Unites the data sets of an experiment for those who read: each variant has one, in a folder beside
//! `experiment.json`, which names them all. Nothing is written through it.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use serde::Deserialize;

use super::{Claim, ClaimKind, LocalDirectory, Object, Published, Room, Store, StoredFile, place::Place};
use crate::{
    dataset::{
        column::Table as _,
        error::{DataSetError, Result as ReadResult},
        tables::Runs,
    },
    output::{OutputError, Result},
    text::escape,
};

/// The file in which an experiment keeps what it has done.
pub const EXPERIMENT: &str = "experiment.json";

const MAX_FILE_BYTES: u64 = 256 << 20;
/// Data sets that a message names.
const MAX_NAMED: usize = 8;

/// The data sets of an experiment. A file's path begins with the folder of its data set.
#[derive(Debug)]
pub(super) struct United {
    root: LocalDirectory,
    folders: BTreeSet<String>,
}

/// What is needed of the experiment's file.
#[derive(Deserialize)]
struct Log {
    variants: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    folder: String,
}

impl United {
    /// The experiment in a directory; `None` if there is none, or the directory has a data set of its own.
    ///
    /// # Errors
    /// If the directory or the experiment's file cannot be read.
    pub(super) fn of(root: &LocalDirectory) -> ReadResult<Option<Self>> {
        let path = root.path().join(EXPERIMENT);
        if !path.is_file() || !root.list(Runs::NAME, usize::MAX)?.is_empty() {
            return Ok(None);
        }
        let store: Arc<dyn Store> = Arc::new(root.clone());
        let text = StoredFile::new(&store, EXPERIMENT).read_whole(MAX_FILE_BYTES)?;
        let damaged = |what: &str| {
            let problem = format!("{what}: name one of the directories beside it");
            DataSetError::Damaged { path: path.clone(), problem }
        };
        let log: Log = serde_json::from_slice(&text).map_err(|error| {
            damaged(&format!("it does not list an experiment's data sets: {}", escape(&error.to_string())))
        })?;
        let folders: BTreeSet<String> = log.variants.into_iter().map(|variant| variant.folder).collect();
        if !folders.iter().all(|folder| is_name(folder)) {
            return Err(damaged("it lists a data set that is not beside it"));
        }
        Ok(Some(Self { root: root.clone(), folders }))
    }

    fn directories(&self) -> impl Iterator<Item = (&String, LocalDirectory)> {
        self.folders.iter().map(|folder| (folder, LocalDirectory::new(&self.root.path().join(folder), None)))
    }

    fn refused(&self, action: &'static str) -> OutputError {
        let there = self.directories().map(|(_, directory)| directory).filter(|directory| directory.path().is_dir());
        let mut named: Vec<_> = there.map(|directory| escape(&directory.path().display().to_string())).collect();
        let more = named.len().saturating_sub(MAX_NAMED);
        named.truncate(MAX_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let advice = match named.as_slice() {
            [] => "there is none yet".to_owned(),
            named => format!("name one of them: {}{more}", named.join(", ")),
        };
        OutputError::Experiment { action, path: self.root.path().into(), advice }
    }
}

/// Whether it names something in a folder, and leads nowhere else.
fn is_name(folder: &str) -> bool {
    let mut parts = Path::new(folder).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

/// For what changes one data set.
pub(super) fn refuse(action: &'static str, directory: &LocalDirectory) -> Result<()> {
    match United::of(directory) {
        Ok(Some(united)) => Err(united.refused(action)),
        // What cannot be read is not known to be an experiment.
        Ok(None) | Err(_) => Ok(()),
    }
}

/// For what needs a single data set. A bucket has no experiments.
///
/// # Errors
/// If `root` is the directory of an experiment, or not a place.
pub fn refuse_experiment(action: &'static str, root: &Path) -> Result<()> {
    match Place::of(root)? {
        Place::Directory(root) => refuse(action, &LocalDirectory::new(&root, None)),
        Place::Bucket(_) => Ok(()),
    }
}

impl Store for United {
    fn path(&self) -> &Path {
        self.root.path()
    }

    fn list(&self, table: &str, most: usize) -> ReadResult<Vec<PathBuf>> {
        let mut files = Vec::new();
        for (folder, directory) in self.directories() {
            let listed = directory.list(table, most.saturating_sub(files.len()))?;
            files.extend(listed.into_iter().map(|file| Path::new(folder).join(file)));
        }
        Ok(files)
    }

    fn data_set_of<'a>(&self, file: &'a Path) -> (Option<&'a Path>, &'a Path) {
        let mut parts = file.components();
        let folder = parts.next().map(|folder| Path::new(folder.as_os_str()));
        (folder, parts.as_path())
    }

    fn open(&self, file: &Path) -> ReadResult<Object> {
        self.root.open(file)
    }

    fn publish(&self, _folder: &Path, _name: &str, _bytes: &[u8]) -> Result<()> {
        Err(self.refused("writing to"))
    }

    fn publish_new(&self, _folder: &Path, _name: &str, _bytes: &[u8]) -> Result<Published> {
        Err(self.refused("writing to"))
    }

    fn remove(&self, _file: &Path) -> Result<()> {
        Err(self.refused("removing from"))
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        self.root.find(folder, name)
    }

    fn room(&self) -> Option<Room> {
        self.root.room()
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim> {
        match kind {
            ClaimKind::Write => Err(self.refused("writing to")),
            ClaimKind::Read => {
                let claims = self.directories().map(|(_, directory)| directory.claim(kind));
                Ok(Claim::new(Some(claims.collect::<Result<Vec<_>>>()?)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, fs};

    use super::*;
    use crate::{
        dataset::{
            OutputDirectory, audit, compact,
            fixture::write_as,
            forget,
            read::{files, run_row},
            store,
        },
        model::policy::Policy,
    };

    /// An experiment of these variants, each with a run of its name.
    fn experiment(variants: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for variant in variants {
            write_as(&root.path().join(variant), Policy::default(), variant);
        }
        let variants: Vec<_> = variants.iter().map(|folder| serde_json::json!({ "folder": folder })).collect();
        let log = serde_json::json!({ "version": 1, "variants": variants }).to_string();
        fs::write(root.path().join(EXPERIMENT), log).unwrap();
        root
    }

    #[test]
    fn all_runs_are_read_as_those_of_one_data_set_and_their_files_can_be_opened() {
        let root = experiment(&["b", "runs", "a"]);
        let store = store::open(root.path()).unwrap();
        let mut found = Vec::new();
        for run in files::find(&store).unwrap() {
            found.push((
                run_row::read(&run.row).unwrap().info.run_id,
                run.row.data_set().unwrap().display().to_string(),
            ));
            assert!(!run.parts.is_empty());
            for file in store.list("windows", 1000).unwrap() {
                assert!(root.path().join(&file).is_file(), "{}", file.display());
                store.open(&file).unwrap();
            }
        }
        assert_eq!(found, ["a", "b", "runs"].map(|name| (name.to_owned(), name.to_owned())));
        let audits = audit::run(root.path()).unwrap();
        assert!(audits.len() == 3 && audit::is_well(&audits));
    }

    #[test]
    fn a_damaged_file_is_told_by_its_real_path() {
        let root = experiment(&["a"]);
        let store = store::open(root.path()).unwrap();
        let file = root.path().join(&store.list("runs", 1).unwrap()[0]);
        fs::write(&file, "cut").unwrap();
        let error = audit::run(root.path()).unwrap_err().to_string();
        assert!(error.contains(file.to_str().unwrap()), "{error}");
        let error = store.list("windows", 0).unwrap_err().to_string();
        assert!(error.contains(root.path().join("a/windows").to_str().unwrap()), "{error}");
    }

    #[test]
    fn what_would_change_it_names_its_data_sets() {
        let root = experiment(&["a", "b"]);
        let path = root.path();
        let kept = BTreeSet::new();
        let refusals = [
            OutputDirectory::create(path, None).unwrap_err().to_string(),
            OutputDirectory::create_lasting(path, None).unwrap_err().to_string(),
            compact::in_place(path).unwrap_err().to_string(),
            forget::keep_only(path, &kept).unwrap_err().to_string(),
            refuse_experiment("shipping", path).unwrap_err().to_string(),
            store::open(path).unwrap().publish(Path::new("runs"), "x", b"").unwrap_err().to_string(),
        ];
        for error in refusals {
            for folder in ["a", "b"] {
                assert!(error.contains(path.join(folder).to_str().unwrap()), "{error}");
            }
        }
        let left: BTreeSet<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, BTreeSet::from(["a", "b", EXPERIMENT].map(OsString::from)));
        let elsewhere = tempfile::tempdir().unwrap();
        let copy = elsewhere.path().join("copy");
        compact::beside(path, &copy, None).unwrap();
        assert_eq!(files::find(&store::open(&copy).unwrap()).unwrap().len(), 2);
    }

    #[test]
    fn a_data_set_of_which_a_run_is_written_is_claimed() {
        let root = experiment(&["a", "b"]);
        let store = store::open(root.path()).unwrap();
        let claim = store.claim(ClaimKind::Read).unwrap();
        assert!(matches!(OutputDirectory::create(&root.path().join("b"), None), Err(OutputError::InUse { .. })));
        drop(claim);
        let _writer = OutputDirectory::create(&root.path().join("b"), None).unwrap();
        assert!(matches!(store.claim(ClaimKind::Read), Err(OutputError::InUse { .. })));
    }

    #[test]
    fn a_directory_with_a_data_set_of_its_own_is_that_data_set() {
        let root = experiment(&["a"]);
        let log = fs::read(root.path().join(EXPERIMENT)).unwrap();
        fs::remove_file(root.path().join(EXPERIMENT)).unwrap();
        write_as(root.path(), Policy::default(), "own");
        fs::write(root.path().join(EXPERIMENT), log).unwrap();
        let runs = files::find(&store::open(root.path()).unwrap()).unwrap();
        assert!(runs.len() == 1 && runs[0].row.data_set().is_none());
        OutputDirectory::create(root.path(), None).unwrap();
    }

    #[test]
    fn a_file_that_lists_no_data_sets_or_leads_elsewhere_is_refused() {
        for (text, expected) in [
            ("", "does not list"),
            ("[1]", "does not list"),
            (r#"{"variants": [{"folder": "../x"}]}"#, "not beside it"),
            (r#"{"variants": [{"folder": "/etc"}]}"#, "not beside it"),
            (r#"{"variants": [{"folder": ""}]}"#, "not beside it"),
            (r#"{"variants": [{"folder": "."}]}"#, "not beside it"),
        ] {
            let root = tempfile::tempdir().unwrap();
            fs::write(root.path().join(EXPERIMENT), text).unwrap();
            let error = store::open(root.path()).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(EXPERIMENT), "{text}: {error}");
        }
    }

    #[test]
    fn an_experiment_that_has_not_run_has_no_run() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(EXPERIMENT), r#"{"variants": [{"folder": "a"}]}"#).unwrap();
        let store = store::open(root.path()).unwrap();
        assert!(matches!(files::find(&store), Err(DataSetError::NoRun { .. })));
        let error = refuse_experiment("shipping", root.path()).unwrap_err().to_string();
        assert!(error.contains("there is none yet"), "{error}");
    }
}
