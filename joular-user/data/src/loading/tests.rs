//! Tests of loading with a database that is made up, and fails when it is told to.

use std::{
    cell::{Cell, RefCell},
    fs,
    path::Path,
};

use super::*;
use crate::dataset::{clickhouse, clickhouse::fixture, schema::SCHEMA_VERSION, store::LocalDirectory};

/// Answers by what it has taken, as far as a loader asks.
#[derive(Default)]
struct Fake {
    /// Tokens of batches, as they came.
    sent: RefCell<Vec<String>>,
    /// Notes of batches.
    notes: RefCell<Vec<serde_json::Value>>,
    /// What comes next is taken, but its answer is lost.
    loses: Cell<bool>,
    /// It says that so many batches came since one was made.
    since: Cell<u64>,
    /// What it says of runs in table `windows`.
    runs: RefCell<String>,
}

impl Warehouse for Fake {
    fn ask(&self, sql: &str) -> Result<String, WarehouseError> {
        if sql.contains("system.tables") {
            return Ok(format!("[\"{}\"]\n", clickhouse::mark()));
        }
        if sql.contains("count() FROM joular.loads") {
            return Ok(format!("[{}]\n", self.since.get()));
        }
        if sql.contains("joular.loads") {
            let notes = self.notes.borrow();
            return Ok(notes.iter().map(|note| format!("[{},{}]\n", note["batch"], note["names"])).collect());
        }
        let of_windows = sql.contains("FROM joular.windows");
        let of_runs = sql.contains("FROM joular.runs") && !self.runs.borrow().is_empty();
        Ok(match (of_windows, of_runs) {
            (true, _) => self.runs.borrow().clone(),
            (_, true) => "[\"a\",1,0]\n".to_owned(),
            _ => String::new(),
        })
    }

    fn insert(&self, sql: &str, settings: &[(&str, &str)], data: Vec<u8>) -> Result<(), WarehouseError> {
        if sql.starts_with("INSERT INTO joular.loads") {
            self.notes.borrow_mut().push(serde_json::from_slice(&data).unwrap());
            return Ok(());
        }
        assert_eq!(sql, "INSERT INTO joular.bundles FORMAT Parquet");
        assert!(settings.contains(&("deduplicate_blocks_in_dependent_materialized_views", "1")), "{settings:?}");
        let token = settings.iter().find(|(name, _)| *name == "insert_deduplication_token").unwrap().1;
        self.sent.borrow_mut().push(token.to_owned());
        if self.loses.get() { Err(WarehouseError::Later("it was cut".to_owned())) } else { Ok(()) }
    }
}

fn put(place: &Path, run: &str, bytes: &[u8]) {
    let folder = place.join("raw/date=2026-03-01/hour=12/group=0/host=h");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{run}.parquet")), bytes).unwrap();
}

fn place(runs: &[&str]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for run in runs {
        put(place.path(), run, &fixture::bundle(run, SCHEMA_VERSION, &[1, 2]));
    }
    place
}

/// A pass of a loader that knows nothing of earlier ones.
fn pass(place: &Path, fake: &Fake) -> (Loaded, Result<(), LoadError>) {
    let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(place, None));
    Loader::new(store, fake, "joular").pass(None)
}

#[test]
fn each_bundle_is_sent_once_and_new_ones_with_a_batch_of_their_own() {
    let (place, fake) = (place(&["a", "b"]), Fake::default());
    let (loaded, result) = pass(place.path(), &fake);
    result.unwrap();
    assert_eq!((loaded.runs, loaded.batches), (2, 1));
    assert_eq!(fake.notes.borrow()[0]["measured_uj"], 6);
    assert_eq!(pass(place.path(), &fake).0, Loaded::default());
    put(place.path(), "c", &fixture::bundle("c", SCHEMA_VERSION, &[5]));
    assert_eq!(pass(place.path(), &fake).0.runs, 1);
    assert_eq!(fake.sent.borrow().len(), 2);
}

