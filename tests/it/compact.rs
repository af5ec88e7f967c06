//! Tests `compact` as its users have it: other engines find the same rows before and after, and it
//! may be killed at any moment.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use joular_tests::{dataset::DataSet, process::Finished, profiler::Run};
use serde_json::Value;
use tempfile::TempDir;

use crate::{LIMIT, joular_bpf, replay::recording};

/// Tables whose rows have a sum of energy to compare.
const SUMS: &[(&str, &str)] = &[
    ("branches", "energy_uj"),
    ("jvms", "energy_uj"),
    ("methods", "self_uj"),
    ("quality", "energy_uj"),
    ("threads", "energy_uj"),
    ("weights", "cpu_ns"),
    ("windows", "measured_uj"),
];

/// A data set with a file per table and second.
fn recorded() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("out");
    let output = dir.to_str().unwrap();
    expect_success(&joular_bpf(&["--replay", &recording(), "--quiet", "--flush", "1s", "--output", output]));
    (parent, dir)
}

fn expect_success(finished: &Finished) {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

fn compact(dir: &Path, options: &[&str]) -> Finished {
    joular_bpf(&[&["compact", dir.to_str().unwrap()], options].concat())
}

/// Rows and sums of all tables, and the distinct stacks, as DuckDB finds them.
fn figures(dir: &Path) -> Vec<Value> {
    let of = |(table, column): &(&str, &str)| {
        format!("SELECT '{table}' AS t, count(*) AS n, sum({column})::BIGINT AS s FROM {table}")
    };
    let mut sql: Vec<String> = SUMS.iter().map(of).collect();
    sql.push("SELECT 'stacks', count(DISTINCT stack_id), sum(DISTINCT depth)::BIGINT FROM stacks".to_owned());
    sql.push("SELECT 'processes', count(*), sum(pid)::BIGINT FROM processes".to_owned());
    DataSet::at(dir).rows(&format!("{} ORDER BY t", sql.join(" UNION ALL "))).unwrap()
}

#[test]
fn other_engines_find_the_same_in_fewer_files() {
    let (parent, dir) = recorded();
    let before = figures(&dir);
    let (files, bytes) = (DataSet::at(&dir).parquet_files().unwrap(), DataSet::at(&dir).parquet_bytes().unwrap());
    let beside = parent.path().join("beside");
    expect_success(&compact(&dir, &["--output", beside.to_str().unwrap()]));
    let finished = compact(&dir, &["--json"]);
    expect_success(&finished);
    let done: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(done["files_before"], files, "{done}");
    for compacted in [&dir, &beside] {
        assert_eq!(figures(compacted), before);
        let data = DataSet::at(compacted);
        assert_eq!(done["files_after"], data.parquet_files().unwrap(), "{done}");
        assert_eq!(done["bytes_after"], data.parquet_bytes().unwrap(), "{done}");
        assert!(data.parquet_files().unwrap() < files && data.parquet_bytes().unwrap() < bytes, "{done}");
        data.expect_none(
            "each stack once",
            "SELECT stack_id FROM stacks GROUP BY run_id, stack_id HAVING count(*) > 1",
        )
        .unwrap();
        expect_success(&joular_bpf(&["audit", compacted.to_str().unwrap()]));
    }
    let again = compact(&dir, &[]);
    assert!(again.stdout.contains("nothing to merge"), "{again:?}");
}

#[test]
fn killed_at_any_moment_the_data_set_is_whole() {
    const KILLS: u32 = 25;
    let (_parent, original) = recorded();
    let before = figures(&original);
    let copy = || {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("out");
        for (path, bytes) in DataSet::at(&original).files().unwrap() {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        (parent, dir)
    };
    let (_timed, dir) = copy();
    let start = Instant::now();
    expect_success(&compact(&dir, &[]));
    let whole = start.elapsed();
    let mut unfinished = 0;
    for kill in 0..KILLS {
        let (parent, dir) = copy();
        let mut running = Run::new().argument("compact").argument(&dir).spawn().unwrap();
        // Moments all over its time, until after its end.
        thread::sleep(whole * kill / (KILLS - 1));
        running.kill();
        drop(running);
        assert_eq!(figures(&dir), before, "kill {kill}");
        unfinished += u32::from(DataSet::at(&dir).parquet_files().unwrap() > 20);
        // Whatever it left does not stand in the way of the next.
        let finished = Run::new().argument("compact").argument(&dir).finish(LIMIT.max(Duration::from_secs(1))).unwrap();
        expect_success(&finished);
        assert_eq!(figures(&dir), before, "kill {kill}, again");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1, "kill {kill} left something");
    }
    assert!(unfinished > 0, "none of {KILLS} kills came before the end");
}
