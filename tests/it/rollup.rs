//! Tests `rollup` as its users have it: other engines find the same sums before and after.

use std::path::Path;

use joular_tests::dataset::DataSet;
use serde_json::Value;

use crate::{joular_bpf, replay::recording};

/// What must be the same, whatever the length of windows.
pub(crate) const SUMS: &str = "
    SELECT (SELECT sum(energy_uj)::BIGINT FROM branches) AS branches,
           (SELECT sum(samples)::BIGINT FROM branches) AS samples,
           (SELECT sum(self_uj)::BIGINT FROM methods) AS methods,
           (SELECT sum(energy_uj)::BIGINT FROM threads) AS threads,
           (SELECT sum(cpu_ns)::BIGINT FROM threads) AS cpu_ns,
           (SELECT sum(energy_uj)::BIGINT FROM quality) AS quality,
           (SELECT sum(gc_uj + jit_uj + vm_uj)::BIGINT FROM jvms) AS jvms,
           (SELECT sum(measured_uj)::BIGINT FROM windows) AS measured,
           (SELECT sum(other_processes_uj)::BIGINT FROM windows) AS others,
           (SELECT count(*) FROM (SELECT DISTINCT pid, process_start FROM processes)) AS processes";

pub(crate) fn rows(root: &Path, sql: &str) -> Vec<Value> {
    DataSet::at(root).rows(sql).unwrap()
}

#[test]
fn other_engines_find_the_same_sums_in_longer_windows() {
    let parent = tempfile::tempdir().unwrap();
    let (raw, rollup) = (parent.path().join("raw"), parent.path().join("rollup"));
    let paths = [raw.to_str().unwrap(), rollup.to_str().unwrap()];
    let recorded = joular_bpf(&["--replay", &recording(), "--quiet", "--flush", "1s", "--output", paths[0]]);
    assert_eq!(recorded.code(), Some(0), "{recorded:?}");
    let finished = joular_bpf(&["rollup", paths[0], "--output", paths[1], "--window", "1h", "--json"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let done: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert!(done["windows_before"].as_u64() > done["windows_after"].as_u64(), "{done}");
    assert_eq!(rows(&rollup, SUMS), rows(&raw, SUMS));
    // What is inferred moves energy and makes none.
    let moved =
        "SELECT sum(inferred_uj)::BIGINT AS branches, (SELECT sum(inferred_self_uj)::BIGINT FROM methods) AS methods
                 FROM branches";
    assert_eq!(rows(&rollup, moved), [serde_json::json!({"branches": 0, "methods": 0})]);
    // This program recorded and rolled up.
    let by = "SELECT version, rolled_up_by FROM runs";
    let (version, before) = (rows(&rollup, by)[0]["version"].clone(), rows(&raw, by)[0].clone());
    assert_eq!(rows(&rollup, by), [serde_json::json!({"version": version, "rolled_up_by": before["version"]})]);
    assert_eq!(before["rolled_up_by"], Value::Null);
    let audit = joular_bpf(&["audit", paths[1]]);
    assert_eq!(audit.code(), Some(0), "{audit:?}");
    let reports = paths.map(|path| joular_bpf(&["report", path, "--by", "method", "--top", "0", "--csv"]));
    let joules = reports.map(|report| {
        assert_eq!(report.code(), Some(0), "{report:?}");
        report.stdout.lines().map(|line| line.split(',').take(6).collect::<Vec<_>>().join(",")).collect::<Vec<_>>()
    });
    assert_eq!(joules[1], joules[0]);
    let again = joular_bpf(&["rollup", paths[1], "--output", paths[0]]);
    assert!(again.code() != Some(0) && again.stderr.contains("it is a rollup already"), "{again:?}");
}

#[test]
fn runs_of_a_rotated_recording_have_the_same_sums_and_rollup() {
    let parent = tempfile::tempdir().unwrap();
    let path = |name: &str| parent.path().join(name).to_str().unwrap().to_owned();
    let replay = |output: &str, more: &[&str]| {
        let recording = recording();
        let arguments = [&["--replay", &recording, "--quiet", "--output", output], more].concat();
        let finished = joular_bpf(&arguments);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
    };
    let [whole, runs, minutes] = ["whole", "runs", "minutes"].map(&path);
    replay(&whole, &[]);
    replay(&runs, &["--rotate", "10s"]);
    assert_eq!(joular_bpf(&["audit", &runs]).code(), Some(0));
    let finished = joular_bpf(&["rollup", &runs, "--output", &minutes]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let count = "SELECT count(*) AS runs FROM runs";
    let runs_before = rows(Path::new(&runs), count);
    assert!(runs_before != rows(Path::new(&whole), count), "{runs_before:?}");
    assert_eq!(rows(Path::new(&minutes), count), runs_before);
    for data in [&runs, &minutes] {
        assert_eq!(rows(Path::new(data), SUMS), rows(Path::new(&whole), SUMS));
    }
    // A limit that holds one run of ten seconds beside the last one.
    let few = path("few");
    replay(&few, &["--rotate", "10s", "--keep", "10s"]);
    assert_eq!(joular_bpf(&["audit", &few]).code(), Some(0));
    let left = rows(Path::new(&few), count)[0]["runs"].as_u64();
    assert!(left <= Some(2), "{left:?}");
}
