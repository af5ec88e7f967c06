//! Tests emissions and cost of `report` on a data set that a replay wrote. Plain SQL gives the same figures.

use std::{collections::BTreeMap, fs, path::PathBuf, sync::OnceLock};

use joular_tests::dataset::DataSet;
use serde_json::Value;
use tempfile::TempDir;

use crate::{expect_usage_error, joular_bpf, replay::recording};

/// Two factors; the second holds from the middle of the recording on.
const FACTORS: &str = "time,zone,g/kWh,source,year\n\
                       2026-11-21T10:58:00Z,FR,50,\"RTE, éCO2mix\",2026\n\
                       2026-11-21T10:58:00Z,PL,700,PSE,2026\n\
                       2026-11-21T10:58:47.500Z,FR,80,\"RTE, éCO2mix\",2026\n\
                       2026-11-21T10:59:00Z,PL,600,PSE,2026\n";

/// The middle of the recording, in SQL.
const CHANGE: &str = "TIMESTAMPTZ '2026-11-21 10:58:47.500Z'";

/// A data set and a file of factors that all tests read.
fn parent() -> &'static TempDir {
    static DIR: OnceLock<TempDir> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("out");
        let finished = joular_bpf(&["--replay", &recording(), "--quiet", "--output", output.to_str().unwrap()]);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        fs::write(dir.path().join("factors.csv"), FACTORS).unwrap();
        dir
    })
}

fn data() -> PathBuf {
    parent().path().join("out")
}

fn factors() -> String {
    parent().path().join("factors.csv").to_str().unwrap().to_owned()
}

fn report(options: &[&str]) -> Value {
    let data = data();
    let finished = joular_bpf(&[&["report", data.to_str().unwrap(), "--json", "--top", "0"], options].concat());
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 1e-9, "{found} is not {expected}");
}

#[test]
fn emissions_by_time_are_those_of_plain_sql() {
    let report = report(&["--no-infer", "--by", "thread", "--carbon", &factors(), "--zone", "FR", "--pue", "1.4"]);
    // A window in which the factor changes counts by its time.
    let share =
        format!("least(greatest((epoch_us({CHANGE}) - epoch_us(window_start)) / (window_ns / 1000.0), 0.0), 1.0)");
    let sql = format!(
        "SELECT tid, sum(energy_uj * (50 * {share} + 80 * (1 - {share}))) * 1.4 / 3.6e12 AS g FROM branches GROUP BY tid"
    );
    let rows = DataSet::at(data()).rows(&sql).unwrap();
    let expected: BTreeMap<u64, f64> =
        rows.iter().map(|row| (row["tid"].as_u64().unwrap(), row["g"].as_f64().unwrap())).collect();
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    assert!(rows.len() > 3 && rows.len() == expected.len());
    for row in rows {
        let (found, expected) = (row["self_gco2e"].as_f64().unwrap(), expected[&row["tid"].as_u64().unwrap()]);
        assert!((found - expected).abs() <= expected * 1e-4, "{row} is not {expected}");
    }
    let said = &report["footprint"];
    assert_close(said["gco2e"].as_f64().unwrap(), rows.iter().filter_map(|row| row["self_gco2e"].as_f64()).sum());
    let factor = &said["factor"];
    assert_eq!((factor["min_g_per_kwh"].as_f64(), factor["max_g_per_kwh"].as_f64()), (Some(50.0), Some(80.0)));
    assert_eq!(factor["zone"], "FR");
    assert_eq!(factor["sources"], serde_json::json!([{"source": "RTE, éCO2mix", "year": 2026}]));
}

