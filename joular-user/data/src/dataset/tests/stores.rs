//! Tests a store that is not a directory, as object storage will be: what is written, read, audited
//! and reported there equals what a directory gives.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use bytes::Bytes;

use crate::{
    dataset::{
        DataSetError, ParquetOutput, audit,
        fixture::*,
        fixture_store::FailingStore,
        store::{Claim, ClaimKind, LocalDirectory, Object, Published, Store, StoredFile},
    },
    model::policy::Policy,
    output::OutputError,
    redact::Redaction,
    report::profile::{DataSet, Filter},
    rollup,
};

/// Files in memory, and whether a writer has a claim on them.
#[derive(Debug, Default)]
struct Memory {
    files: Mutex<BTreeMap<PathBuf, Bytes>>,
    writer: Arc<()>,
}

#[derive(Clone, Debug, Default)]
struct MemoryStore(Arc<Memory>);

impl MemoryStore {
    fn content(&self) -> Vec<(String, Vec<u8>)> {
        let files = self.0.files.lock().unwrap();
        files.iter().map(|(path, bytes)| (path.display().to_string(), bytes.to_vec())).collect()
    }
}

impl Store for MemoryStore {
    fn path(&self) -> &Path {
        Path::new("memory:")
    }

    fn list(&self, table: &str, _most: usize) -> Result<Vec<PathBuf>, DataSetError> {
        Ok(self.0.files.lock().unwrap().keys().filter(|path| path.starts_with(table)).cloned().collect())
    }

    fn open(&self, file: &Path) -> Result<Object, DataSetError> {
        let bytes = self.0.files.lock().unwrap()[file].clone();
        let size_bytes = bytes.len() as u64;
        Ok(Object::new(bytes, size_bytes))
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        self.0.files.lock().unwrap().insert(folder.join(name), Bytes::copy_from_slice(bytes));
        Ok(())
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published, OutputError> {
        if self.find(folder, name)?.is_some() {
            return Ok(Published::AlreadyThere);
        }
        self.publish(folder, name, bytes).map(|()| Published::Created)
    }

    fn remove(&self, file: &Path) -> Result<(), OutputError> {
        self.0.files.lock().unwrap().remove(file);
        Ok(())
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, OutputError> {
        let path = folder.join(name);
        Ok(self.0.files.lock().unwrap().contains_key(&path).then_some(path))
    }

    fn claim(&self, _kind: ClaimKind) -> Result<Claim, OutputError> {
        if Arc::strong_count(&self.0.writer) > 1 {
            return Err(OutputError::InUse { path: self.path().into(), pid: None });
        }
        Ok(Claim::new(Some(Arc::clone(&self.0.writer))))
    }
}

fn local(root: &Path) -> Arc<dyn Store> {
    Arc::new(LocalDirectory::new(root, None))
}

#[test]
fn another_store_holds_the_same_files_as_a_directory() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let memory = MemoryStore::default();
    let claim = memory.claim(ClaimKind::Write).unwrap();
    assert!(memory.claim(ClaimKind::Write).is_err(), "one run writes at a time");
    play(ParquetOutput::into_store(Box::new(memory.clone()), claim, FLUSH_NS), Policy::default(), RUN_ID);
    assert_eq!(memory.content(), files(root.path()));
    memory.claim(ClaimKind::Write).unwrap();

    let store: Arc<dyn Store> = Arc::new(memory);
    let audits = audit::of_store(&store).unwrap();
    assert!(audits[0].windows > 0 && audit::is_well(&audits), "{:?}", audits[0].told);
    let sum = |mut data: DataSet| {
        let mut sum = 0;
        data.scan(&Filter::default(), &mut |_, row| sum += row.energy.0).unwrap();
        sum
    };
    let from_directory = sum(DataSet::open(root.path(), &Filter::default()).unwrap());
    assert_eq!(sum(DataSet::of_store(&store, &Filter::default()).unwrap()), from_directory);
}

#[test]
fn what_reads_a_run_that_ends_just_then_has_all_its_files() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let late = || -> Arc<dyn Store> { Arc::new(FailingStore::with_late_files(root.path())) };
    let audits = audit::of_store(&late()).unwrap();
    assert!(audits[0].has_ended && audit::is_well(&audits), "{:?}", audits[0].told);
    let rolled_up = |store| {
        let to = MemoryStore::default();
        rollup::of_store(store, &to, 60 * SECOND, &Redaction::default()).unwrap();
        to.content()
    };
    assert_eq!(rolled_up(&late()), rolled_up(&local(root.path())));
}

#[test]
fn a_file_that_is_there_is_not_written_anew() {
    let root = tempfile::tempdir().unwrap();
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
    for store in [local(root.path()), memory] {
        let publish =
            |bytes: &[u8]| store.publish_new(Path::new("threads/date=d/host=h"), "r-0.parquet", bytes).unwrap();
        assert_eq!(publish(b"first"), Published::Created);
        assert_eq!(publish(b"second"), Published::AlreadyThere);
        let file = StoredFile::new(&store, "threads/date=d/host=h/r-0.parquet");
        assert_eq!(file.read_whole(100).unwrap(), b"first");
    }
    assert_eq!(std::fs::read_dir(root.path().join(".partial")).unwrap().count(), 0);
}

#[test]
fn of_many_that_write_a_new_file_at_once_one_does() {
    let root = tempfile::tempdir().unwrap();
    let publish = |content: u8| {
        let directory = LocalDirectory::new(root.path(), None);
        directory.publish_new(Path::new("threads/date=d/host=h"), "r-0.parquet", &[content; 100_000]).unwrap()
    };
    let outcomes: Vec<Published> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|content| scope.spawn(move || publish(content))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Published::Created).count(), 1);
    let content = std::fs::read(root.path().join("threads/date=d/host=h/r-0.parquet")).unwrap();
    assert!(content.len() == 100_000 && content.iter().all(|byte| *byte == content[0]));
    assert_eq!(std::fs::read_dir(root.path().join(".partial")).unwrap().count(), 0);
}

#[test]
fn what_a_killed_writer_left_is_in_nobodys_way() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join(".partial")).unwrap();
    std::fs::write(root.path().join(".partial/r-0.parquet"), "a part").unwrap();
    let directory = LocalDirectory::new(root.path(), None);
    let published = directory.publish_new(Path::new("threads/date=d/host=h"), "r-0.parquet", b"whole");
    assert_eq!(published.unwrap(), Published::Created);
}
