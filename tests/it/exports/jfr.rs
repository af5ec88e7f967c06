//! Opens exports with the JDK's own tool `jfr`: what it reads is what SQL finds in the data set.

use std::{collections::BTreeSet, path::Path, process::Command};

use joular_tests::{dataset::DataSet, java, jdk::Jdk, paths};
use serde_json::Value;

use super::{Exports, LEAVES};

/// What a `jfr` prints.
fn run(jfr: &Path, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(jfr).args(arguments).arg(file).output().unwrap();
    let (said, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && errors.is_empty(), "{jfr:?} {arguments:?}: {said} {errors}");
    said
}

/// The fields of all events of a type, as the system's JDK reads them.
pub fn events(file: &Path, name: &str) -> Vec<Value> {
    let arguments = ["print", "--json", "--stack-depth", "64", "--events", name];
    let said: Value = serde_json::from_str(&run(&java::tool("jfr"), &arguments, file)).unwrap();
    let events = said["recording"]["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["type"] == name), "{said}");
    events.iter().map(|event| event["values"].clone()).collect()
}

pub(super) fn sum(events: &[Value], field: &str) -> u64 {
    events.iter().map(|event| event[field].as_u64().unwrap_or_else(|| panic!("{field} of {event}"))).sum()
}

fn method(frame: &Value) -> String {
    let method = &frame["method"];
    let (class, name) = (method["type"]["name"].as_str().unwrap(), method["name"].as_str().unwrap());
    if class.is_empty() { name.to_owned() } else { format!("{class}.{name}") }
}

fn of_recording(name: &str) -> Exports {
    Exports::of(paths::root().join("tests/fixtures/recordings").join(name).to_str().unwrap())
}

#[test]
fn the_jdk_reads_the_energy_of_every_branch() {
    let exports = Exports::new();
    let file = exports.export("jfr", &[]);
    let [energy, _, samples] = exports.sums();
    let branches = events(&file, "joular.Energy");
    assert_eq!([sum(&branches, "energy_uj"), sum(&branches, "samples")], [energy, samples]);
    let joules: f64 = branches.iter().map(|branch| branch["energy"].as_f64().unwrap()).sum();
    assert!((joules - energy as f64 / 1e6).abs() < 1e-6, "{joules} J of {energy} µJ");
    assert!(branches.iter().all(|branch| branch["modelled"] == true && branch["inferred"] == false));
    let leaves: BTreeSet<String> = branches.iter().map(|branch| method(&branch["stackTrace"]["frames"][0])).collect();
    assert!(LEAVES.iter().all(|leaf| leaves.contains(*leaf)), "{leaves:?}");
    let groups: BTreeSet<&str> =
        branches.iter().map(|branch| branch["eventThread"]["group"]["name"].as_str().unwrap()).collect();
    assert!(groups.len() == 2 && groups.contains("Hot (24683) on example"), "{groups:?}");
}

#[test]
fn the_jdk_counts_as_many_samples_as_were_taken() {
    let exports = Exports::new();
    let file = exports.export("jfr", &[]);
    let samples = events(&file, "jdk.ExecutionSample");
    assert_eq!(samples.len() as u64, exports.sums()[2]);
    assert!(samples.iter().all(|sample| sample["state"] == "STATE_RUNNABLE"), "{:?}", samples[0]);
    let heavy = samples.iter().find(|sample| method(&sample["stackTrace"]["frames"][0]) == "Hot.heavy").unwrap();
    let frame = &heavy["stackTrace"]["frames"][0];
    assert_eq!((&frame["type"], &frame["method"]["descriptor"]), (&"JIT compiled".into(), &"(I)I".into()), "{frame}");
    assert!(frame["lineNumber"].as_i64().unwrap() > 0, "{frame}");

    let summary = run(&java::tool("jfr"), &["summary"], &file);
    let figure = |name: &str| {
        let line = summary.lines().map(str::trim).find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {summary}")).split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!((figure("Version:"), figure("Chunks:"), figure("Duration:")), ("2.1".into(), "1".into(), "8".into()));
    assert_eq!(figure("jdk.ExecutionSample"), samples.len().to_string());
    let described = run(&java::tool("jfr"), &["metadata"], &file);
    assert!(described.contains("@Name(\"joular.Energy\")"), "{described}");
}

#[test]
fn a_newer_jdk_ranks_hot_methods() {
    let exports = Exports::new();
    let file = exports.export("jfr", &[]);
    let jfr = Jdk::program(25, "jfr").unwrap();
    let ranked = run(&jfr, &["view", "hot-methods"], &file);
    assert!(["Hot.heavy(int)", "Hot.light(int)"].iter().all(|method| ranked.contains(method)), "{ranked}");
    assert!(run(&jfr, &["view", "joular.Energy"], &file).contains("Modelled"), "a view of any type of events");
}

#[test]
fn power_is_what_each_domain_measured() {
    let exports = Exports::new();
    let power = events(&exports.export("jfr", &[]), "joular.Power");
    let measured = DataSet::at(exports.path("out")).number("SELECT sum(measured_uj)::BIGINT FROM windows").unwrap();
    assert!(measured > 0.0 && sum(&power, "energy_uj") as f64 == measured, "{measured}");
    let watts = |event: &Value| event["power"].as_f64().unwrap();
    assert!(power.iter().all(|event| watts(event) > 0.0 && event["host"] == "example"), "{power:?}");
}

#[test]
fn allocations_have_their_bytes_and_classes() {
    let exports = of_recording("allocations.jrec");
    let allocated = events(&exports.export("jfr", &[]), "jdk.ObjectAllocationSample");
    let bytes =
        DataSet::at(exports.path("out")).number("SELECT sum(allocated_bytes)::BIGINT FROM allocations").unwrap();
    assert_eq!(sum(&allocated, "weight") as f64, bytes);
    let classes: BTreeSet<&str> = allocated.iter().filter_map(|event| event["objectClass"]["name"].as_str()).collect();
    assert!(
        ["Allocations$Node", "[B", "[Ljava/lang/String;"].iter().all(|class| classes.contains(class)),
        "{classes:?}"
    );
}

#[test]
fn collections_have_their_cause_and_energy() {
    let exports = of_recording("collections.jrec");
    let file = exports.export("jfr", &[]);
    let collections = events(&file, "jdk.GarbageCollection");
    let data = DataSet::at(exports.path("out"));
    let energy = data.number("SELECT sum(energy_uj)::BIGINT FROM collections").unwrap();
    assert!(energy > 0.0 && sum(&collections, "energy_uj") as f64 == energy, "{energy}");
    let seen = data.number("SELECT count(*) FROM (SELECT DISTINCT collector, start FROM collections)").unwrap();
    assert_eq!(collections.len() as f64, seen);
    assert!(collections.iter().any(|event| event["cause"] == "G1 Evacuation Pause"), "{collections:?}");
    let jvms = events(&file, "jdk.JVMInformation");
    assert!(
        jvms.iter().any(|jvm| jvm["jvmVersion"].as_str().is_some_and(|version| version.starts_with("21"))),
        "{jvms:?}"
    );
}
