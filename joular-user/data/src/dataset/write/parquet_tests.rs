//! Tests what the data set on disk promises.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use ::parquet::arrow::{ARROW_SCHEMA_META_KEY, arrow_reader::ParquetRecordBatchReaderBuilder};
use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};

use crate::dataset::layout::path_part;
use crate::{
    attribution::window_report::WindowReport,
    dataset::{DEFAULT_FLUSH_NS, OutputDirectory, ParquetOutput, schema::key},
    events::RunInfo,
    fixture::{self, BUSY, Load, SECOND, SMALL},
    output::*,
    stacks::StackTable,
};

fn record(root: &Path, load: Load, windows: u64) {
    let directory = OutputDirectory::create(root, None).unwrap();
    fixture::play(&mut ParquetOutput::new(directory, DEFAULT_FLUSH_NS), load, windows).unwrap();
}

/// All data files below a directory, by path relative to it.
fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn batches(bytes: Vec<u8>) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap().build().unwrap();
    reader.map(Result::unwrap).collect()
}

/// Sum of a column over all files of a table.
fn sum(root: &Path, table: &str, column: &str) -> i64 {
    files(&root.join(table))
        .into_values()
        .flat_map(batches)
        .map(|batch| {
            let column = batch.column_by_name(column).unwrap().as_primitive::<Int64Type>();
            column.iter().flatten().sum::<i64>()
        })
        .sum()
}

#[test]
fn files_are_rotated_by_window_time_and_by_date() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), SMALL, 45);
    let names: Vec<String> =
        files(&root.path().join("windows")).into_keys().map(|path| path.display().to_string()).collect();
    assert_eq!(
        names,
        [
            "date=2026-03-01/host=node-1/node-1-20260301T235930-4711-0000.parquet",
            "date=2026-03-02/host=node-1/node-1-20260301T235930-4711-0001.parquet",
        ]
    );
}

#[test]
fn equal_runs_give_equal_bytes() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(a.path(), BUSY, 3);
    record(b.path(), BUSY, 3);
    assert_eq!(files(a.path()), files(b.path()));
}

#[test]
fn sums_survive_the_way_to_disk() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), SMALL, 40);
    let audit = |column| sum(root.path(), "windows", column);
    assert_eq!(sum(root.path(), "threads", "energy_uj"), audit("attributed_uj"));
    assert_eq!(audit("measured_uj"), audit("attributed_uj") + audit("static_uj") + audit("unattributed_uj"));
    assert_eq!(audit("unattributed_uj"), audit("kernel_uj") + audit("profiler_uj"));
    assert_eq!(audit("lost_stack_ring_full"), 20);
    assert_eq!(sum(root.path(), "runs", "measured_uj"), audit("measured_uj"));
}

#[test]
fn a_run_that_crashed_left_its_row() {
    let root = tempfile::tempdir().unwrap();
    let mut output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), SECOND);
    output.run_started(&fixture::run()).unwrap();
    drop(output);
    let (_, bytes) = files(root.path()).pop_first().unwrap();
    let batch = batches(bytes).remove(0);
    assert_eq!(batch.num_rows(), 1);
    assert_eq!(batch.column_by_name("ended_at").unwrap().null_count(), 1);
}

#[test]
fn a_run_that_the_data_set_has_is_refused() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), SMALL, 3);
    let before = files(root.path());
    let directory = OutputDirectory::create(root.path(), None).unwrap();
    let mut again = ParquetOutput::new(directory, SECOND);
    let error = again.run_started(&fixture::run()).unwrap_err();
    assert!(matches!(error, OutputError::RunExists { .. }), "{error}");
    assert!(error.to_string().contains("choose another directory with --output"), "{error}");
    assert_eq!(files(root.path()), before);
    let other = RunInfo { run_id: "node-1-20260301T235930-4712".into(), ..fixture::run() };
    again.run_started(&other).unwrap();
}

#[test]
fn a_branch_is_described_once() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), SMALL, 45);
    let mut described: Vec<i64> = Vec::new();
    for batch in files(&root.path().join("stacks")).into_values().flat_map(batches) {
        described.extend(batch.column_by_name("branch_id").unwrap().as_primitive::<Int64Type>().values());
    }
    let count = described.len();
    described.sort_unstable();
    described.dedup();
    assert_eq!(described.len(), count);
    for batch in files(&root.path().join("branches")).into_values().flat_map(batches) {
        for id in batch.column_by_name("branch_id").unwrap().as_primitive::<Int64Type>().values() {
            assert!(described.binary_search(id).is_ok());
        }
    }
}

#[test]
fn a_new_stack_table_describes_what_has_no_row_yet() {
    let root = tempfile::tempdir().unwrap();
    let mut output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), DEFAULT_FLUSH_NS);
    output.run_started(&fixture::run()).unwrap();
    let mut old = StackTable::default();
    output.window(&fixture::window(SMALL, &mut old, 0), &old).unwrap();
    // Numbered in another order, and with one path more.
    let mut new = StackTable::succeeding(&old);
    new.frame_id(fixture::frame(3));
    output.window(&fixture::window(Load { branches: 8, ..SMALL }, &mut new, 0), &new).unwrap();
    output.run_ended(&fixture::end()).unwrap();
    let ids = |table: &str| -> Vec<i64> {
        let batches = files(&root.path().join(table)).into_values().flat_map(batches);
        batches.flat_map(|b| b["branch_id"].as_primitive::<Int64Type>().values().to_vec()).collect()
    };
    let (described, used) = (ids("stacks"), ids("branches"));
    assert_eq!(described.len(), 7 + 1);
    assert!(used.iter().all(|id| described.contains(id)));
}

