use std::{
    collections::{BTreeMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::{
    dataset::{
        DataSetError, OutputDirectory, audit,
        column::Table as _,
        compact,
        fixture::*,
        read::{
            columns::{Columns, TableFile},
            files as data_files,
        },
        reattribute,
        store::{self, StoredFile},
        tables::{Amounts, Stacks, TABLES, stacks},
    },
    events::RunInfo,
    model::policy::Policy,
    report::profile::{Filter, Profile},
};

fn written() -> tempfile::TempDir {
    let parent = tempfile::tempdir().unwrap();
    write(&parent.path().join("out"), Policy::default());
    parent
}

/// A row with its date: its values, however a file encodes them.
type Row = (PathBuf, String);

/// All rows of a table in the order of files and rows.
fn rows(root: &Path, table: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in data_files::find(&store::open(root).unwrap()).unwrap() {
        for (place, part) in &run.parts {
            let Some(file) = part.named(table) else { continue };
            let bytes = bytes::Bytes::from(fs::read(file.path()).unwrap());
            let reader = SerializedFileReader::new(bytes).unwrap();
            let texts = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string());
            rows.extend(texts.map(|row| (place.folder(table), row)));
        }
    }
    rows
}

fn all_rows(root: &Path) -> BTreeMap<&'static str, Vec<Row>> {
    TABLES.into_iter().map(|table| (table, rows(root, table))).collect()
}

/// Of each row.
fn stack_ids(root: &Path) -> Vec<i64> {
    let mut ids = Vec::new();
    for (_, part) in data_files::find(&store::open(root).unwrap()).unwrap().iter().flat_map(|run| &run.parts) {
        let Some(path) = part.file::<Stacks>() else { continue };
        let take = |columns: &Columns<'_>| {
            let column = columns.ints(stacks::STACK_ID)?;
            ids.extend((0..columns.rows()).map(|row| column.get(row).unwrap()));
            Ok(())
        };
        TableFile::open(path).unwrap().batches(take).unwrap();
    }
    ids
}

#[test]
fn all_rows_are_there_in_their_order_in_fewer_files() {
    let parent = written();
    let (from, to) = (parent.path().join("out"), parent.path().join("compact"));
    let done = compact::beside(&from, &to, None).unwrap();
    let (mut before, mut after) = (all_rows(&from), all_rows(&to));
    let (of_stacks, stacks_after) = (before.remove("stacks").unwrap(), after.remove("stacks").unwrap());
    // Only rollups have it.
    assert!(before.remove(Amounts::NAME).unwrap().is_empty() && after.remove(Amounts::NAME).unwrap().is_empty());
    assert!(before.values().all(|rows| !rows.is_empty()));
    assert!(before == after);
    assert!(stacks_after.iter().all(|row| of_stacks.contains(row)));
    let (ids, ids_after) = (stack_ids(&from), stack_ids(&to));
    let distinct = ids.iter().copied().collect::<HashSet<i64>>();
    assert_eq!(distinct, ids_after.iter().copied().collect());
    assert_eq!(distinct.len(), ids_after.len(), "each stack once");
    assert_eq!(done.stacks_left_out, (ids.len() - ids_after.len()) as u64);
    let (few, many) = (files(&to), files(&from));
    assert_eq!((done.files_before, done.files_after), (many.len() as u64, few.len() as u64));
    assert_eq!(done.bytes_after, few.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>());
    assert!(few.len() * 2 < many.len() && done.bytes_after < done.bytes_before, "{done:?}");
    // Midnight divides them: a table has a file per date.
    assert_eq!(few.iter().filter(|(name, _)| name.starts_with("windows")).count(), 2);
}

#[test]
fn every_reader_finds_the_same_in_it() {
    let parent = written();
    let (from, to) = (parent.path().join("out"), parent.path().join("compact"));
    compact::beside(&from, &to, None).unwrap();
    let read = |root: &Path| {
        let profile = Profile::read(root, &Filter::default(), None).unwrap();
        (profile.entries, profile.threads, profile.overview)
    };
    assert_eq!(read(&from), read(&to));
    let audits = |root: &Path| serde_json::to_value(audit::run(root).unwrap()).unwrap();
    assert_eq!(audits(&from), audits(&to));
    assert_eq!(audits(&to)[0]["differences"], 0);
    let again = |root: &Path, name: &str| {
        let output = parent.path().join(name);
        let policy = |run: &RunInfo| Ok::<_, DataSetError>(Policy { smt_permille: 1_700, ..run.policy.clone() });
        reattribute::run(root, &output, None, policy).unwrap();
        let mut rows = all_rows(&output);
        rows.remove("stacks");
        rows
    };
    assert!(again(&from, "again-1") == again(&to, "again-2"));
}

#[test]
fn in_place_it_is_what_it_is_beside_and_a_second_time_changes_nothing() {
    let parent = written();
    let (from, to) = (parent.path().join("out"), parent.path().join("compact"));
    let beside = compact::beside(&from, &to, None).unwrap();
    // What an interrupted run left half built is removed, whatever it is.
    let leftover = parent.path().join(".out.compacting");
    fs::create_dir_all(leftover.join("windows")).unwrap();
    fs::write(leftover.join("windows/half"), "half").unwrap();
    fs::write(leftover.join(".joular-bpf.unfinished"), "").unwrap();
    let in_place = compact::in_place(&from).unwrap();
    assert_eq!(in_place, beside);
    assert_eq!(files(&from), files(&to));
    assert!(!leftover.exists());
    let again = compact::in_place(&from).unwrap();
    assert!(again.is_unchanged && again.files_after == beside.files_after, "{again:?}");
    assert_eq!(files(&from), files(&to));
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 2);
}

