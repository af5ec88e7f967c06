//! Tests that runs arrive as one file each, whole or not at all, and are counted once beside files of tables.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use tempfile::TempDir;

use super::{
    Layout, Options, Passed, ShipError, Shipper,
    tests::{MINUTE, files, local, options, pass, recorded},
};
use crate::{
    dataset::{
        OutputDirectory, ParquetOutput, audit,
        bundle::FLEET,
        error::DataSetError,
        fixture::{self, FLUSH_NS},
        fixture_store::FailingStore,
        store::{Claim, ClaimKind, LocalDirectory, Object, Published, SharedPlace, Store},
    },
    events::Event,
    model::policy::Policy,
    output::OutputError,
    report::profile::{Filter, Profile},
};

fn shipper(from: &Path, to: Arc<dyn Store>, layout: Layout) -> Shipper {
    let options = Options { layout, ..options(MINUTE) };
    Shipper::of_recorded(local(from), SharedPlace::Store(to), options).unwrap()
}

fn bundled(from: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    pass(&mut shipper(from, local(to.path()), Layout::Bundles));
    to
}

fn names(root: &Path) -> Vec<String> {
    files(root).into_iter().map(|(name, _)| name).collect()
}

/// What reports and audits say of a data set.
fn said(root: &Path) -> (String, String) {
    let audits = audit::run(root).unwrap();
    assert!(audit::is_well(&audits), "{audits:?}");
    let profile = Profile::of_store(&local(root), &Filter::default(), None).unwrap();
    (format!("{audits:?}"), format!("{:?} {:?}", profile.entries, profile.overview.measured))
}

#[test]
fn a_run_is_one_file_with_all_that_the_files_of_its_tables_have() {
    let from = recorded(&["a-1", "a-2"]);
    let (bundles, tables) = (bundled(from.path()), tempfile::tempdir().unwrap());
    pass(&mut shipper(from.path(), local(tables.path()), Layout::Tables));
    let folder = "raw/date=2026-03-01/hour=23/group=00/host=node-1";
    assert_eq!(names(bundles.path()), ["a-1", "a-2"].map(|run| format!("{folder}/{run}.parquet")));
    assert_eq!(said(bundles.path()), said(tables.path()));
    // A reader who selects by time and host.
    let filter =
        Filter { hosts: crate::report::profile::Names::parse(&["node-1".to_owned()]).unwrap(), ..Filter::default() };
    let of = |root: &TempDir| Profile::of_store(&local(root.path()), &filter, None).unwrap().entries;
    assert!(!of(&bundles).is_empty() && of(&bundles) == of(&tables));
}

#[test]
fn what_has_arrived_is_not_shipped_again_and_does_no_harm_if_it_is() {
    let from = recorded(&["a-1"]);
    let to = bundled(from.path());
    let arrived = files(to.path());
    let again = || pass(&mut shipper(from.path(), local(to.path()), Layout::Bundles));
    assert_eq!(again(), Passed::default(), "after a restart");
    fs::remove_dir_all(from.path().join(".shipped")).unwrap();
    assert_eq!((again().runs, files(to.path()) == arrived), (1, true));
}

#[test]
fn a_run_that_lies_there_in_both_forms_counts_once() {
    let from = recorded(&["a-1", "a-2"]);
    let to = bundled(from.path());
    let expected = said(to.path());
    fs::remove_dir_all(from.path().join(".shipped")).unwrap();
    pass(&mut shipper(from.path(), local(to.path()), Layout::Tables));
    assert!(names(to.path()).iter().any(|name| name.starts_with("runs/")));
    assert_eq!(said(to.path()), expected);
    // One of them as a bundle, the other one as tables.
    for name in names(to.path()) {
        let is_gone = if name.starts_with("raw/") { name.contains("a-1") } else { name.contains("a-2") };
        if is_gone {
            fs::remove_file(to.path().join(name)).unwrap();
        }
    }
    assert_eq!(said(to.path()), expected);
}

#[test]
fn a_store_that_fails_has_the_whole_run_or_nothing_of_it() {
    let from = recorded(&["a-1", "a-2"]);
    let expected = files(bundled(from.path()).path());
    fs::remove_dir_all(from.path().join(".shipped")).unwrap();
    let to = tempfile::tempdir().unwrap();
    let target = Arc::new(FailingStore::taking(0, to.path()));
    for count in 0..expected.len() {
        let mut shipper = shipper(from.path(), Arc::<FailingStore>::clone(&target), Layout::Bundles);
        let (passed, result) = shipper.pass(&mut |_| false);
        assert!(matches!(result, Err(ShipError::Target(_))), "{result:?}");
        assert_eq!((files(to.path()).len(), passed.waiting_runs), (count, (expected.len() - count) as u64));
        target.left.store(1, Ordering::Relaxed);
    }
    pass(&mut shipper(from.path(), target, Layout::Bundles));
    assert_eq!(files(to.path()), expected);
}

