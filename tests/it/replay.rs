//! Tests replaying: a recording of a real run needs no privileges and always gives the same result;
//! a file that is not a recording is refused.

use std::{collections::BTreeMap, fs, path::Path};

use joular_tests::paths;
use serde_json::Value;

use crate::joular_bpf;

/// Two JVMs that run the methods `Hot.heavy` and `Hot.light`, one of which
/// ends during the run; see the folder's README.
pub fn recording() -> String {
    paths::root().join("tests/fixtures/recordings/two_jvms.jrec").to_str().unwrap().to_owned()
}

/// The JSON messages of a replay, by type.
fn messages(arguments: &[&str]) -> BTreeMap<String, Vec<Value>> {
    let recording = recording();
    let finished = joular_bpf(&[&["--replay", &recording, "--json", "--no-output"], arguments].concat());
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let mut messages: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in finished.stdout.lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        messages.entry(message["type"].as_str().unwrap().to_owned()).or_default().push(message);
    }
    messages
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn every_window_of_a_replay_adds_up() {
    for policy in ["separate", "spread"] {
        let messages = messages(&["--idle", policy]);
        assert!(messages["window"].len() >= 5, "{} windows", messages["window"].len());
        for domain in messages["window"].iter().flat_map(|window| window["domains"].as_array().unwrap()) {
            let parts = ["attributed_uj", "static_uj", "unattributed_uj"].map(|key| number(domain, key));
            assert_eq!(parts.iter().sum::<u64>(), number(domain, "measured_uj"), "{policy}: {domain}");
            assert_eq!(domain["label"], "modelled");
        }
    }
}

#[test]
fn a_replay_names_the_methods_of_both_jvms() {
    let messages = messages(&[]);
    let summary = &messages["summary"][0];
    assert_eq!(summary["processes"].as_array().unwrap().len(), 2);
    let methods = summary["methods"].as_array().unwrap();
    let joules = |name: &str| {
        let method = methods.iter().find(|method| method["method"] == name);
        number(method.unwrap_or_else(|| panic!("no {name}")), "self_uj")
    };
    assert!(joules("Hot.heavy") > joules("Hot.light"));
}

#[test]
fn another_policy_moves_energy_and_makes_none() {
    let measured = |policy: &str| {
        let messages = messages(&["--idle", policy]);
        let audit = &messages["summary"][0]["audit"];
        (number(audit, "measured_uj"), number(audit, "attributed_uj"), number(audit, "static_uj"))
    };
    let (separate, spread) = (measured("separate"), measured("spread"));
    assert_eq!(separate.0, spread.0);
    assert!(separate.1 < spread.1 && spread.2 == 0, "{separate:?} {spread:?}");
}

/// Files of a data set and their bytes, without the lock.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn two_replays_write_the_same_bytes() {
    let replayed = || {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("out");
        let finished = joular_bpf(&["--replay", &recording(), "--output", output.to_str().unwrap(), "--quiet"]);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        files(&output)
    };
    let first = replayed();
    assert!(first.len() >= 7, "{:?}", first.keys());
    assert_eq!(replayed(), first);
}

/// Replays a file of these bytes; returns the message of the failure.
fn replay_of(bytes: &[u8]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let (recording, output) = (dir.path().join("some.jrec"), dir.path().join("out"));
    fs::write(&recording, bytes).unwrap();
    let recording = recording.to_str().unwrap();
    let finished = joular_bpf(&["--replay", recording, "--output", output.to_str().unwrap()]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert!(finished.stderr.contains(recording), "the message does not name the file: {}", finished.stderr);
    assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
    finished.stderr
}

#[test]
fn an_empty_file_is_refused() {
    replay_of(b"");
}

#[test]
fn a_file_of_something_else_is_refused() {
    replay_of(b"PAR1, or so it says, for long enough that a header fits into this text");
}

#[test]
fn another_version_is_refused_with_what_to_use_instead() {
    let whole = fs::read(recording()).unwrap();
    for (version, advice) in [(3_u16, "the joular-bpf that made it"), (99, "a newer joular-bpf")] {
        let mut bytes = whole.clone();
        bytes["JOULARBPF\0".len()..][..2].copy_from_slice(&version.to_le_bytes());
        let said = replay_of(&bytes);
        let expected = format!("it has format version {version}, this joular-bpf reads version 7: use {advice}");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn a_recording_that_was_cut_off_says_so() {
    let whole = fs::read(recording()).unwrap();
    let said = replay_of(&whole[..whole.len() / 2]);
    assert!(said.contains("truncated after"), "{said}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let finished = joular_bpf(&["--replay", "/nonexistent/some.jrec"]);
    assert!(matches!(finished.code(), Some(1 | 2)), "{finished:?}");
    assert!(finished.stderr.contains("/nonexistent/some.jrec"), "{}", finished.stderr);
}
