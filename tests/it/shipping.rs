//! Tests `ship` as its users have it: what arrives has the sums of what was recorded, once, whoever repeats it.

use std::{fs, path::Path};

use joular_tests::process::Finished;
use serde_json::Value;

use crate::{
    joular_bpf,
    replay::recording,
    rollup::{SUMS, rows},
};

/// A data set of several runs that have ended.
fn recorded(parent: &Path) -> String {
    let path = parent.join("recorded").to_str().unwrap().to_owned();
    let arguments = ["--replay", &recording(), "--quiet", "--flush", "1s", "--rotate", "10s", "--output", &path];
    let finished = joular_bpf(&arguments);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    path
}

fn done(finished: &Finished) -> Value {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn a_directory_gets_each_run_once_with_all_sums() {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    for window in ["60s", "5s", "recorded"] {
        let to = parent.path().join(format!("of-{window}")).to_str().unwrap().to_owned();
        let ship = || joular_bpf(&["ship", &data, &to, "--window", window, "--json"]);
        let first = done(&ship());
        assert!(first["runs"].as_u64() > Some(1) && first["files"].as_u64() > Some(10), "{window}: {first}");
        assert_eq!(done(&ship())["runs"], 0, "{window}: it is known what has arrived");
        fs::remove_dir_all(Path::new(&data).join(".shipped")).unwrap();
        let again = done(&ship());
        assert_eq!((&again["runs"], &again["files"]), (&first["runs"], &Value::from(0)), "{window}: nothing is new");
        assert_eq!(rows(Path::new(&to), SUMS), rows(Path::new(&data), SUMS), "{window}");
        let audit = joular_bpf(&["audit", &to]);
        assert_eq!(audit.code(), Some(0), "{window}: {audit:?}");
    }
}

#[test]
fn what_cannot_be_shipped_is_said_with_the_exit_code_of_its_kind() {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    let file = parent.path().join("file").to_str().unwrap().to_owned();
    fs::write(&file, "").unwrap();
    let to = parent.path().join("to").to_str().unwrap().to_owned();
    for (arguments, code, message) in [
        (vec![&*data, &*file], 6, "file: it exists and is not a directory"),
        (vec![&*data, &*to, "--window", "a day"], 2, "--window: not a time"),
        (vec![&*data, &*to, "--rate", "2MB"], 2, "--rate: \"2MB\" is not a size"),
        (vec!["absent", &*to], 1, "absent"),
        // Windows of a second are not made of a second's.
        (vec![&*data, &*to, "--window", "1s"], 1, "name a multiple of that"),
    ] {
        let finished = joular_bpf(&[vec!["ship"], arguments].concat());
        assert_eq!(finished.code(), Some(code), "{finished:?}");
        assert!(finished.stderr.contains(message), "{finished:?}");
    }
}

#[test]
fn the_configuration_of_a_service_is_checked_without_privileges() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("agent.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        joular_bpf(&["agent", "--config", file.to_str().unwrap(), "--check", "--log-format", "json"])
    };
    let right = check("comm = ['java']\nkeep-size = '1GiB'\nship = 's3://fleet/energy'\nship-rate = '2MiB'");
    assert_eq!((right.code(), right.stdout.ends_with("agent.toml: no mistakes")), (Some(0), true), "{right:?}");
    for (text, message) in [
        ("comm = ['java']\nshipp = 's3://fleet'", "agent.toml:2: unknown field `shipp`"),
        ("interval = '7s'\nship = 's3://fleet'", "ship-window: it is no multiple of --interval"),
        ("metrics = '0.0.0.0:9897'", "agent.toml:1: metrics"),
    ] {
        let wrong = check(text);
        assert_eq!(wrong.code(), Some(2), "{wrong:?}");
        let line: Value = serde_json::from_str(&wrong.stderr).unwrap();
        assert_eq!(line["level"], "error");
        assert!(line["message"].as_str().unwrap().contains(message), "{line}");
    }
}
