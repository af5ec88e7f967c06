//! Tests recordings that go on while their data set cannot be written.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use super::ring::{EVERY_NS, SmallDisk, audited, play_output, windows};
use crate::{
    dataset::{
        ParquetOutput,
        fixture::{self, *},
        layout::RunName,
        store::{ClaimKind, Limits, LocalDirectory, Ring, Store as _},
        write::{Rotated, Unwritten},
    },
    events::Event,
};

type Lines = Arc<Mutex<Vec<String>>>;

/// Records, onto a disk that has room for `most` bytes at the start and as `room` says at the end of each second.
fn record(
    root: &Path,
    (flush_ns, most): (u64, u64),
    is_spared: impl Fn(&RunName) -> bool + Send + Sync + 'static,
    room: impl Fn(u64) -> u64,
) -> (Unwritten, Vec<String>) {
    let (unwritten, most, told) = (Unwritten::default(), Arc::new(AtomicU64::new(most)), Lines::default());
    let tell = || {
        let told = Arc::clone(&told);
        move |line: &str| told.lock().unwrap().push(line.to_owned())
    };
    let directory = LocalDirectory::new(root, None);
    let claim = directory.claim(ClaimKind::Write).unwrap();
    let disk = SmallDisk { directory, most: Arc::clone(&most) };
    let ring = Ring::new(Arc::new(disk), Limits::default(), tell()).sparing(is_spared);
    let output = ParquetOutput::into_store(Box::new(ring), claim, flush_ns);
    play_output(Rotated::new(output, EVERY_NS).lasting(unwritten.clone(), tell()), |event| {
        if let Event::Energy(reading) = event {
            most.store(room(reading.read_at.0 / SECOND), Ordering::Relaxed);
        }
        // Nothing else is lost.
        if let Event::Window(window) = event {
            window.losses.clear();
        }
    });
    let told = told.lock().unwrap().clone();
    (unwritten, told)
}

/// What audits say was lost, all runs together.
fn lost(root: &Path) -> u64 {
    audited(root).iter().map(|audit| audit.lost).sum()
}

/// Windows of all runs, each of which has its end and no row beside them.
fn written(root: &Path) -> u64 {
    let audits = audited(root);
    for audit in &audits {
        assert_eq!((audit.has_ended, audit.rows_without_window), (true, 0), "{}", audit.run_id);
    }
    windows(&audits).iter().map(|(_, windows)| windows).sum()
}

#[test]
fn windows_that_were_lost_are_counted_and_the_rest_is_whole() {
    let root = tempfile::tempdir().unwrap();
    // Full from the 13th second to the 20th: what was written at the end of a second stays.
    let room = |second| if (13..20).contains(&second) { 0 } else { u64::MAX };
    let (unwritten, told) = record(root.path(), (SECOND, u64::MAX), |_| true, room);
    assert_eq!(written(root.path()) + unwritten.windows(), 30, "{told:?}");
    assert!((7..=10).contains(&unwritten.windows()), "it is tried again after ten seconds: {told:?}");
    assert!(!unwritten.is_failing());
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("no space left") && told[0].ends_with("it is tried again"), "{told:?}");
    assert_eq!(told[1], format!("the data set is written again; lost: {} windows", unwritten.windows()));
    assert_eq!(lost(root.path()), unwritten.windows(), "the next window says so");
}

#[test]
fn windows_in_memory_are_lost_with_the_file_that_fails() {
    let root = tempfile::tempdir().unwrap();
    // A file has six seconds. The first is full of windows 0 to 5, and fails.
    let room = |second| if second < 7 { 0 } else { u64::MAX };
    let (unwritten, told) = record(root.path(), (6 * SECOND, u64::MAX), |_| true, room);
    assert_eq!(written(root.path()) + unwritten.windows(), 30, "{told:?}");
    assert!(unwritten.windows() >= 6 && !unwritten.is_failing(), "{told:?}");
}

#[test]
fn a_disk_that_is_full_at_the_start_ends_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (unwritten, told) = record(root.path(), (SECOND, 0), |_| true, |second| if second < 5 { 0 } else { u64::MAX });
    assert_eq!(written(root.path()) + unwritten.windows(), 30, "{told:?}");
    assert!(unwritten.windows() > 0 && !unwritten.is_failing(), "{told:?}");
}

#[test]
fn what_was_lost_at_the_end_is_said() {
    let root = tempfile::tempdir().unwrap();
    let room = |second| if second < 25 { u64::MAX } else { 0 };
    let (unwritten, told) = record(root.path(), (SECOND, u64::MAX), |_| true, room);
    let audits = audited(root.path());
    assert_eq!(windows(&audits).iter().map(|(_, windows)| windows).sum::<u64>() + unwritten.windows(), 30, "{told:?}");
    assert!(unwritten.is_failing() && audits.iter().filter(|audit| !audit.has_ended).count() == 1);
    let last = told.last().unwrap();
    assert_eq!(*last, format!("not written: the last {} windows of the recording", unwritten.windows()));
}

#[test]
fn runs_that_wait_to_be_shipped_stay_and_others_make_room() {
    let whole = tempfile::tempdir().unwrap();
    record(whole.path(), (FLUSH_NS, u64::MAX), |_| true, |_| u64::MAX);
    let most: u64 = fixture::files(whole.path()).iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let runs = |spared: fn(&RunName) -> bool| {
        let root = tempfile::tempdir().unwrap();
        let (unwritten, told) = record(root.path(), (FLUSH_NS, most * 9 / 10), spared, move |_| most * 9 / 10);
        let audits = audited(root.path());
        let names = audits.iter().map(|audit| audit.run_id.trim_start_matches(RUN_ID).to_owned());
        (names.collect::<Vec<_>>(), unwritten.windows(), told)
    };
    let (names, lost, told) = runs(|_| false);
    assert!(names.last().is_some_and(|last| last == ".0003") && !names.contains(&String::new()), "{told:?}");
    assert_eq!(lost, 0, "{told:?}");
    let (names, lost, told) = runs(|_| true);
    assert!(names[0].is_empty() && lost > 0, "{names:?} {told:?}");
    let (names, lost, told) = runs(|(_, run)| !run.ends_with(".0001"));
    assert!(names[0].is_empty() && !names.contains(&".0001".to_owned()) && lost == 0, "{names:?} {lost} {told:?}");
}