#[test]
fn a_bundle_that_comes_when_another_one_has_expired_is_loaded() {
    for knows_earlier in [false, true] {
        let (place, fake) = (place(&["a", "b"]), Fake::default());
        let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(place.path(), None));
        let mut first = Loader::new(Arc::clone(&store), &fake, "joular");
        assert_eq!(first.pass(None).0.runs, 2);
        fs::remove_file(place.path().join("raw/date=2026-03-01/hour=12/group=0/host=h/a.parquet")).unwrap();
        put(place.path(), "c", &fixture::bundle("c", SCHEMA_VERSION, &[5]));
        let mut second = if knows_earlier { first } else { Loader::new(store, &fake, "joular") };
        let (loaded, result) = second.pass(None);
        result.unwrap();
        assert_eq!((loaded.runs, fake.sent.borrow().len()), (1, 2), "{knows_earlier}: there are as many as before");
    }
}

#[test]
fn a_batch_whose_answer_was_lost_is_sent_again_as_it_was() {
    let (place, fake) = (place(&["a", "b"]), Fake::default());
    fake.loses.set(true);
    let (loaded, result) = pass(place.path(), &fake);
    assert!(matches!(result, Err(LoadError::Warehouse(WarehouseError::Later(_)))) && loaded.batches == 0);
    // What comes meanwhile has no part in it.
    put(place.path(), "c", &fixture::bundle("c", SCHEMA_VERSION, &[5]));
    fake.loses.set(false);
    let (loaded, result) = pass(place.path(), &fake);
    result.unwrap();
    assert_eq!((loaded.runs, loaded.batches), (3, 2));
    let sent = fake.sent.borrow();
    assert!(sent[0] == sent[1] && sent[1] != sent[2], "{sent:?}");
}

#[test]
fn a_database_that_may_have_forgotten_a_batch_is_asked_before_it_is_sent_again() {
    for (of_windows, expected_sent, expected_notes, problems) in
        [("", 1, 1, 0), ("[\"a\",2,3]\n", 0, 1, 0), ("[\"a\",1,3]\n", 0, 0, 1)]
    {
        let (place, fake) = (place(&["a"]), Fake::default());
        fake.since.set(REMEMBERED_BATCHES + 1);
        *fake.runs.borrow_mut() = of_windows.to_owned();
        let (loaded, result) = pass(place.path(), &fake);
        result.unwrap();
        let counts = (fake.sent.borrow().len(), fake.notes.borrow().len(), loaded.problems.len());
        assert_eq!(counts, (expected_sent, expected_notes, problems), "{of_windows:?}: {loaded:?}");
    }
}

#[test]
fn a_bundle_that_cannot_be_read_is_named_and_keeps_no_other_back() {
    let (place, fake) = (place(&["a"]), Fake::default());
    put(place.path(), "bad", b"PAR1");
    let (loaded, result) = pass(place.path(), &fake);
    result.unwrap();
    assert_eq!((loaded.runs, fake.sent.borrow().len()), (1, 1));
    assert!(loaded.problems.len() == 1 && loaded.problems[0].contains("bad.parquet"), "{loaded:?}");
}

#[test]
fn tables_that_are_not_there_are_said_with_how_to_make_them() {
    struct Empty;
    impl Warehouse for Empty {
        fn ask(&self, _sql: &str) -> Result<String, WarehouseError> {
            Ok(String::new())
        }

        fn insert(&self, _: &str, _: &[(&str, &str)], _: Vec<u8>) -> Result<(), WarehouseError> {
            panic!("nothing is sent")
        }
    }
    let place = place(&["a"]);
    let store: Arc<dyn Store> = Arc::new(LocalDirectory::new(place.path(), None));
    let result = Loader::new(store, &Empty, "joular").pass(None).1;
    let message = result.unwrap_err().to_string();
    assert!(message.contains("joular-bpf load --schema --database joular"), "{message}");
}
