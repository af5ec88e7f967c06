//! Tests `audit` and `reattribute` on a data set that a replay wrote. `audit` confirms what adds up
//! and names what does not. A policy applied later gives what it would have given from the start.

use std::{
    collections::BTreeMap,
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use joular_tests::{dataset::DataSet, process::Finished};
use tempfile::TempDir;

use crate::{joular_bpf, replay::recording};

/// Exit code of an audit that found figures that do not add up.
const DIFFERENCES: Option<i32> = Some(7);

/// Data sets side by side, removed when dropped.
struct Sets(TempDir);

impl Sets {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replays the recording into a data set of this name.
    fn replay(&self, name: &str, options: &[&str]) -> PathBuf {
        let dir = self.dir(name);
        let arguments = ["--replay", &recording(), "--quiet", "--output", dir.to_str().unwrap()];
        expect_success(&joular_bpf(&[&arguments, options].concat()));
        dir
    }

    fn reattribute(&self, from: &Path, name: &str, options: &[&str]) -> PathBuf {
        let dir = self.dir(name);
        let arguments = ["reattribute", from.to_str().unwrap(), "--output", dir.to_str().unwrap()];
        expect_success(&joular_bpf(&[&arguments, options].concat()));
        dir
    }
}

fn expect_success(finished: &Finished) {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

fn audit(dir: &Path) -> Finished {
    joular_bpf(&["audit", dir.to_str().unwrap()])
}

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    DataSet::at(dir).files().unwrap()
}

#[test]
fn an_audit_confirms_what_a_replay_wrote() {
    let sets = Sets::new();
    for policy in ["separate", "spread", "active"] {
        let finished = audit(&sets.replay(policy, &["--idle", policy]));
        expect_success(&finished);
        assert!(finished.stdout.contains("every microjoule is accounted for"), "{policy}: {finished:?}");
        assert!(finished.stdout.contains("(modelled)"), "{policy}: {finished:?}");
    }
}

#[test]
fn another_policy_later_is_byte_for_byte_what_it_would_have_been_from_the_start() {
    let sets = Sets::new();
    for (from, to) in [
        (&["--idle", "separate"][..], &["--idle", "spread"][..]),
        (&["--idle", "spread"], &["--idle", "active"]),
        (&["--idle", "active"], &["--idle", "separate"]),
    ] {
        let name = |kind: &str| format!("{kind} {} {}", from[1], to[1]);
        let recorded = sets.replay(&name("recorded"), from);
        let (later, at_once) = (sets.reattribute(&recorded, &name("later"), to), sets.replay(&name("at once"), to));
        let (later, at_once) = (files(&later), files(&at_once));
        assert_eq!(later.keys().collect::<Vec<_>>(), at_once.keys().collect::<Vec<_>>());
        for (path, bytes) in &later {
            assert!(at_once[path] == *bytes, "{from:?} to {to:?}: {} differs", path.display());
        }
        assert_ne!(later, files(&recorded), "{from:?} to {to:?} made no difference");
    }
}

#[test]
fn what_is_no_data_set_is_named_and_refused() {
    let sets = Sets::new();
    let empty = sets.dir("empty");
    fs::create_dir(&empty).unwrap();
    for (dir, words) in [(empty, "there is no run in it"), (sets.dir("absent"), "No such file or directory")] {
        let output = sets.dir("output");
        let dir = dir.to_str().unwrap();
        for arguments in [&["audit", dir][..], &["reattribute", dir, "--output", output.to_str().unwrap()]] {
            let finished = joular_bpf(arguments);
            assert_eq!(finished.code(), Some(1), "{finished:?}");
            for word in [dir, words, "--output"] {
                assert!(finished.stderr.contains(word), "the message lacks '{word}': {finished:?}");
            }
        }
    }
}

/// Tables that the audit reads: `processes` has no figure.
const AUDITED: &[&str] = &["branches", "jvms", "methods", "quality", "runs", "stacks", "threads", "weights", "windows"];

/// The table's only file in a data set of one run.
fn file_of(files: &BTreeMap<PathBuf, Vec<u8>>, table: &str) -> PathBuf {
    files.keys().find(|path| path.starts_with(table)).unwrap().clone()
}

#[test]
fn figures_that_do_not_follow_from_the_others_are_found() {
    let sets = Sets::new();
    let (dir, other) = (sets.replay("separate", &["--idle", "separate"]), sets.replay("spread", &["--idle", "spread"]));
    let (ours, theirs) = (files(&dir), files(&other));
    // Whole files, of the right run, with the figures of another policy.
    for table in ["branches", "jvms", "methods", "quality", "threads", "windows"] {
        let path = file_of(&ours, table);
        fs::write(dir.join(&path), &theirs[&path]).unwrap();
        let finished = audit(&dir);
        assert_eq!(finished.code(), DIFFERENCES, "{table}: {finished:?}");
        assert!(finished.stdout.contains("WRONG: "), "{table}: {finished:?}");
        fs::write(dir.join(&path), &ours[&path]).unwrap();
    }
    expect_success(&audit(&dir));
}

#[test]
fn a_file_whose_end_is_damaged_is_named() {
    let sets = Sets::new();
    let dir = sets.replay("out", &[]);
    let whole = files(&dir);
    for table in AUDITED {
        let path = file_of(&whole, table);
        let mut damaged = whole[&path].clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(dir.join(&path), damaged).unwrap();
        let finished = audit(&dir);
        assert_eq!(finished.code(), Some(1), "{table}: {finished:?}");
        let said = finished.stderr;
        assert!(said.contains(path.to_str().unwrap()) && said.contains("the file is damaged"), "{table}: {said}");
        fs::write(dir.join(&path), &whole[&path]).unwrap();
    }
}

/// Where a file has its columns' values. Its footer, whose length stands before its last four bytes, has their names,
/// comments and statistics, most of which have no part in a figure.
fn values(bytes: &[u8]) -> Range<usize> {
    let end = bytes.len() - 8;
    let footer = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    4..end - footer
}

#[test]
fn a_flipped_byte_anywhere_is_refused_found_or_of_no_consequence() {
    const PLACES: usize = 20;
    let sets = Sets::new();
    let dir = sets.replay("out", &[]);
    let whole = files(&dir);
    for table in AUDITED {
        let path = file_of(&whole, table);
        let bytes = &whole[&path];
        // How many of the places in these bytes are noticed.
        let noticed = |within: Range<usize>| {
            let is_noticed = |place: &usize| {
                let at = within.start + place * within.len() / PLACES;
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                fs::write(dir.join(&path), damaged).unwrap();
                let finished = audit(&dir);
                assert!(matches!(finished.code(), Some(0 | 1 | 7)), "{table}, byte {at}: {finished:?}");
                assert!(!finished.stderr.contains("panicked"), "{table}, byte {at}: {finished:?}");
                finished.code() != Some(0)
            };
            (0..PLACES).filter(is_noticed).count()
        };
        noticed(0..bytes.len());
        let found = noticed(values(bytes));
        assert!(found > PLACES / 4, "{table}: only {found} of {PLACES} were noticed");
        fs::write(dir.join(&path), &whole[&path]).unwrap();
    }
}
