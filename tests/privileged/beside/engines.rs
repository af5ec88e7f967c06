//! Tests that real readers from PyPI open what we write, without being told anything.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::Result;
use joular_tests::{
    java::Workload,
    profiler::{END, Output, Run},
    python,
    shared::Shared,
};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(10);

/// Tables and columns that people and scripts rely on.
const COLUMNS: &[(&str, &[&str])] = &[
    ("runs", &["host"]),
    ("processes", &["host", "pid", "comm"]),
    (
        "windows",
        &[
            "window_start",
            "window_ns",
            "host",
            "domain",
            "socket",
            "source",
            "measured_uj",
            "attributed_uj",
            "static_uj",
            "unattributed_uj",
            "other_processes_uj",
            "kernel_uj",
            "profiler_uj",
            "unslotted_uj",
            "failed_reads_uj",
            "suspended_uj",
            "idle_uj",
            "cpu_elapsed_ns",
            "cpu_busy_ns",
            "cpu_idle_ns",
            "cpu_unslotted_ns",
            "samples",
        ],
    ),
    (
        "threads",
        &["window_start", "host", "pid", "tid", "comm", "thread_name", "category", "cpu_ns", "samples", "energy_uj"],
    ),
    (
        "methods",
        &[
            "window_start",
            "host",
            "pid",
            "method",
            "signature",
            "kind",
            "self_uj",
            "total_uj",
            "self_cpu_ns",
            "total_cpu_ns",
            "self_samples",
            "total_samples",
        ],
    ),
    ("branches", &["window_start", "host", "pid", "tid", "branch_id", "cpu_ns", "samples", "energy_uj"]),
    (
        "jvms",
        &[
            "window_start",
            "host",
            "pid",
            "energy_uj",
            "cpu_ns",
            "vm_tax_uj",
            "gc_uj",
            "jit_uj",
            "class_loading_uj",
            "c2_uj",
        ],
    ),
    (
        "quality",
        &["window_start", "host", "pid", "category", "unwinder", "walk_end", "is_complete", "unnamed", "samples"],
    ),
    ("weights", &["window_start", "host", "claimant", "pid", "tid", "socket", "core", "cpu_ns", "corun_ns", "cycles"]),
    ("stacks", &["branch_id", "stack_id", "frames", "folded", "unwinder", "walk_end", "is_complete"]),
];

/// The data set that all tests here read.
fn recorded() -> Result<Arc<Output>> {
    static RUN: Shared<Output> = Shared::new();
    RUN.get(record)
}

fn record() -> Result<Output> {
    let output = Output::new()?;
    let jvm = Workload::new("Busy").dont_inline("Busy::spin").frame_pointers().start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", "4s").output(output.dir());
    let finished = run.finish(LIMIT + END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    Ok(output)
}

#[test]
fn duckdb_pandas_and_polars_read_every_table_and_agree() -> Result<()> {
    let output = recorded()?;
    let lines = python::script("engines.py", output.dir(), &[])?;
    let tables = lines.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    for (name, columns) in COLUMNS {
        let table = tables.iter().find(|table| table["table"] == *name).unwrap_or_else(|| panic!("no table {name}"));
        assert!(table["duckdb"]["rows"].as_u64() > Some(0), "{name} is empty");
        for engine in ["duckdb", "pandas", "polars"] {
            assert_eq!(table[engine]["rows"], table["duckdb"]["rows"], "{name}: rows by {engine}");
            let seen = table[engine]["columns"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let seen = seen.collect::<BTreeSet<_>>();
            let missing = columns.iter().filter(|column| !seen.contains(*column)).collect::<Vec<_>>();
            assert!(missing.is_empty(), "{name}: {engine} sees no {missing:?} among {seen:?}");
        }
    }
    Ok(())
}

#[test]
fn the_one_line_query_works_as_written() -> Result<()> {
    let output = recorded()?;
    // Written for a data set in `out`, run in the directory that has it.
    let parent = joular_tests::dataset::DataSet::at(output.beside(""));
    let rows = parent
        .rows("SELECT method, sum(self_uj)/1e6 AS joules FROM 'out/methods/**/*.parquet' GROUP BY 1 ORDER BY 2 DESC")?;
    assert_eq!(rows[0]["method"], "Busy.spin", "{rows:?}");
    assert!(rows[0]["joules"].as_f64() > Some(1.0), "{rows:?}");
    Ok(())
}

#[test]
fn energies_are_integers_and_times_are_utc() -> Result<()> {
    let output = recorded()?;
    output.data.expect_none(
        "energy columns that are not 64-bit integers",
        "SELECT name, type FROM parquet_schema('*/**/*.parquet') WHERE name LIKE '%\\_uj' ESCAPE '\\' AND type <> 'INT64'",
    )?;
    let rows = output.data.rows("SELECT DISTINCT typeof(window_start) AS type FROM windows")?;
    assert_eq!(rows, [serde_json::json!({"type": "TIMESTAMP WITH TIME ZONE"})]);
    Ok(())
}
