use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::dataset::{bundle::Groups, store::LocalDirectory};

const LONG: Duration = Duration::from_secs(3600);

/// A directory that counts, and whose files have their sizes as tags.
#[derive(Debug)]
struct Counted {
    directory: LocalDirectory,
    lists: AtomicUsize,
    opened: AtomicUsize,
}

impl Store for Counted {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn list(&self, table: &str, most: usize) -> ReadResult<Vec<PathBuf>> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.directory.list(table, most)
    }

    fn list_bundles(&self, part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        self.directory.list_bundles(part, most)
    }

    fn open(&self, file: &Path) -> ReadResult<Object> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        self.directory.open(file)
    }

    fn stamp(&self, file: &Path) -> ReadResult<Stamp> {
        let size_bytes = self.directory.stamp(file)?.size_bytes;
        Ok(Stamp { size_bytes, tag: Some(size_bytes.to_string()) })
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        self.directory.publish(folder, name, bytes)
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published> {
        self.directory.publish_new(folder, name, bytes)
    }

    fn remove(&self, file: &Path) -> Result<()> {
        self.directory.remove(file)
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        self.directory.find(folder, name)
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim> {
        self.directory.claim(kind)
    }
}

fn counted(root: &Path) -> Arc<Counted> {
    let folder = root.join("runs/date=2026-03-01/host=a");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("a-1-0000.parquet"), "first").unwrap();
    let directory = LocalDirectory::new(root, None);
    Arc::new(Counted { directory, lists: AtomicUsize::new(0), opened: AtomicUsize::new(0) })
}

fn kept(inner: &Arc<Counted>, known_for: Duration) -> Kept {
    Kept::new(Arc::clone(inner) as Arc<dyn Store>, known_for, Arc::new(SmallFiles::new(1 << 20)))
}

#[test]
fn many_who_ask_for_a_part_at_once_get_one_listing_and_others_their_own() {
    let root = tempfile::tempdir().unwrap();
    let inner = counted(root.path());
    let store = kept(&inner, LONG);
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..20).map(|_| scope.spawn(|| store.list("runs", 10).unwrap())).collect();
        assert!(asked.into_iter().all(|one| one.join().unwrap().len() == 1));
    });
    assert_eq!(inner.lists.load(Ordering::SeqCst), 1);
    let part = Part { until: Some("2026-01-01".to_owned()), ..Part::default() };
    drop(store.list_part(&["runs"], &part, 10).unwrap());
    drop(store.list("methods", 10).unwrap());
    assert_eq!(inner.lists.load(Ordering::SeqCst), 3);
    // Too many for this one, which is no answer for the others.
    assert!(store.list("runs", 0).is_err() && store.list("runs", 0).is_err());
    assert_eq!(inner.lists.load(Ordering::SeqCst), 5);
    assert_eq!(store.listings.lock().unwrap().len(), 4);
    // Bundles are listed apart from tables, and as seldom.
    let bundle = "raw/date=2026-03-01/hour=23/group=00/host=a/a-3.parquet";
    std::fs::create_dir_all(root.path().join(bundle).parent().unwrap()).unwrap();
    std::fs::write(root.path().join(bundle), "").unwrap();
    for _ in 0..2 {
        assert_eq!(store.list_bundles(&Part::default(), 10).unwrap(), [PathBuf::from(bundle)]);
    }
    assert_eq!(inner.lists.load(Ordering::SeqCst), 6);
}

#[test]
fn a_listing_is_made_again_when_its_time_is_over() {
    let root = tempfile::tempdir().unwrap();
    let inner = counted(root.path());
    let store = kept(&inner, Duration::ZERO);
    assert_eq!(store.list("runs", 10).unwrap().len(), 1);
    std::fs::write(root.path().join("runs/date=2026-03-01/host=a/a-2-0000.parquet"), "").unwrap();
    assert_eq!(store.list("runs", 10).unwrap().len(), 2);
    assert_eq!(inner.lists.load(Ordering::SeqCst), 2);
    assert!(store.listings.lock().unwrap().is_empty(), "what is too old takes no memory");
}

#[test]
fn a_small_file_is_read_once_until_it_changes() {
    let root = tempfile::tempdir().unwrap();
    let inner = counted(root.path());
    let store = kept(&inner, LONG);
    let file = store.list("runs", 10).unwrap().pop().unwrap();
    let content = || store.open(&file).unwrap().read_all().unwrap();
    assert_eq!((content(), content()), (b"first".to_vec(), b"first".to_vec()));
    assert_eq!(inner.opened.load(Ordering::SeqCst), 1);
    std::fs::write(root.path().join(&file), "second").unwrap();
    assert_eq!(content(), b"second");
    assert_eq!(inner.opened.load(Ordering::SeqCst), 2);
}

#[test]
fn groups_of_hosts_are_asked_for_as_seldom_as_listings() {
    let root = tempfile::tempdir().unwrap();
    let inner = counted(root.path());
    let groups = |store: Kept| {
        let store: Arc<dyn Store> = Arc::new(store);
        let read = || Groups::read(&store).unwrap();
        let found = [read(), read()];
        assert_eq!(found[0], found[1]);
        found[0].clone()
    };
    let opened = || inner.opened.load(Ordering::SeqCst);
    assert_eq!((groups(kept(&inner, LONG)), opened()), (Groups::default(), 1));
    std::fs::write(root.path().join(FLEET), r#"{"format":1,"groups":[{"since":"2026-03-02","n":4}]}"#).unwrap();
    assert_ne!(groups(kept(&inner, LONG)), Groups::default());
    assert_eq!(opened(), 2);
    drop(groups(kept(&inner, Duration::ZERO)));
    assert_eq!(opened(), 4);
}

#[test]
fn a_directory_is_not_kept_and_a_bucket_is_as_long_as_its_keeper_lives() {
    assert!(keep(Path::new("/srv/data"), LONG, 0).unwrap().is_none());
    let root = tempfile::tempdir().unwrap();
    let place = Path::new("s3://kept-in-a-test/energy");
    let inner = counted(root.path());
    let open = || super::kept(place, || Ok(Arc::clone(&inner) as Arc<dyn Store>)).unwrap();
    let list = || drop(open().list("runs", 10).unwrap());
    let lists = || inner.lists.load(Ordering::SeqCst);
    list();
    list();
    assert_eq!(lists(), 2, "nobody keeps it");
    let keeper = keep(place, LONG, 0).unwrap().unwrap();
    list();
    list();
    assert_eq!(lists(), 3);
    keeper.forget();
    list();
    assert_eq!(lists(), 4);
    drop(keeper);
    list();
    list();
    assert_eq!(lists(), 6);
}
