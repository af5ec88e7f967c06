//! Every engine that docs/analysis/engines.md names opens every table as its users would,
//! reads every column of every row, and finds in it what PyArrow finds.

use std::{collections::BTreeMap, fs, sync::Arc, time::Duration};

use joular_tests::{
    java, notes, paths,
    process::Running,
    python::{COMMON, ENGINES, Environment},
    shared::Shared,
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{bad_sets, joular_bpf, replay::recording};

/// Spark takes half a minute on a busy machine. This only bounds a hang.
const LIMIT: Duration = Duration::from_secs(180);

/// What the names of folders say: columns, but not in the files.
const PARTITIONS: [&str; 2] = ["date", "host"];

/// Figures by table and column; see figures.py.
type Figures = BTreeMap<String, (u64, Map<String, Value>)>;

/// A folder with the data set `out`: of one host several files per table, of another names
/// that nobody wants to read.
fn recorded() -> Arc<TempDir> {
    static RECORDED: Shared<TempDir> = Shared::new();
    let record = || {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("out");
        let arguments = ["--replay", &recording(), "--quiet", "--flush", "4s", "--output", out.to_str().unwrap()];
        let finished = joular_bpf(&arguments);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        bad_sets::hostile(&out);
        Ok(folder)
    };
    RECORDED.get(record).unwrap()
}

/// What an engine finds, and what the documented example of it prints.
fn found_by(engine: &str, environment: &Environment) -> (Figures, String) {
    let folder = recorded();
    let mut script = environment.script("figures.py").unwrap();
    let running = Running::spawn(engine, script.arg(engine).current_dir(folder.path())).unwrap();
    let finished = running.finish(LIMIT).unwrap();
    assert_eq!(finished.code(), Some(0), "{engine}: {}", finished.stderr);
    let mut answer: Value = serde_json::from_str(&finished.stdout).unwrap();
    let tables = answer["tables"].as_object_mut().unwrap().iter_mut();
    let figures = tables.map(|(table, found)| {
        let columns = found["columns"].as_object().unwrap().clone();
        (table.clone(), (found["rows"].as_u64().unwrap(), columns))
    });
    (figures.collect(), answer["said"].as_str().unwrap().to_owned())
}

fn expected() -> Arc<Figures> {
    static EXPECTED: Shared<Figures> = Shared::new();
    EXPECTED.get(|| Ok(found_by("pyarrow", &COMMON).0)).unwrap()
}

#[track_caller]
fn expect_same(engine: &str, found: &Figures, expected: &Figures) {
    assert!(found.keys().eq(expected.keys()), "{engine} finds the tables {:?}", found.keys());
    for (table, (rows, columns)) in expected {
        let (found_rows, found_columns) = &found[table];
        assert_eq!(found_rows, rows, "{engine}: rows of {table}");
        assert!(found_columns.keys().eq(columns.keys()), "{engine}: columns of {table}: {:?}", found_columns.keys());
        for (column, figures) in columns {
            let what = "count, total, and of texts first and last";
            assert_eq!(&found_columns[column], figures, "{engine}: {what} of {table}.{column}");
        }
    }
}

/// Tables and columns of the schema that is written now, as docs/schema.md lists them.
fn documented() -> BTreeMap<String, Vec<String>> {
    let text = fs::read_to_string(paths::root().join("docs/schema.md")).unwrap();
    // Rollups have some tables in another form, which `rollup` is tested with.
    let sections = text.split("\n### ").skip(1).filter(|section| !section.lines().next().unwrap().ends_with("rollup"));
    let tables = sections.map(|section| {
        let columns = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        (section.lines().next().unwrap().to_owned(), columns.map(str::to_owned).collect())
    });
    tables.collect()
}

#[test]
fn what_engines_are_compared_with_is_the_whole_data_set() {
    let expected = expected();
    let mut documented = documented();
    // Only rollups have amounts and only commands marks, and the others have to be asked for: the recording has none of them.
    for table in ["amounts", "marks", "counters", "allocations", "collections", "ages", "gc_charges", "io"] {
        assert!(documented.remove(table).is_some(), "{table}");
    }
    for (table, columns) in &mut documented {
        if table != "stacks.frames" {
            columns.extend(PARTITIONS.map(str::to_owned));
        }
        columns.sort();
    }
    assert_eq!(documented.len(), 11, "{:?}", documented.keys());
    let columns = expected.iter().map(|(table, (_, columns))| (table.clone(), columns.keys().cloned().collect()));
    assert_eq!(columns.collect::<BTreeMap<String, Vec<String>>>(), documented);

    let total = |table: &str, column: &str| expected[table].1[column][1].as_u64().unwrap();
    assert_eq!(expected["runs"].1["schema_version"], json!([2, 2 * 11]));
    let hosts = &expected["runs"].1["host"];
    assert!(hosts[0] == 2 && hosts[2] != hosts[3], "{hosts}");
    assert_eq!(expected["stacks.frames"].0, total("stacks", "depth"));
    assert_eq!(total("threads", "energy_uj"), total("windows", "attributed_uj"));
    for (table, (rows, _)) in expected.iter() {
        assert!(*rows >= 2, "{table} has {rows} rows");
    }
}

#[test]
fn duckdb_reads_every_column() {
    expect_same("DuckDB", &found_by("duckdb", &COMMON).0, &expected());
}

#[test]
fn pandas_reads_every_column() {
    expect_same("pandas", &found_by("pandas", &COMMON).0, &expected());
}

#[test]
fn polars_reads_every_column() {
    expect_same("polars", &found_by("polars", &COMMON).0, &expected());
}

/// `None`, and the test is skipped, where the large engines cannot be installed.
fn found_by_large(engine: &str) -> Option<Figures> {
    if let Err(error) = ENGINES.interpreter() {
        notes::skipped(&format!("PyPI's packages of {engine} cannot be installed: {error:#}"));
        return None;
    }
    let (figures, said) = found_by(engine, &ENGINES);
    assert!(said.contains("Hot.heavy"), "the example for {engine} does not show the hottest method: {said}");
    Some(figures)
}

#[test]
fn clickhouse_reads_every_column() {
    let Some(found) = found_by_large("clickhouse") else { return };
    expect_same("ClickHouse", &found, &expected());
}

#[test]
fn iceberg_takes_the_files_and_reads_every_column_that_is_in_them() {
    let Some(found) = found_by_large("iceberg") else { return };
    let mut expected = (*expected()).clone();
    for (_, columns) in expected.values_mut() {
        columns.retain(|column, _| !PARTITIONS.contains(&column.as_str()));
    }
    expect_same("PyIceberg", &found, &expected);
}

#[test]
fn sail_reads_every_column() {
    let Some(found) = found_by_large("sail") else { return };
    expect_same("Sail", &found, &expected());
}

#[test]
fn spark_reads_every_column() {
    if let Some(why) = no_spark() {
        return notes::skipped(&why);
    }
    let Some(found) = found_by_large("spark") else { return };
    expect_same("Spark", &found, &expected());
}

/// Why there is no Spark here.
pub fn no_spark() -> Option<String> {
    if java_release() < Some(17) {
        return Some("Spark needs Java 17 or later (Debian and Ubuntu: default-jdk-headless)".to_owned());
    }
    let error = ENGINES.interpreter().err()?;
    Some(format!("PyPI's packages of Spark cannot be installed: {error:#}"))
}

/// `17` of `javac 17.0.15`.
fn java_release() -> Option<u32> {
    java::version().ok()?.strip_prefix("javac ")?.split('.').next()?.parse().ok()
}