/// SCI 1.1: ((E · I) + M) per R, where E has the energy of reserved hardware, and M goes by what is reserved.
#[test]
fn emissions_and_sci_are_those_of_their_formulas() {
    let report = report(&[
        "--carbon=250g/kWh",
        "--carbon-source=Ember, 2025",
        "--pue=1.2",
        "--embodied=1000kg/4y",
        "--price=0.30EUR/kWh",
        "--work=100",
        "--reserved=1",
    ]);
    let said = &report["footprint"];
    let selection = |key: &str| report["selection"][key].as_f64().unwrap();
    let sql = "SELECT sum(window_ns)::BIGINT AS x FROM (SELECT DISTINCT window_start, window_ns FROM windows)";
    let recorded_ns = DataSet::at(data()).number(sql).unwrap();
    let sql = "SELECT sum(x)::BIGINT AS x FROM (SELECT DISTINCT window_start, cpu_elapsed_ns AS x FROM windows)";
    let cpus_ns = DataSet::at(data()).number(sql).unwrap();
    let kwh = selection("energy_uj") / 3.6e12 * 1.2;
    let lifetime_ns = 4.0 * 365.0 * 24.0 * 3_600e9;
    let embodied = 1e6 * (recorded_ns / lifetime_ns) * (selection("cpu_ns") / cpus_ns);
    assert_close(said["kwh"].as_f64().unwrap(), kwh);
    assert_close(said["operational_gco2e"].as_f64().unwrap(), kwh * 250.0);
    assert_close(said["embodied_gco2e"].as_f64().unwrap(), embodied);
    assert_close(said["gco2e_per_work"].as_f64().unwrap(), (kwh * 250.0 + embodied) / 100.0);
    let static_uj = DataSet::at(data()).number("SELECT sum(static_uj)::BIGINT AS x FROM windows").unwrap();
    let share = recorded_ns / cpus_ns;
    let static_kwh = (static_uj * share).round() / 3.6e12 * 1.2;
    let reserved = (kwh + static_kwh) * 250.0 + 1e6 * (recorded_ns / lifetime_ns) * share;
    assert_close(said["reserved"]["static_uj"].as_f64().unwrap(), (static_uj * share).round());
    assert_close(said["sci_gco2e"].as_f64().unwrap(), reserved / 100.0);
    assert_close(said["cost"].as_f64().unwrap(), kwh * 0.3);
    assert_eq!((&said["price"]["currency"], &said["factor"]["method"]), (&"EUR".into(), &Value::Null));
}

#[test]
fn a_csv_table_has_the_figures_and_standard_error_says_what_they_are_made_of() {
    let data = data();
    let finished = joular_bpf(&["report", data.to_str().unwrap(), "--csv", "--carbon", "56g/kWh"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let mut lines = finished.stdout.lines();
    assert!(lines.next().unwrap().ends_with("energy_label,ambiguous,self_gco2e,total_gco2e"));
    let cells =
        |line: &str| line.trim_end().rsplit(',').take(2).map(|cell| cell.parse::<f64>().unwrap()).collect::<Vec<_>>();
    assert!(lines.map(cells).all(|figures| figures[0] >= figures[1] && figures[1] >= 0.0));
    for words in ["factor: 56 gCO2e/kWh", "source not given", "boundary: energy of cpu"] {
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
}

#[test]
fn what_cannot_be_computed_is_an_error_that_says_why() {
    let data = data();
    let data = data.to_str().unwrap();
    let factors = factors();
    for (options, words) in [
        (&["--carbon", "250lb/kWh"][..], "write e.g. 250g/kWh"),
        (&["--carbon", "/nonexistent"], "name a CSV file"),
        (&["--carbon", &factors], "choose one with --zone: 'FR', 'PL'"),
        (&["--carbon", &factors, "--zone", "DE"], "no line is of zone 'DE'"),
        (&["--pue", "1.4"], "--carbon or --price"),
        (&["--embodied", "1000kg/4y"], "--carbon"),
        (&["--carbon", "1g/kWh", "--pue", "0.5"], "is not a PUE"),
        (&["--carbon", "1g/kWh", "--embodied", "1000kg/0y"], "1000kg/4y"),
        (&["--price", "free"], "0.30EUR/kWh"),
    ] {
        expect_usage_error(&[&["report", data], options].concat(), &[words]);
    }
    let early = parent().path().join("early.csv");
    fs::write(&early, "time,g/kWh\n2026-11-21T10:58:40Z,50\n2026-11-21T10:58:44Z,50\n").unwrap();
    let finished = joular_bpf(&["report", data, "--carbon", early.to_str().unwrap()]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert!(finished.stdout.is_empty());
    for words in ["is not within the emission factors", "to 2026-11-21T10:58:48Z", "--since and --until"] {
        assert!(finished.stderr.contains(words), "{}", finished.stderr);
    }
    let finished = joular_bpf(&["report", data, "--carbon", early.to_str().unwrap(), "--until", "3s"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}
