//! Tests that runs arrive, once, whatever fails in between: as files of tables, of which there are many.

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tempfile::TempDir;

use super::{Layout, Options, Passed, ShipError, Shipper};
use crate::{
    attribution::Engine,
    dataset::{
        OutputDirectory, ParquetOutput, audit,
        fixture::{self, FLUSH_NS, SECOND},
        fixture_store::FailingStore,
        layout::RunName,
        store::{LocalDirectory, SHARE_MARK, SharedPlace, Store},
    },
    events::Event,
    model::policy::Policy,
    output::{Output as _, OutputError},
    redact::Redaction,
    rollup,
};

pub(super) const MINUTE: Option<u64> = Some(60 * SECOND);

/// A data set with runs that have ended, of these names.
pub(super) fn recorded(runs: &[&str]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    runs.iter().for_each(|run| fixture::write_as(root.path(), Policy::default(), run));
    root
}

/// Adds a run whose recorder was killed.
fn add_killed(root: &Path, run_id: &str) {
    let mut output = ParquetOutput::new(OutputDirectory::create(root, None).unwrap(), FLUSH_NS);
    let mut engine = Engine::default();
    for mut event in fixture::events(Policy::default()) {
        if let Event::RunStarted(run) = &mut event {
            run.run_id = run_id.to_owned();
            output.run_started(run).unwrap();
        }
        if let Event::Process(process) = &event {
            output.process(process);
        }
        if let Some(report) = engine.apply(&event) {
            output.window(&report, engine.table()).unwrap();
        }
    }
}

pub(super) fn local(root: &Path) -> Arc<dyn Store> {
    Arc::new(LocalDirectory::new(root, None))
}

pub(super) fn options(window_ns: Option<u64>) -> Options {
    Options {
        window_ns,
        layout: Layout::Tables,
        looks_first: false,
        redaction: Redaction::default(),
        most_bytes_per_s: None,
        scratch: std::env::temp_dir(),
    }
}

fn shipper(from: &Path, to: Arc<dyn Store>, window_ns: Option<u64>) -> Shipper {
    Shipper::of_recorded(local(from), SharedPlace::Store(to), options(window_ns)).unwrap()
}

fn named(run: &str) -> RunName {
    ("host=node-1".to_owned(), run.to_owned())
}

fn remove(root: &Path, run: &str) {
    let of_run = files(root).into_iter().filter(|(name, _)| name.contains(run));
    of_run.for_each(|(name, _)| fs::remove_file(root.join(name)).unwrap());
}

pub(super) fn pass(shipper: &mut Shipper) -> Passed {
    let (passed, result) = shipper.pass(&mut |_| false);
    result.unwrap();
    passed
}

/// Files of the tables, with their bytes.
pub(super) fn files(root: &Path) -> Vec<(String, Vec<u8>)> {
    fixture::files(root).into_iter().filter(|(name, _)| !name.starts_with('.')).collect()
}

fn rolled_up(from: &Path) -> Vec<(String, Vec<u8>)> {
    let to = tempfile::tempdir().unwrap();
    rollup::run(from, to.path(), 60 * SECOND, None, &Redaction::default()).unwrap();
    files(to.path())
}

#[test]
fn what_arrives_is_the_rollup_of_all_runs() {
    let (from, to) = (recorded(&["a-1", "a-2"]), tempfile::tempdir().unwrap());
    let passed = pass(&mut shipper(from.path(), local(to.path()), MINUTE));
    let expected = rolled_up(from.path());
    assert_eq!(files(to.path()), expected);
    let bytes: u64 = expected.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let all = Passed { runs: 2, files: expected.len() as u64, bytes, has_reached: true, ..Passed::default() };
    assert_eq!(passed, all);
    assert!(audit::is_well(&audit::run(to.path()).unwrap()));
}

#[test]
fn runs_are_shipped_as_recorded_if_that_is_asked_for() {
    let (from, to) = (recorded(&["a-1", "a-2"]), tempfile::tempdir().unwrap());
    let expected = files(from.path());
    pass(&mut shipper(from.path(), local(to.path()), None));
    assert_eq!(files(to.path()), expected);
}

#[test]
fn what_has_arrived_is_not_shipped_again_and_does_no_harm_if_it_is() {
    let (from, to) = (recorded(&["a-1"]), tempfile::tempdir().unwrap());
    pass(&mut shipper(from.path(), local(to.path()), MINUTE));
    let arrived = files(to.path());
    assert_eq!(pass(&mut shipper(from.path(), local(to.path()), MINUTE)), Passed::default(), "after a restart");
    // The ledger is lost, or two ship the same.
    fs::remove_dir_all(from.path().join(".shipped")).unwrap();
    let again = pass(&mut shipper(from.path(), local(to.path()), MINUTE));
    assert_eq!((again.runs, again.files), (1, 0));
    assert_eq!(files(to.path()), arrived);
    // A ledger that is not one.
    for ledger in fs::read_dir(from.path().join(".shipped")).unwrap() {
        fs::write(ledger.unwrap().path(), "{").unwrap();
    }
    assert_eq!(pass(&mut shipper(from.path(), local(to.path()), MINUTE)).runs, 1);
}

