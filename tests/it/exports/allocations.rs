//! Exports of a recording with `--alloc`: what was allocated is in each format that has a place for it, and changes
//! nothing else there.

use joular_tests::{dataset::DataSet, paths};
use serde_json::json;

use super::{Exports, texts, with_node, with_python};

/// What the program's thread allocates, which the recording's samples all saw.
const CLASSES: [&str; 3] = ["Allocations$Node", "byte[]", "java.lang.String[]"];

fn exports() -> Exports {
    Exports::of(paths::root().join("tests/fixtures/recordings/allocations.jrec").to_str().unwrap())
}

/// Bytes and samples of all rows, by SQL.
fn allocated(exports: &Exports) -> (u64, u64) {
    let rows = DataSet::at(exports.path("out"))
        .rows("SELECT sum(allocated_bytes)::BIGINT AS bytes, sum(samples)::BIGINT AS samples FROM allocations")
        .unwrap();
    (rows[0]["bytes"].as_u64().unwrap(), rows[0]["samples"].as_u64().unwrap())
}

#[test]
fn pprof_has_them_as_alloc_space_with_the_class_as_a_label() {
    let exports = exports();
    let Some(found) = with_node(&exports.export("pprof", &[]), "pprof") else { return };
    let types = &found["types"].as_array().unwrap()[3..];
    assert_eq!(types, [json!(["alloc_space", "bytes"]), json!(["alloc_samples", "count"])]);
    let ([energy, cpu_ns, samples], (bytes, allocated)) = (exports.sums(), allocated(&exports));
    assert_eq!(found["sums"], json!([energy, cpu_ns, samples, bytes, allocated]));
    assert_eq!(found["default"], "energy");
    let classes = texts(&found["classes"]);
    assert!(CLASSES.iter().all(|class| classes.contains(class)), "{classes:?}");
}

#[test]
fn speedscope_has_a_profile_of_bytes_for_each_thread_that_allocated() {
    let exports = exports();
    let Some(found) = with_node(&exports.export("speedscope", &[]), "speedscope") else { return };
    assert_eq!(found["sums"], json!({"none": exports.sums()[0], "bytes": allocated(&exports).0}));
    // What opens first is of energy.
    assert_eq!(found["first"], "none");
    let leaves = texts(&found["leaves"]);
    assert!(CLASSES.iter().all(|class| leaves.contains(class)), "{leaves:?}");
}

#[test]
fn otlp_has_a_profile_of_bytes_for_each_process() {
    let exports = exports();
    let found = with_python(&exports.export("otlp", &[]), "otlp");
    let ([energy, cpu_ns, samples], (bytes, _)) = (exports.sums(), allocated(&exports));
    let sums = json!({"energy/uJ": energy, "cpu/ns": cpu_ns, "samples/count": samples, "alloc_space/By": bytes});
    assert_eq!(found["sums"], sums);
    let classes = texts(&found["classes"]);
    assert!(CLASSES.iter().all(|class| classes.contains(class)), "{classes:?}");
}
