//! Runs what docs/fleet shows: DuckDB, ClickHouse and a Spark cluster answer alike on the minutes of a
//! made-up fleet, and what they compact has the sums of what was recorded, to the microjoule.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use joular_data::events::{Event, Service, ServiceFrom};
use joular_tests::{
    dataset::{DataSet, share},
    notes, paths,
    process::Running,
    python::{COMMON, ENGINES},
    shared::Shared,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{bad_sets, engines, joular_bpf};

/// A cluster starts in ten seconds, on a busy machine in thirty. This only bounds a hang.
const LIMIT: Duration = Duration::from_secs(240);

const HOUR_US: i64 = 3_600_000_000;

/// A name that ends a text in SQL, where it is not escaped, and one that pretends to be a number.
pub(crate) const EVIL_SERVICE: &str = r"o'rders\'; --";
const NUMERIC_HOST: &str = "7";

/// Host, hours after the others, and version of the service `checkout` there.
const HOSTS: [(&str, i64, &str); 3] = [("web-1", 0, "1.0"), ("web-2", 1, "2.0"), (NUMERIC_HOST, 0, "2.0")];

const SETTINGS: [&str; 7] =
    ["service=checkout", "before=1.0", "after=2.0", "work_before=1000", "work_after=1500", "price=0.3", "grams=250"];
const QUESTIONS: [&str; 6] = ["services", "methods", "hosts", "vm_tax", "regressions", "cost"];

/// A folder with the data sets `raw` and `minutes` of all hosts, and the place `shipped` that has the minutes as bundles.
pub(crate) fn fleet() -> Arc<TempDir> {
    static FLEET: Shared<TempDir> = Shared::new();
    let make = || {
        let folder = tempfile::tempdir()?;
        let (raw, minutes) = (folder.path().join("raw"), folder.path().join("minutes"));
        for (host, hours, version) in HOSTS {
            record(&raw, host, hours, version);
        }
        let rolled = joular_bpf(&["rollup", raw.to_str().unwrap(), "--output", minutes.to_str().unwrap()]);
        assert_eq!(rolled.code(), Some(0), "{rolled:?}");
        let shipped = folder.path().join("shipped");
        share(&shipped)?;
        let done = joular_bpf(&["ship", raw.to_str().unwrap(), shipped.to_str().unwrap()]);
        assert_eq!(done.code(), Some(0), "{done:?}");
        Ok(folder)
    };
    FLEET.get(make).unwrap()
}

/// Records a host with two services, one of which is in another version there.
pub(crate) fn record(raw: &Path, host: &str, hours: i64, version: &str) {
    let mut jvms = BTreeMap::new();
    bad_sets::replay(raw, |mut event| {
        match &mut event {
            Event::RunStarted(run) => {
                run.run_id = format!("run-of-{host}");
                run.host = host.into();
                run.started.0 += hours * HOUR_US;
            }
            Event::Window(window) => window.wall_start.0 += hours * HOUR_US,
            Event::Process(process) if process.is_target => {
                let count = jvms.len();
                let is_first = *jvms.entry((process.pid, process.start_boottime_ns)).or_insert(count) == 0;
                let (name, version) = if is_first { ("checkout", Some(version)) } else { (EVIL_SERVICE, None) };
                let version = version.map(Into::into);
                process.service = Some(Service { name: name.into(), version, from: ServiceFrom::Rule });
            }
            _ => {}
        }
        Some(event)
    });
}

/// What an engine answers, by question, and where it writes.
struct Answers {
    rows: BTreeMap<String, Vec<Value>>,
    executors: Option<u64>,
    output: PathBuf,
}

/// Asks every question of the minutes, after compacting to a folder of the engine's name.
fn ask(engine: &str, fleet: &Path) -> Answers {
    ask_place(engine, fleet, "minutes", engine)
}

/// The same of a data set in the folder, compacting to another one.
fn ask_place(engine: &str, fleet: &Path, place: &str, output: &str) -> Answers {
    let output = fleet.join(output);
    let mut command = match engine {
        "duckdb" => fleet_py(&COMMON.interpreter().unwrap(), engine),
        "clickhouse" => fleet_py(&ENGINES.interpreter().unwrap(), engine),
        _ => ENGINES.script("fleet_on_spark.py").unwrap(),
    };
    command.arg(fleet.join(place)).args(QUESTIONS).arg("--compact").arg(&output);
    command.args(SETTINGS.iter().flat_map(|setting| ["--set", setting])).args(["--set", "pue=1.4"]);
    let finished = Running::spawn(engine, command.current_dir(fleet)).unwrap().finish(LIMIT).unwrap();
    assert_eq!(finished.code(), Some(0), "{engine}: {}", finished.stderr);
    let mut answers = Answers { rows: BTreeMap::new(), executors: None, output };
    for line in finished.stdout.lines() {
        let mut answer: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{engine}: {e}: {line}"));
        match (answer["question"].as_str().map(str::to_owned), answer["rows"].take()) {
            (Some(question), Value::Array(rows)) => drop(answers.rows.insert(question, rows)),
            _ => answers.executors = answer["executors"].as_u64(),
        }
    }
    assert!(answers.rows.keys().len() == QUESTIONS.len(), "{engine}: {:?}", answers.rows.keys());
    answers
}

fn fleet_py(interpreter: &Path, engine: &str) -> Command {
    let mut command = Command::new(interpreter);
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(paths::root().join("docs/fleet/fleet.py")).arg(engine);
    command
}

/// Sums by service, version, method and kind, of a data set or of a table that an engine wrote.
fn by_polars(folder: &Path) -> Value {
    let output = COMMON.script("fleet_with_polars.py").unwrap().arg(folder).output().unwrap();
    assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn duckdb(fleet: &Path) -> Arc<Answers> {
    static DUCKDB: Shared<Answers> = Shared::new();
    DUCKDB.get(|| Ok(ask("duckdb", fleet))).unwrap()
}

/// Whether two answers agree: figures with a fraction nearly, all others exactly.
fn agree(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| agree(value, right.get(key).unwrap_or(&json!("absent"))))
        }
        (Value::Number(left), Value::Number(right)) if left.is_f64() || right.is_f64() => {
            let (left, right) = (left.as_f64().unwrap(), right.as_f64().unwrap());
            (left - right).abs() <= 1e-9 * left.abs().max(right.abs())
        }
        _ => left == right,
    }
}