#[test]
fn another_store_or_another_length_of_windows_gets_everything() {
    let from = recorded(&["a-1"]);
    for window_ns in [MINUTE, None, Some(10 * SECOND)] {
        let to = tempfile::tempdir().unwrap();
        let passed = pass(&mut shipper(from.path(), local(to.path()), window_ns));
        assert_eq!((passed.runs, files(to.path()).len() as u64), (1, passed.files), "{window_ns:?}");
    }
}

#[test]
fn a_store_that_fails_after_any_file_has_everything_once_in_the_end() {
    let from = recorded(&["a-1", "a-2"]);
    let expected = rolled_up(from.path());
    let to = tempfile::tempdir().unwrap();
    let target = Arc::new(FailingStore::taking(0, to.path()));
    for count in 0..expected.len() {
        // A new shipper each time: also the program was killed.
        let (_, result) = shipper(from.path(), Arc::<FailingStore>::clone(&target), MINUTE).pass(&mut |_| false);
        assert!(matches!(result, Err(ShipError::Target(_))), "{result:?}");
        let there = files(to.path());
        assert_eq!(there.len(), count);
        if count > 0 {
            // Whatever is missing: what is there can be read, and no figure is wrong.
            assert!(audit::run(to.path()).unwrap().iter().all(|audit| audit.windows <= 2), "{count} files");
        }
        target.left.store(1, Ordering::Relaxed);
    }
    pass(&mut shipper(from.path(), target, MINUTE));
    assert_eq!(files(to.path()), expected);
}

#[test]
fn a_run_under_way_waits_for_its_end_and_a_killed_one_for_nobody() {
    let (from, to) = (recorded(&["a-1"]), tempfile::tempdir().unwrap());
    add_killed(from.path(), "a-2");
    // A recorder begins, and its first run with it.
    let directory = OutputDirectory::create(from.path(), None).unwrap();
    let target = SharedPlace::Store(local(to.path()));
    let mut own = Shipper::before_recording(local(from.path()), target, options(MINUTE)).unwrap();
    let mut output = ParquetOutput::new(directory, FLUSH_NS);
    let info = fixture::run_info(Policy::default());
    output.run_started(&crate::events::RunInfo { run_id: "a-3".into(), ..info }).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut other = shipper(from.path(), local(elsewhere.path()), MINUTE);
    assert_eq!(pass(&mut other).runs, 1, "another process cannot tell a killed run from one under way");
    assert_eq!(pass(&mut own).runs, 2);
    let audits = audit::run(to.path()).unwrap();
    assert_eq!(audits.iter().map(|audit| audit.run_id.as_str()).collect::<Vec<_>>(), ["a-1", "a-2"]);
    drop(output);
    assert_eq!(pass(&mut shipper(from.path(), local(elsewhere.path()), MINUTE)).runs, 2, "nobody writes any more");
}

#[test]
fn a_run_that_cannot_be_read_holds_up_no_other_and_is_told_once() {
    let (from, to) = (recorded(&["a-1", "a-2"]), tempfile::tempdir().unwrap());
    let broken = files(from.path()).into_iter().map(|(name, _)| name);
    let broken = broken.into_iter().find(|name| name.starts_with("threads") && name.contains("a-1")).unwrap();
    fs::write(from.path().join(&broken), "no Parquet").unwrap();
    let mut shipper = shipper(from.path(), local(to.path()), MINUTE);
    let first = pass(&mut shipper);
    assert_eq!((first.runs, first.waiting_runs, first.unreadable_runs, first.problems.len()), (1, 1, 1, 1));
    assert!(first.problems[0].contains(&broken), "{first:?}");
    let second = pass(&mut shipper);
    assert_eq!((second.runs, second.waiting_runs, second.unreadable_runs, second.problems.len()), (0, 1, 1, 0));
    remove(from.path(), "a-1");
    assert_eq!(pass(&mut shipper), Passed { missed_runs: 1, ..Passed::default() });
}

