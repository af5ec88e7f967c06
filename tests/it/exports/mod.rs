//! Tests `export`. Each format is opened by a program or by the definitions of those whose format
//! it is, and holds what SQL finds in the data set, to the microjoule.

mod allocations;
mod hostile;
pub mod jfr;
mod joularjx;
mod speedscope;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use joular_tests::{node, notes, process::Finished, python};
use serde_json::Value;
use tempfile::TempDir;

use crate::{joular_bpf, replay::recording};

/// A data set, and a folder for what is made of it.
struct Exports {
    folder: TempDir,
}

impl Exports {
    fn new() -> Self {
        Self::of(&recording())
    }

    fn of(recording: &str) -> Self {
        let exports = Self { folder: tempfile::tempdir().unwrap() };
        let data = exports.path("out");
        expect_success(&joular_bpf(&["--replay", recording, "--quiet", "--output", data.to_str().unwrap()]));
        exports
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Exports what was recorded to a file or directory of the format's name.
    fn export(&self, format: &str, options: &[&str]) -> PathBuf {
        let (data, output) = (self.path("out"), self.path(if format == "jfr" { "exported.jfr" } else { format }));
        let arguments =
            ["export", data.to_str().unwrap(), "--format", format, "--output", output.to_str().unwrap(), "--no-infer"];
        let finished = joular_bpf(&[&arguments, options].concat());
        expect_success(&finished);
        let said = format!("exported {} J, modelled (model), as {format}", joules(self.sums()[0]));
        assert!(finished.stderr.contains(&said), "{finished:?}");
        output
    }

    /// Energy, CPU time and samples of all branches, by SQL.
    fn sums(&self) -> [u64; 3] {
        let found = with_python(&self.path("out"), "branches");
        std::array::from_fn(|index| found["sums"][index].as_u64().unwrap())
    }
}

fn joules(energy_uj: u64) -> String {
    format!("{}.{:06}", energy_uj / 1_000_000, energy_uj % 1_000_000)
}

fn expect_success(finished: &Finished) {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

fn with_python(file: &Path, format: &str) -> Value {
    serde_json::from_str(&python::script("exports.py", file, &[format]).unwrap()).unwrap()
}

/// `None`, and the test is skipped, where there is no Node.js.
fn with_node(file: &Path, format: &str) -> Option<Value> {
    if !node::exists() {
        notes::skipped(&format!("there is no Node.js to open {format} with (Debian and Ubuntu: nodejs, npm)"));
        return None;
    }
    Some(serde_json::from_str(&node::script("read_export.mjs", format, file).unwrap()).unwrap())
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Leaves of the recording that a format must not lose.
const LEAVES: [&str; 3] = ["Hot.heavy", "Hot.light", "[no sample]"];

#[track_caller]
fn expect_leaves(found: &Value) {
    let leaves = texts(&found["leaves"]);
    assert!(LEAVES.iter().all(|leaf| leaves.contains(leaf)), "{leaves:?}");
}

/// What pprof itself makes of a profile. `None`, and the test is skipped, where there is no Go.
fn with_go(options: &[&str], file: &Path) -> Option<String> {
    let mut go = Command::new("go");
    go.args(["tool", "pprof", "-symbolize=none"]).args(options).arg(file).env("PPROF_TMPDIR", file.parent()?);
    let Ok(output) = go.output() else {
        notes::skipped("there is no Go to open pprof's format with (Debian and Ubuntu: golang-go)");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Shared out or as recorded, energy is the same.
#[test]
fn what_is_inferred_changes_no_sum() {
    let exports = Exports::new();
    let data = exports.path("out");
    for format in ["collapsed", "pprof", "perfetto", "firefox", "jfr", "joularjx"] {
        let output = exports.path(&format!("inferred-{format}"));
        let output = output.to_str().unwrap();
        let finished = joular_bpf(&["export", data.to_str().unwrap(), "--format", format, "--output", output]);
        expect_success(&finished);
        let said = format!("exported {} J, modelled (model)", joules(exports.sums()[0]));
        assert!(finished.stderr.contains(&said), "{finished:?}");
    }
}

#[test]
fn pprof_is_read_by_pprof() {
    let exports = Exports::new();
    let file = exports.export("pprof", &[]);
    let Some(raw) = with_go(&["-raw"], &file) else { return };
    let mut lines = raw.lines().skip_while(|line| *line != "Samples:").skip(1);
    assert_eq!(lines.next(), Some("energy/microjoules[dflt] cpu/nanoseconds samples/count"));
    // A sample is its values, a colon and its locations; labels are on lines of their own.
    let values = |line: &str| -> Option<Vec<u64>> {
        line.split_once(':')?.0.split_whitespace().map(|value| value.parse().ok()).collect()
    };
    let samples = lines.take_while(|line| *line != "Locations").filter_map(values);
    let sums = samples.fold([0; 3], |sums, values| std::array::from_fn(|index| sums[index] + values[index]));
    assert_eq!(sums, exports.sums());

    let top = with_go(&["-top", "-nodefraction=0", "-sample_index=energy"], &file).unwrap();
    assert!(LEAVES.iter().all(|leaf| top.contains(leaf)), "{top}");
}

#[test]
fn pprof_is_read_by_a_package_of_npm() {
    let exports = Exports::new();
    let file = exports.export("pprof", &[]);
    let Some(found) = with_node(&file, "pprof") else { return };
    let types = serde_json::json!([["energy", "microjoules"], ["cpu", "nanoseconds"], ["samples", "count"]]);
    assert_eq!(found["types"], types);
    assert_eq!(found["sums"], serde_json::json!(exports.sums()));
    assert_eq!(found["default"], "energy");
    assert_eq!(texts(&found["labels"]), ["category", "host", "pid", "process", "thread", "tid"]);
    assert!(texts(&found["comments"]).contains(&"energy: modelled (model)"), "{found}");
    assert!(texts(&found["systemNames"]).contains(&"Hot.heavy(I)I") && texts(&found["files"]).contains(&"Hot.java"));
    assert_eq!(found["durationNanos"], "8000000000");
    expect_leaves(&found);
}

#[test]
fn collapsed_stacks_make_a_flame_graph() {
    let exports = Exports::new();
    let text = fs::read_to_string(exports.export("collapsed", &[])).unwrap();
    let values = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    let energy = exports.sums()[0];
    assert_eq!(values.sum::<u64>(), energy);
    let mut options = inferno::flamegraph::Options::default();
    "µJ".clone_into(&mut options.count_name);
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut options, text.lines(), &mut svg).unwrap();
    let svg = String::from_utf8(svg).unwrap();
    let total = format!("all ({} µJ, 100%)", with_commas(energy));
    assert!(svg.contains(&total), "no '{total}' in the flame graph");
    assert!(svg.contains("Hot.heavy ("));
}

fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned());
    groups.collect::<Vec<_>>().join(",")
}

#[test]
fn a_flame_graph_needs_no_file_between() {
    let exports = Exports::new();
    let data = exports.path("out");
    for output in [&[][..], &["--output", "-"]] {
        let arguments = ["export", data.to_str().unwrap(), "--format", "collapsed", "--no-infer"];
        let finished = joular_bpf(&[&arguments, output].concat());
        expect_success(&finished);
        let in_file = fs::read_to_string(exports.export("collapsed", &[])).unwrap();
        assert_eq!(finished.stdout.trim_end(), in_file.trim_end());
    }
}

#[test]
fn otlp_is_parsed_by_opentelemetrys_definitions() {
    let exports = Exports::new();
    let found = with_python(&exports.export("otlp", &[]), "otlp");
    let [energy, cpu_ns, samples] = exports.sums();
    assert_eq!(found["sums"], serde_json::json!({"energy/uJ": energy, "cpu/ns": cpu_ns, "samples/count": samples}));
    assert_eq!((&found["origin"], &found["processes"]), (&"modelled (model)".into(), &2.into()));
    expect_leaves(&found);
}

#[test]
fn perfetto_is_parsed_by_its_own_definitions_and_refers_to_nothing_unknown() {
    let exports = Exports::new();
    let found = with_python(&exports.export("perfetto", &[]), "perfetto");
    assert_eq!(found["sums"], serde_json::json!(exports.sums()));
    assert_eq!((&found["unit"], &found["origin"]), (&"µJ".into(), &"modelled (model)".into()));
    assert_eq!(found["unknown"], false, "a field that the definitions do not have");
    assert_eq!(texts(&found["processes"]), ["Hot on example"; 2]);
    let length_s = (found["last"].as_f64().unwrap() - found["first"].as_f64().unwrap()) / 1e9;
    assert!((7.9..8.1).contains(&length_s), "{length_s} s");
    // Power over time is the energy, but for windows' starts in whole microseconds.
    let (joules, expected) = (found["joules"].as_f64().unwrap(), found["sums"][0].as_f64().unwrap() / 1e6);
    assert!((joules - expected).abs() < expected * 1e-3, "{joules} J by the counters, {expected} J by the samples");
    expect_leaves(&found);
}

#[test]
fn firefox_has_the_documented_tables() {
    let exports = Exports::new();
    let found = with_python(&exports.export("firefox", &[]), "firefox");
    assert_eq!(found["sum"], exports.sums()[0]);
    assert_eq!(found["product"], "joular-bpf: energy, 1 sample = 1 µJ, modelled (model)");
    assert!(texts(&found["categories"]).contains(&"compiled-c2"), "{found}");
    assert!((7_900.0..=8_001.0).contains(&found["last_ms"].as_f64().unwrap()), "{}", found["last_ms"]);
    expect_leaves(&found);
}

#[test]
fn wrong_use_and_missing_data_are_named() {
    let exports = Exports::new();
    let data = exports.path("out");
    let data = data.to_str().unwrap();
    crate::expect_usage_error(
        &["export", data, "--format", "svg"],
        &["--format", "'svg' is not one of pprof, speedscope"],
    );
    crate::expect_usage_error(&["export", data], &["--format"]);
    for (arguments, code, words) in [
        (&["export", "/no/such", "--format", "pprof", "--output", "-"][..], 1, "No such file or directory"),
        (&["export", data, "--format", "pprof", "--output", "/no/such/file"], 6, "writing /no/such/file"),
        (&["export", data, "--format", "joularjx", "--output", "-"], 6, "directory of files"),
        (&["export", data, "--format", "collapsed", "--output", "/dev/full"], 6, "/dev/full"),
    ] {
        let finished = joular_bpf(arguments);
        assert_eq!(finished.code(), Some(code), "{finished:?}");
        assert!(finished.stderr.contains(words) && !finished.stderr.contains("panicked"), "{finished:?}");
    }
}