#[test]
fn what_would_be_lost_or_is_in_use_is_refused_and_nothing_is_changed() {
    let parent = written();
    let root = parent.path().join("out");
    let before = files(&root);
    let refused = |words: &str| {
        let error = compact::in_place(&root).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(files(&root), before);
    };
    for foreign in ["notes.txt", "windows/notes.txt", "threads/date=2026-03-01/.hidden", "windows/a/b/c/d"] {
        let path = root.join(foreign);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        refused(foreign);
        fs::remove_file(&path).unwrap();
    }
    let lock = OutputDirectory::create(&root, None).unwrap();
    refused("another run (pid ");
    let beside = parent.path().join("beside");
    let error = compact::beside(&root, &beside, None).unwrap_err().to_string();
    assert!(error.contains("another run (pid "), "{error}");
    drop(lock);
    let error = compact::beside(&root, &root, None).unwrap_err().to_string();
    assert!(error.contains("is not empty"), "{error}");
    assert!(!beside.exists());
    compact::in_place(&root).unwrap();
}

/// A day of a clock that was set back has windows with equal starts: files tell them apart.
#[test]
fn parts_whose_times_overlap_stay_apart() {
    let parent = written();
    let root = parent.path().join("out");
    let name = |number: u32| format!("node-1-20260301T235954-4711-{number:04}.parquet");
    for table in TABLES {
        let folder = root.join(table).join("date=2026-03-02/host=node-1");
        if folder.join(name(2)).exists() {
            fs::copy(folder.join(name(2)), folder.join(name(9))).unwrap();
        }
    }
    let before = rows(&root, "windows");
    compact::in_place(&root).unwrap();
    assert!(rows(&root, "windows") == before);
    let of_windows = files(&root).into_iter().filter(|(name, _)| name.starts_with("windows")).count();
    assert_eq!(of_windows, 3, "two dates, and the overlapping part");
}

/// Killed between the exchange and the removal of the old data set.
#[test]
fn a_former_data_set_is_removed_only_if_the_present_one_has_all_of_it() {
    let parent = written();
    let (root, former) = (parent.path().join("out"), parent.path().join(".out.compacting"));
    compact::beside(&root, &parent.path().join("new"), None).unwrap();
    fs::rename(&root, &former).unwrap();
    fs::rename(parent.path().join("new"), &root).unwrap();
    let refused = || {
        let (before, present) = (files(&former), files(&root));
        let error = compact::in_place(&root).unwrap_err();
        assert!(matches!(error, DataSetError::Former { .. }), "{error}");
        assert!(files(&former) == before && files(&root) == present);
    };
    fs::write(former.join("notes.txt"), "mine").unwrap();
    refused();
    fs::remove_file(former.join("notes.txt")).unwrap();
    // A part that came after the exchange.
    let (name, bytes) = files(&former).into_iter().find(|(name, _)| name.starts_with("windows")).unwrap();
    let later = former.join(name.rsplit_once('-').unwrap().0.to_owned() + "-0099.parquet");
    fs::write(&later, bytes).unwrap();
    refused();
    fs::remove_file(&later).unwrap();
    assert!(compact::in_place(&root).unwrap().is_unchanged);
    assert!(!former.exists());
}

#[test]
fn what_another_run_builds_is_in_use_and_no_link_is_followed() {
    let parent = written();
    let (root, staging) = (parent.path().join("out"), parent.path().join(".out.compacting"));
    let before = files(&root);
    let lock = OutputDirectory::create(&staging, None).unwrap();
    let error = compact::in_place(&root).unwrap_err().to_string();
    assert!(error.contains("another run (pid "), "{error}");
    assert!(staging.join(".partial").exists());
    drop(lock);
    fs::remove_dir_all(&staging).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("theirs"), "theirs").unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &staging).unwrap();
    let error = compact::in_place(&root).unwrap_err().to_string();
    assert!(error.contains(".out.compacting"), "{error}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    assert_eq!(files(&root), before);
}

#[test]
fn a_failure_leaves_nothing_beside_the_data_set() {
    let parent = written();
    let root = parent.path().join("out");
    // Its footer is whole, its rows are not.
    let (name, mut bytes) = files(&root).into_iter().find(|(name, _)| name.starts_with("branches")).unwrap();
    bytes.iter_mut().skip(4).take(64).for_each(|byte| *byte = 0xff);
    fs::write(root.join(name), bytes).unwrap();
    let before = files(&root);
    compact::in_place(&root).unwrap_err();
    compact::beside(&root, &parent.path().join("beside"), None).unwrap_err();
    assert_eq!(files(&root), before);
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
}

#[test]
fn a_file_beyond_the_limit_is_an_error_and_not_cut() {
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join("file"), "12345").unwrap();
    let file = StoredFile::new(&store::open(parent.path()).unwrap(), "file");
    assert_eq!(file.read_whole(5).unwrap(), b"12345");
    assert!(matches!(file.read_whole(4), Err(DataSetError::Damaged { .. })));
}