#[test]
fn runs_that_are_removed_before_a_pass_has_seen_them_are_missed_each_once() {
    let (from, to) = (recorded(&["a-1", "a-2"]), tempfile::tempdir().unwrap());
    let mut shipper = shipper(from.path(), local(to.path()), MINUTE);
    let missed = |missed_runs| Passed { missed_runs, ..Passed::default() };
    // One that is gone, and one whose files are still there when the pass looks.
    ["a-0", "a-1"].into_iter().for_each(|run| shipper.spool().removing(&named(run)));
    let first = pass(&mut shipper);
    assert_eq!((first.runs, first.missed_runs, first.waiting_runs), (1, 2, 0), "{first:?}");
    assert_eq!(pass(&mut shipper), missed(0));
    remove(from.path(), "a-1");
    assert_eq!(pass(&mut shipper), missed(0));
    // What has arrived may go.
    shipper.spool().removing(&named("a-2"));
    remove(from.path(), "a-2");
    assert_eq!(pass(&mut shipper), missed(0));
}

#[test]
fn a_run_that_goes_away_between_the_listing_and_the_reading_is_no_problem() {
    let (from, to) = (recorded(&["a-1"]), tempfile::tempdir().unwrap());
    let row = files(from.path()).into_iter().find(|(name, _)| name.starts_with("runs")).unwrap().0;
    let store = Arc::new(FailingStore::with_gone(&row.replace("a-1", "a-0"), from.path()));
    let mut shipper = Shipper::of_recorded(store, SharedPlace::Store(local(to.path())), options(MINUTE)).unwrap();
    let passed = pass(&mut shipper);
    assert_eq!(
        (passed.runs, passed.waiting_runs, passed.missed_runs, passed.problems.len()),
        (1, 0, 0, 0),
        "{passed:?}"
    );
}

#[test]
fn a_run_that_ends_between_the_listing_and_the_reading_is_shipped_whole() {
    let (from, to) = (recorded(&["a-1"]), tempfile::tempdir().unwrap());
    let store = Arc::new(FailingStore::with_late_files(from.path()));
    let mut shipper = Shipper::of_recorded(store, SharedPlace::Store(local(to.path())), options(MINUTE)).unwrap();
    assert_eq!(pass(&mut shipper).runs, 1);
    assert_eq!(files(to.path()), rolled_up(from.path()));
}

#[test]
fn a_shipper_that_is_told_to_stop_goes_on_next_time() {
    let (from, to) = (recorded(&["a-1"]), tempfile::tempdir().unwrap());
    let mut shipper = Shipper::of_recorded(
        local(from.path()),
        SharedPlace::Store(local(to.path())),
        Options { most_bytes_per_s: Some(1), ..options(MINUTE) },
    )
    .unwrap();
    let mut waits = Vec::new();
    let (passed, result) = shipper.pass(&mut |wait| {
        waits.push(wait);
        waits.len() == 3
    });
    result.unwrap();
    assert_eq!((passed.files, passed.runs, passed.waiting_runs), (3, 0, 1));
    assert!(waits.is_sorted() && waits[0] > Duration::from_secs(60), "a byte a second: {waits:?}");
    assert_eq!(pass(&mut shipper).runs, 1);
    assert_eq!(files(to.path()), rolled_up(from.path()));
}

#[test]
fn a_share_that_is_not_mounted_gets_nothing_and_holds_up_nothing_else() {
    let (from, to) = (recorded(&["a-1", "a-2"]), tempfile::tempdir().unwrap());
    let place = SharedPlace::of(to.path(), None).unwrap();
    let mut shipper = Shipper::of_recorded(local(from.path()), place, options(MINUTE)).unwrap();
    let started = Some(fixture::run_info(Policy::default()).started);
    for _ in 0..2 {
        let (passed, result) = shipper.pass(&mut |_| false);
        assert!(matches!(result, Err(ShipError::Target(OutputError::NoShare { .. }))), "{result:?}");
        assert_eq!(passed, Passed { waiting_runs: 2, oldest_waiting: started, ..Passed::default() });
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    }
    let spool = shipper.spool();
    fs::write(to.path().join(SHARE_MARK), "").unwrap();
    assert!(!spool.has_arrived(&named("a-1")));
    assert_eq!(pass(&mut shipper).runs, 2);
    assert!(spool.has_arrived(&named("a-1")) && spool.has_arrived(&named("a-2")));
    assert_eq!(files(to.path()), rolled_up(from.path()));
}

#[test]
fn a_rollup_without_room_is_tried_again_and_blames_no_run() {
    let (from, to) = (recorded(&["a-1"]), tempfile::tempdir().unwrap());
    let absent = Options { scratch: from.path().join("absent"), ..options(MINUTE) };
    let place = SharedPlace::Store(local(to.path()));
    let (passed, result) = Shipper::of_recorded(local(from.path()), place, absent).unwrap().pass(&mut |_| false);
    assert!(matches!(result, Err(ShipError::Target(OutputError::Scratch { .. }))), "{result:?}");
    assert_eq!((passed.waiting_runs, passed.unreadable_runs), (1, 0));
}