/// The engine answers as DuckDB does, and what it compacted has the sums that were recorded.
fn expect_same(engine: &str, answers: &Answers, fleet: &Path) {
    let expected = duckdb(fleet);
    for (question, rows) in &answers.rows {
        let wanted = &expected.rows[question];
        assert!(!rows.is_empty() && rows.len() == wanted.len(), "{engine}, {question}: {rows:?}, not {wanted:?}");
        for (row, wanted) in rows.iter().zip(wanted) {
            assert!(agree(row, wanted), "{engine}, {question}: {row}, not {wanted}");
        }
    }
    let recorded = by_polars(&fleet.join("raw"));
    for table in ["minutes", "hourly"] {
        assert_eq!(by_polars(&answers.output.join(table)), recorded, "{engine} compacts to {table}");
    }
}

/// What `sql` says of an engine's tables `minutes` and `hourly`.
fn rows(output: &Path, sql: &str) -> Vec<Value> {
    DataSet::at(output).rows(sql).unwrap()
}

#[test]
fn polars_finds_the_same_sums_as_recorded_and_rolled_up_with_every_service() {
    let fleet = fleet();
    let recorded = by_polars(&fleet.path().join("raw"));
    let keys: Vec<_> = recorded.as_array().unwrap().iter().map(|row| (row[0].as_str(), row[1].as_str())).collect();
    for key in [(Some("checkout"), Some("1.0")), (Some("checkout"), Some("2.0")), (Some(EVIL_SERVICE), None)] {
        assert!(keys.contains(&key), "{key:?} is not in {keys:?}");
    }
    assert_eq!(by_polars(&fleet.path().join("minutes")), recorded);
}

#[test]
fn duckdb_compacts_to_sorted_files_of_an_hour_with_exact_integers() {
    let fleet = fleet();
    let answers = duckdb(fleet.path());
    expect_same("DuckDB", &answers, fleet.path());
    let sums = "SELECT sum(self_uj + inferred_self_uj)::BIGINT AS uj FROM";
    let raw = DataSet::at(fleet.path().join("raw")).rows("SELECT sum(attributed_uj)::BIGINT AS uj FROM windows");
    for table in ["minutes", "hourly"] {
        assert_eq!(rows(&answers.output, &format!("{sums} {table}")), raw.as_deref().unwrap(), "{table}");
    }
    let hosts: Vec<_> = answers.rows["hosts"].iter().map(|row| row["host"].clone()).collect();
    assert!(HOSTS.iter().all(|(host, ..)| hosts.contains(&json!(host))), "{hosts:?}");
    let hours =
        "SELECT count(DISTINCT hour)::BIGINT AS hours FROM hourly WHERE hour_start = date_trunc('hour', hour_start)";
    assert_eq!(rows(&answers.output, hours), [json!({"hours": 2})]);
    let unsorted = "SELECT count(*) AS rows FROM (SELECT service, method, lag((service, method))
        OVER (PARTITION BY filename ORDER BY file_row_number) AS before
        FROM read_parquet('minutes/**/*.parquet', filename = true, file_row_number = true))
        WHERE (service, method) < before";
    assert_eq!(rows(&answers.output, unsorted), [json!({"rows": 0})]);
    let doubles = "SELECT count(*) AS columns FROM (DESCRIBE FROM hourly) WHERE column_type NOT IN
        ('BIGINT', 'VARCHAR', 'BOOLEAN', 'DATE', 'TIMESTAMP WITH TIME ZONE') AND column_name != 'hour'";
    assert_eq!(rows(&answers.output, doubles), [json!({"columns": 0})]);
}

