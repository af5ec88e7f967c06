//! Tests one who is stopped while another one sums the same hour from newer sources, and goes on then.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use super::{
    Made, Tier, compact,
    tests::{MINUTE_US, NOW, SPAN, assert_same, fleet, ship},
    tier::Opened,
    unit,
};
use crate::{
    dataset::{
        error::{DataSetError, Result},
        fixture,
        store::{Claim, ClaimKind, LocalDirectory, Object, Part, Published, SharedPlace, Stamp, Store},
    },
    model::units::UnixMicros,
    output::OutputError,
};

/// A directory in which something happens just before a file of this number is written.
struct Stalled {
    directory: LocalDirectory,
    left: AtomicUsize,
    meanwhile: Mutex<Box<dyn FnMut() + Send>>,
    has_happened: AtomicBool,
}

impl fmt::Debug for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stalled").finish_non_exhaustive()
    }
}

impl Stalled {
    fn writes(&self) {
        if self.has_happened.load(Ordering::Relaxed) {
            return;
        }
        if self.left.load(Ordering::Relaxed) > 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        self.has_happened.store(true, Ordering::Relaxed);
        (self.meanwhile.lock().unwrap())();
    }
}

impl Store for Stalled {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn list(&self, table: &str, most: usize) -> Result<Vec<PathBuf>> {
        self.directory.list(table, most)
    }

    fn list_bundles(&self, part: &Part, most: usize) -> Result<Vec<PathBuf>> {
        self.directory.list_bundles(part, most)
    }

    fn open(&self, file: &Path) -> Result<Object, DataSetError> {
        self.directory.open(file)
    }

    fn stamp(&self, file: &Path) -> Result<Stamp> {
        self.directory.stamp(file)
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        self.writes();
        self.directory.publish(folder, name, bytes)
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published, OutputError> {
        self.writes();
        self.directory.publish_new(folder, name, bytes)
    }

    fn publish_over(&self, folder: &Path, name: &str, bytes: &[u8], before: Option<&Stamp>) -> Result<Published> {
        self.writes();
        self.directory.publish_over(folder, name, bytes, before)
    }

    fn remove(&self, file: &Path) -> Result<(), OutputError> {
        self.directory.remove(file)
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, OutputError> {
        self.directory.find(folder, name)
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim, OutputError> {
        self.directory.claim(kind)
    }
}

fn shared(root: &Path) -> SharedPlace {
    SharedPlace::Directory { root: root.to_owned(), owner: None }
}

/// Of the same hours, when claims of now have ended.
fn compact_later(root: &Path) {
    compact(&shared(root), &SPAN, &std::env::temp_dir(), UnixMicros(NOW.0 + 31 * MINUTE_US)).unwrap();
}

#[test]
fn one_who_goes_on_after_a_long_stop_undoes_nothing() {
    let expected = fleet();
    ship(expected.path(), "d", "3", 0);
    compact_later(expected.path());
    let files = |root: &Path| fixture::files(&root.join(Tier::Minutes.folder()));
    let mut stops = 0;
    for left in 0.. {
        let place = fleet();
        let root = place.path().to_owned();
        let meanwhile = move || {
            ship(&root, "d", "3", 0);
            compact_later(&root);
        };
        let opened = Opened::new(&shared(place.path()), Tier::Minutes).unwrap();
        let stalled = Arc::new(Stalled {
            directory: LocalDirectory::new(&place.path().join(Tier::Minutes.folder()), None),
            left: AtomicUsize::new(left),
            meanwhile: Mutex::new(Box::new(meanwhile)),
            has_happened: AtomicBool::new(false),
        });
        let opened = Opened { to: stalled.clone(), ..opened };
        let mut made = Made::default();
        for of in Tier::Minutes.units(&SPAN) {
            unit::sum(&opened, of, &std::env::temp_dir(), NOW, &mut made).unwrap();
        }
        if !stalled.has_happened.load(Ordering::Relaxed) {
            break;
        }
        stops += 1;
        assert_same(&files(place.path()), &files(expected.path()));
        assert!(made.claimed <= 1, "{made:?}");
    }
    assert!(stops > 6, "{stops}");
}