#[test]
fn a_file_says_what_it_is() {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), SMALL, 1);
    for (path, bytes) in files(root.path()) {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let metadata = reader.metadata().file_metadata();
        let value = |key: &str| {
            let pairs = metadata.key_value_metadata().unwrap();
            pairs.iter().find(|pair| pair.key == key).unwrap().value.clone().unwrap()
        };
        assert_eq!(value(key::HOST), "node-1");
        assert_eq!(value(key::SCHEMA_VERSION), "11");
        assert!(path.starts_with(value(key::TABLE)), "{}", path.display());
        // Engines go by the Parquet types alone; comments are in the run's own file.
        let keys = || metadata.key_value_metadata().unwrap().iter().map(|pair| pair.key.as_str());
        assert!(keys().all(|key| key != ARROW_SCHEMA_META_KEY), "{}", path.display());
        assert_eq!(keys().any(|key| key == key::COMMENTS), path.starts_with("runs"), "{}", path.display());
        let lists = metadata.schema_descr().columns().iter().filter(|column| column.path().parts().len() > 1);
        assert!(lists.clone().all(|column| column.path().parts()[1..3] == ["list", "element"]), "{}", path.display());
        if path.starts_with("runs") {
            let comments: serde_json::Value = serde_json::from_str(&value(key::COMMENTS)).unwrap();
            assert!(comments["methods"]["self_uj"].as_str().unwrap().contains("unit: µJ"), "{comments}");
        }
    }
}

#[test]
fn a_full_disk_leaves_whole_files() {
    let mount = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(mount.path()).status();
    if !mounted.is_ok_and(|status| status.success()) {
        joular_tests::notes::skipped("mounting a small tmpfs needs root");
        return;
    }
    let directory = OutputDirectory::create(mount.path(), None).unwrap();
    let mut output = ParquetOutput::new(directory, SECOND);
    let error = fixture::play(&mut output, BUSY, 100).unwrap_err();
    let later = output.window(&WindowReport::default(), &StackTable::default()).unwrap_err();
    drop(output);
    let whole = files(mount.path());
    let rows: usize = whole.clone().into_values().flat_map(batches).map(|batch| batch.num_rows()).sum();
    let leftovers = fs::read_dir(mount.path().join(".partial")).unwrap().count();
    let unmounted = Command::new("umount").arg(mount.path()).status().unwrap();
    assert!(unmounted.success());
    let OutputError::DiskFull { path } = error else { panic!("{error}") };
    assert!(!whole.contains_key(path.strip_prefix(mount.path()).unwrap()));
    assert!(matches!(later, OutputError::AfterFailure), "{later}");
    assert!(rows > 0);
    assert_eq!(leftovers, 0);
}

/// Writes a data set for other engines to read: `JOULAR_DATASET=DIR`, and
/// prints its size. Does nothing but check the bound without it.
#[test]
fn a_jvm_minute_is_small() {
    let temporary = tempfile::tempdir().unwrap();
    let root = std::env::var_os("JOULAR_DATASET").map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    record(&root, BUSY, 60);
    let mut total = 0;
    for table in
        ["runs", "windows", "processes", "threads", "methods", "branches", "jvms", "quality", "weights", "stacks"]
    {
        let files = files(&root.join(table));
        let size: usize = files.values().map(Vec::len).sum();
        println!("{table}: {size} bytes a minute in {} files", files.len());
        total += size;
    }
    let per_jvm = total / BUSY.processes as usize;
    println!("{per_jvm} bytes per JVM and minute");
    assert!(per_jvm < 512 * 1024);
}

#[test]
fn names_cannot_leave_their_folder() {
    for (name, expected) in [
        ("node-1.example.org", "node-1.example.org"),
        ("../../etc", "_.._etc"),
        ("a/b=c d", "a_b_c_d"),
        ("", "unknown"),
        ("..", "unknown"),
    ] {
        assert_eq!(path_part(name), expected);
    }
}

#[test]
fn it_says_once_that_it_has_let_go_of_what_it_wrote() {
    let root = tempfile::tempdir().unwrap();
    let mut output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), 3 * SECOND);
    let mut stacks = StackTable::default();
    output.run_started(&fixture::run()).unwrap();
    let mut has_let_go = Vec::new();
    for index in 0..7 {
        let report = fixture::window(SMALL, &mut stacks, index);
        output.window(&report, &stacks).unwrap();
        has_let_go.push((output.has_let_go(), output.has_let_go()));
    }
    let written = [false, false, true, false, false, true, false].map(|has| (has, false));
    assert_eq!(has_let_go, written);
}