#[test]
fn an_hour_that_is_compacted_again_stays_as_it_is() {
    let fleet = fleet();
    let first = duckdb(fleet.path());
    let hours: Vec<_> = DataSet::at(&first.output).files().unwrap().into_iter().collect();
    let (again, copy) = (fleet.path().join("again"), fleet.path().join("minutes"));
    for _ in 0..2 {
        let mut command = fleet_py(&COMMON.interpreter().unwrap(), "duckdb");
        let done = command.arg(&copy).arg("--compact").arg(&again).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let files: Vec<_> = DataSet::at(&again).files().unwrap().into_iter().collect();
        assert!(files == hours, "a repetition changed files");
        // What another engine left in a folder of an hour goes with it.
        let stale = again.join(hours[0].0.with_file_name("part-00000-other.parquet"));
        fs::write(&stale, &hours[0].1).unwrap();
    }
}

#[test]
fn what_a_larger_fleet_costs_is_measured_on_copies_of_a_host() {
    // Files of tables, and bundles.
    let measured = ["minutes", "shipped"].map(measured_on_copies);
    assert!((measured[0] - measured[1]).abs() < 0.5, "{measured:?}");
}

/// Microjoules of what is copied.
fn measured_on_copies(place: &str) -> f64 {
    let (fleet, work) = (fleet(), tempfile::tempdir().unwrap());
    let mut command = Command::new(COMMON.interpreter().unwrap());
    command
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(paths::root().join("docs/fleet/scale.py"))
        .arg(fleet.path().join(place))
        .arg(work.path());
    let finished = Running::spawn("scale.py", command.args(["3", "1"])).unwrap().finish(LIMIT).unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let figures: Vec<Value> = finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| -> Vec<f64> { figures.iter().map(|one| one[name].as_f64().unwrap()).collect() };
    let (hosts, measured, bytes) = (of("hosts"), of("measured_uj"), of("bytes"));
    assert_eq!(hosts, [1.0, 3.0]);
    assert!(measured[0] > 0.0 && (measured[1] - 3.0 * measured[0]).abs() < 0.5, "{figures:?}");
    assert!((bytes[1] / bytes[0] - 3.0).abs() < 0.1, "{figures:?}");
    assert!(of("compact_s").iter().chain(&of("methods_s")).all(|seconds| *seconds > 0.0), "{figures:?}");
    measured[0]
}

#[test]
fn clickhouse_answers_and_compacts_as_duckdb_does() {
    if let Err(error) = ENGINES.interpreter() {
        return notes::skipped(&format!("PyPI's packages of ClickHouse cannot be installed: {error:#}"));
    }
    let fleet = fleet();
    expect_same("ClickHouse", &ask("clickhouse", fleet.path()), fleet.path());
}

#[test]
fn bundles_are_asked_and_compacted_as_files_of_tables_are() {
    let fleet = fleet();
    expect_same("DuckDB, of bundles", &ask_place("duckdb", fleet.path(), "shipped", "of-bundles"), fleet.path());
    match ENGINES.interpreter() {
        Ok(_) => {
            let answers = ask_place("clickhouse", fleet.path(), "shipped", "of-bundles-too");
            expect_same("ClickHouse, of bundles", &answers, fleet.path());
        }
        Err(error) => notes::skipped(&format!("PyPI's packages of ClickHouse cannot be installed: {error:#}")),
    }
    // A run that is there in both forms would count twice.
    let both = tempfile::tempdir().unwrap();
    for folder in ["raw", "runs"] {
        fs::create_dir(both.path().join(folder)).unwrap();
        fs::write(both.path().join(folder).join("x.parquet"), "").unwrap();
    }
    let refused = fleet_py(&COMMON.interpreter().unwrap(), "duckdb").arg(both.path()).output().unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("one of the two"));
}

#[test]
fn a_spark_cluster_of_two_workers_answers_and_compacts_as_duckdb_does() {
    if let Some(why) = engines::no_spark() {
        return notes::skipped(&why);
    }
    let fleet = fleet();
    let answers = ask("spark", fleet.path());
    assert_eq!(answers.executors, Some(2));
    expect_same("Spark", &answers, fleet.path());
    let of_bundles = ask_place("spark", fleet.path(), "shipped", "of-bundles-by-spark");
    expect_same("Spark, of bundles", &of_bundles, fleet.path());
}