#[test]
fn a_shipper_that_is_told_to_stop_has_sent_whole_runs() {
    let (from, to) = (recorded(&["a-1", "a-2"]), tempfile::tempdir().unwrap());
    let (passed, result) = shipper(from.path(), local(to.path()), Layout::Bundles).pass(&mut |_| true);
    result.unwrap();
    assert_eq!((passed.files, passed.runs, passed.waiting_runs), (1, 1, 1));
}

#[test]
fn a_host_is_in_the_group_that_the_place_says() {
    let (from, to) = (recorded(&["a-1"]), tempfile::tempdir().unwrap());
    fs::write(to.path().join(FLEET), r#"{"format":1,"groups":[{"since":"2026-03-01","n":64}]}"#).unwrap();
    pass(&mut shipper(from.path(), local(to.path()), Layout::Bundles));
    // As Python's xxhash has it: xxhash.xxh64("node-1").intdigest() % 64.
    assert!(names(to.path())[0].contains("/group=37/host=node-1/"), "{:?}", names(to.path()));
    said(to.path());
    fs::write(to.path().join(FLEET), "{").unwrap();
    fs::remove_dir_all(from.path().join(".shipped")).unwrap();
    let (passed, result) = shipper(from.path(), local(to.path()), Layout::Bundles).pass(&mut |_| false);
    assert!(matches!(result, Err(ShipError::Target(OutputError::Groups { .. }))), "{result:?}");
    assert_eq!((passed.waiting_runs, passed.unreadable_runs), (1, 0));
}

#[test]
fn a_long_run_and_windows_as_recorded_are_files_of_tables() {
    let long = tempfile::tempdir().unwrap();
    let output = ParquetOutput::new(OutputDirectory::create(long.path(), None).unwrap(), FLUSH_NS);
    fixture::play_changed(output, Policy::default(), |event| {
        if let Event::RunStarted(run) = event {
            // Its windows begin in the hour after the next one.
            run.started.0 -= 3_600_000_000;
        }
    });
    let short = recorded(&["a-1"]);
    for (from, window_ns) in [(&long, MINUTE), (&short, None)] {
        let to = tempfile::tempdir().unwrap();
        let options = Options { layout: Layout::Bundles, ..options(window_ns) };
        pass(&mut Shipper::of_recorded(local(from.path()), SharedPlace::Store(local(to.path())), options).unwrap());
        let names = names(to.path());
        assert!(!names.is_empty() && names.iter().all(|name| !name.starts_with("raw/")), "{names:?}");
        assert!(audit::is_well(&audit::run(to.path()).unwrap()));
    }
}

/// A store that cannot create a file only if it is not there.
#[derive(Debug)]
struct Unconditional(LocalDirectory);

impl Store for Unconditional {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn list(&self, table: &str, most: usize) -> Result<Vec<PathBuf>, DataSetError> {
        self.0.list(table, most)
    }

    fn open(&self, file: &Path) -> Result<Object, DataSetError> {
        self.0.open(file)
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        self.0.publish(folder, name, bytes)
    }

    fn publish_new(&self, folder: &Path, name: &str, _bytes: &[u8]) -> Result<Published, OutputError> {
        let source = std::io::Error::other("501 Not Implemented");
        Err(OutputError::Bucket { action: "writing", path: folder.join(name), source })
    }

    fn remove(&self, file: &Path) -> Result<(), OutputError> {
        self.0.remove(file)
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, OutputError> {
        self.0.find(folder, name)
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim, OutputError> {
        self.0.claim(kind)
    }
}

#[test]
fn a_store_without_conditions_is_asked_and_then_written_to_if_that_is_wanted() {
    let from = recorded(&["a-1"]);
    let expected = files(bundled(from.path()).path());
    for layout in Layout::ALL {
        let to = tempfile::tempdir().unwrap();
        let ship = |looks_first: bool| {
            let _ = fs::remove_dir_all(from.path().join(".shipped"));
            let store = Arc::new(Unconditional(LocalDirectory::new(to.path(), None)));
            let options = Options { layout, looks_first, ..options(MINUTE) };
            Shipper::of_recorded(local(from.path()), SharedPlace::Store(store), options).unwrap().pass(&mut |_| false)
        };
        assert!(matches!(ship(false).1, Err(ShipError::Target(OutputError::Bucket { .. }))));
        assert_eq!(files(to.path()), []);
        let first = ship(true).0;
        assert!(first.runs == 1 && first.files > 0, "{first:?}");
        let arrived = files(to.path());
        assert!(layout == Layout::Tables || arrived == expected);
        assert_eq!(ship(true).0.files, 0, "it is there");
        assert_eq!(files(to.path()), arrived);
    }
}
