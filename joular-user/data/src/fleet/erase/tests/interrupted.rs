//! Tests that an erasure may be interrupted after any change, and that two may be at it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use super::{super::Stores, Erased, HOUR_US, all_files, assert_forgotten, erase, erased, of, place, shop};
use crate::{
    dataset::{
        error::{DataSetError, Result},
        store::{Claim, ClaimKind, LocalDirectory, Object, Part, Published, Store},
    },
    fleet::{
        Tier,
        tests::{NOW, assert_same, compacted},
    },
    model::units::UnixMicros,
    output::OutputError,
};

/// A store that takes so many changes and then none, together with others.
#[derive(Debug)]
struct Interrupted {
    directory: LocalDirectory,
    left: Arc<AtomicU64>,
}

impl Interrupted {
    fn change<T>(&self, change: impl FnOnce() -> Result<T, OutputError>) -> Result<T, OutputError> {
        let one_less = |left: u64| left.checked_sub(1);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => change(),
            Err(_) => {
                let source = std::io::Error::other("the bucket is away");
                Err(OutputError::Io { action: "writing", path: self.directory.path().to_owned(), source })
            }
        }
    }
}

impl Store for Interrupted {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn list(&self, table: &str, most: usize) -> Result<Vec<PathBuf>> {
        self.directory.list(table, most)
    }

    fn list_part(&self, tables: &[&str], part: &Part, most: usize) -> Result<Vec<PathBuf>> {
        self.directory.list_part(tables, part, most)
    }

    fn list_bundles(&self, part: &Part, most: usize) -> Result<Vec<PathBuf>> {
        self.directory.list_bundles(part, most)
    }

    fn open(&self, file: &Path) -> Result<Object> {
        self.directory.open(file)
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        self.change(|| self.directory.publish(folder, name, bytes))
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published, OutputError> {
        self.change(|| self.directory.publish_new(folder, name, bytes))
    }

    fn remove(&self, file: &Path) -> Result<(), OutputError> {
        self.change(|| self.directory.remove(file))
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, OutputError> {
        self.directory.find(folder, name)
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim, OutputError> {
        self.directory.claim(kind)
    }
}

fn interrupted(root: &Path, left: u64) -> Result<Erased> {
    let left = Arc::new(AtomicU64::new(left));
    let store = |root: &Path| -> Arc<dyn Store> {
        Arc::new(Interrupted { directory: LocalDirectory::new(root, None), left: Arc::clone(&left) })
    };
    let tiers = Tier::ALL.map(|tier| (tier, store(&root.join(tier.folder())))).to_vec();
    Stores { place: store(root), tiers }.erase(&shop(), &std::env::temp_dir(), NOW)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn an_interruption_anywhere_leaves_what_a_repetition_makes_whole() {
    let original = place();
    compacted(original.path());
    let undisturbed = tempfile::tempdir().unwrap();
    copy(original.path(), undisturbed.path());
    erased(undisturbed.path(), &shop());
    let expected = all_files(undisturbed.path());
    for left in 0.. {
        let disturbed = tempfile::tempdir().unwrap();
        copy(original.path(), disturbed.path());
        match interrupted(disturbed.path(), left) {
            Ok(_) => {
                assert!(left > 12, "{left}");
                break;
            }
            Err(error) => assert!(matches!(error, DataSetError::Output(_)), "{left}: {error}"),
        }
        // Claims of the one that was interrupted have ended.
        let later = UnixMicros(NOW.0 + HOUR_US);
        let done = erase(&of(disturbed.path()), &shop(), &std::env::temp_dir(), later).unwrap();
        assert!(!done.is_incomplete(), "{left}: {done:?}");
        assert_same(&all_files(disturbed.path()), &expected);
    }
}

#[test]
fn two_at_once_write_the_same() {
    let place = place();
    compacted(place.path());
    let undisturbed = tempfile::tempdir().unwrap();
    copy(place.path(), undisturbed.path());
    erased(undisturbed.path(), &shop());
    let root = place.path();
    thread::scope(|scope| {
        let both = [0, 1].map(|_| scope.spawn(|| erase(&of(root), &shop(), &std::env::temp_dir(), NOW).unwrap()));
        for one in both {
            let done = one.join().unwrap();
            assert_eq!(done.left_out, Vec::<String>::new());
        }
    });
    assert_same(&all_files(root), &all_files(undisturbed.path()));
    assert_forgotten(root);
}

#[test]
fn who_comes_second_records_what_is_asked_for_and_leaves_it_to_the_first() {
    let place = place();
    let before = all_files(place.path());
    let store = of(place.path()).open().unwrap();
    for (age_us, is_left) in [(60_000_000, true), (6 * 60_000_000, false)] {
        let claim = format!("{{\"since_us\":{}}}", NOW.0 - age_us);
        store.publish(Path::new("claims/erase"), "claim.json", claim.as_bytes()).unwrap();
        let done = erase(&of(place.path()), &shop(), &std::env::temp_dir(), NOW).unwrap();
        assert_eq!((done.is_left_to_another, done.record.is_some()), (is_left, is_left), "{done:?}");
        assert_eq!(all_files(place.path()) == before, is_left);
    }
    assert_forgotten(place.path());
    assert!(!place.path().join("claims/erase/claim.json").exists(), "it has ended");
}
