//! Tests `jmh`: joules per operation of benchmarks that JMH ran, of a recording of a real run.

use std::fs;

use joular_tests::{paths, process::Finished};
use serde_json::Value;
use tempfile::TempDir;

use crate::joular_bpf;

fn fixture(name: &str) -> String {
    paths::fixtures().join("recordings").join(name).to_str().unwrap().to_owned()
}

/// A data set that the replay of a recording wrote.
fn replayed(name: &str) -> (TempDir, String) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data").to_str().unwrap().to_owned();
    let finished = joular_bpf(&["--replay", &fixture(name), "--output", &dir, "--quiet"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    (root, dir)
}

fn jmh(dir: &str, result: &str, options: &[&str]) -> Finished {
    joular_bpf(&[&["jmh", dir, result], options].concat())
}

fn figure(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Operations per second by the result, of one thread.
fn rate(benchmark: &Value) -> f64 {
    let score = figure(&benchmark["primaryMetric"]["score"]);
    match benchmark["primaryMetric"]["scoreUnit"].as_str().unwrap() {
        "ops/us" => 1e6 * score,
        "us/op" => 1e6 / score,
        unit => panic!("{unit}"),
    }
}

#[test]
fn operations_of_a_real_run_have_the_power_of_a_busy_cpu_for_as_long_as_they_take() {
    let (_root, dir) = replayed("jmh.jrec");
    let result = fixture("jmh-result.json");
    let finished = jmh(&dir, &result, &["--json"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let found: Value = serde_json::from_str(&finished.stdout).unwrap();
    let told: Value = serde_json::from_str(&fs::read_to_string(&result).unwrap()).unwrap();
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(found["energy_label"], "modelled");
    for (row, told) in rows.iter().zip(told.as_array().unwrap()) {
        let name = row["benchmark"].as_str().unwrap();
        let operation = &row["operation"];
        assert_eq!((row["benchmark"].as_str(), row["forks"].as_u64()), (told["benchmark"].as_str(), Some(2)));
        assert_eq!(row["parameters"], "n=1000");
        // By the model a busy CPU needs 8 W more than an idle one. The JVM's own threads run beside the benchmark.
        let watts = figure(&operation["watts"]["mean"]);
        assert!((7.8..8.6).contains(&watts), "{name}: {watts} W");
        let expected = watts / rate(told);
        let joules = figure(&operation["joules"]["mean"]);
        assert!((joules / expected - 1.0).abs() < 0.02, "{name}: {joules} J per operation, expected {expected}");
        let interval = &operation["joules"]["interval"];
        assert!(figure(&interval[0]) < joules && joules < figure(&interval[1]), "{operation}");
        // Two forks of 1.2 s, but for the windows at both ends.
        assert!((1.8..2.4).contains(&figure(&operation["measured_s"])), "{operation}");
    }
}

#[test]
fn every_format_has_every_benchmark() {
    let (_root, dir) = replayed("jmh.jrec");
    for options in [&[][..], &["--csv"], &["--markdown"]] {
        let finished = jmh(&dir, &fixture("jmh-result.json"), options);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        for name in ["acme.Sums.sum", "acme.Sums.roots", "modelled"] {
            assert!(finished.stdout.contains(name), "{options:?}: {finished:?}");
        }
    }
}

#[test]
fn what_does_not_belong_together_is_told() {
    let (root, dir) = replayed("jmh.jrec");
    let (_other, other) = replayed("two_jvms.jrec");
    let good = fixture("jmh-result.json");
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let more_forks = write("forks", &fs::read_to_string(&good).unwrap().replace("\"forks\" : 2", "\"forks\" : 3"));
    for (dir, result, expected) in [
        (&dir, "/nowhere/result.json".to_owned(), "reading /nowhere/result.json: No such file"),
        (&dir, write("text", "Benchmark Mode Cnt"), "name the file that JMH wrote with -rf json"),
        (&dir, write("empty", "[]"), "it has no benchmark"),
        (&dir, write("object", "{}"), "name the file that JMH wrote with -rf json"),
        (&other, good.clone(), "has no fork of a JMH benchmark"),
        (&"/nowhere".to_owned(), good, "opening the data set /nowhere"),
    ] {
        let finished = jmh(dir, &result, &[]);
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        assert!(finished.stderr.contains(expected), "{expected}: {finished:?}");
        assert!(finished.stdout.is_empty(), "{finished:?}");
    }
    let finished = jmh(&dir, &more_forks, &[]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert!(finished.stdout.contains("JMH measured 3 forks of this method"), "{finished:?}");
}
