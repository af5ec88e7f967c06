//! Tests that the ways in which joular-bpf starts itself refuse whatever else they are given, and say so.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use joular_tests::profiler::Run;

use crate::LIMIT;

const LAUNCH: &str = "__launch";
const TRIAL: &str = "__trial";
const HELPER: &str = "__attach-helper";
const LOAD: &str = "--calibration-load-internal";
const PROTOCOL: &str = "__protocol";

/// What a hostile caller may pass in place of a word.
fn words() -> Vec<OsString> {
    let mut words: Vec<OsString> =
        ["", "-", "--", "-1", "0", "1", "2", "2147483647", "2147483648", "4294967295", "9999999999999999999999", "x"]
            .map(OsString::from)
            .into();
    words.push(OsString::from_vec(vec![0xff, 0xfe]));
    words.push(OsString::from("1".repeat((128 << 10) - 1)));
    words
}

#[track_caller]
fn check_refused(arguments: &[OsString]) {
    let shown: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().chars().take(60).collect()).collect();
    let run = arguments.iter().fold(Run::new(), |run, argument| run.argument(argument));
    let finished = run.finish(LIMIT).unwrap();
    assert!(finished.code().is_some_and(|code| code != 0 && code < 128), "{shown:?}: {finished:?}");
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(!said.is_empty() && !said.contains("panicked") && !said.contains("internal error"), "{shown:?}: {said}");
    assert!(!finished.stdout.contains("it ran"), "{shown:?}: {said}");
}

/// Every word of a line replaced, left out and doubled.
fn variations(line: &[&str]) -> Vec<Vec<OsString>> {
    let line: Vec<OsString> = line.iter().map(OsString::from).collect();
    let mut all = vec![line.clone(), line[..1].to_vec()];
    for at in 1..line.len() {
        all.push([&line[..at], &line[at + 1..]].concat());
        all.push([&line[..=at], &line[at..]].concat());
        all.extend(words().into_iter().map(|word| [&line[..at], &[word], &line[at + 1..]].concat()));
    }
    all
}

/// Nothing here opens a gate, so no command may run.
#[test]
fn a_launch_that_joular_bpf_did_not_ask_for_is_refused() {
    let line = [LAUNCH, "77", "1000:1000:1000", "--", "echo", "it ran"];
    for arguments in variations(&line) {
        check_refused(&arguments);
    }
    for user in ["4294967295:0:0", "0:4294967295:0", "0:0:4294967295", "0:0", "0:0:0:0", "root:root:root"] {
        check_refused(&[LAUNCH, "77", user, "--", "echo", "it ran"].map(OsString::from));
    }
}

#[test]
fn a_run_of_no_experiment_is_refused() {
    let orders = r#"{"output":null,"shows_output":true,"outcome":77}"#;
    let line = [TRIAL, orders, "2", "echo", "it ran", "joular-bpf", "run", "--repeat", "2", "--", "true"];
    for arguments in variations(&line) {
        check_refused(&arguments);
    }
    for number in ["-1", "0", "1", "2", "77", "-2147483648", "2147483647", "99999999999"] {
        let orders = orders.replace("77", number);
        check_refused(&[TRIAL, &orders, "1", "echo", "joular-bpf", "run", "--", "true"].map(OsString::from));
    }
}

/// The line of a helper that attaches to a process which began long ago.
fn attach(pid: &str) -> Vec<&str> {
    let process = [HELPER, "--pid", pid, "--ns-pid", pid, "--uid", "0", "--gid", "0"];
    [&process[..], &["--start-ticks", "1", "--command", "VM.version"]].concat()
}

#[test]
fn an_attach_helper_without_its_target_is_refused() {
    let own = std::process::id().to_string();
    for pid in ["0", "1", &own, "4194305", "4294967295"] {
        let line: Vec<OsString> = attach(pid).into_iter().map(OsString::from).collect();
        check_refused(&line);
    }
    for arguments in variations(&attach("1")) {
        check_refused(&arguments);
    }
}

#[test]
fn a_load_without_its_measure_is_refused() {
    check_refused(&[LOAD.into()]);
    for word in words().into_iter().filter(|word| !["1", "2"].map(OsString::from).contains(word)) {
        check_refused(&[LOAD.into(), word.clone()]);
        check_refused(&[LOAD.into(), "switch".into(), word]);
    }
}

/// Without a socket for its marks, nothing of it begins; what a program may do ends with its input.
#[test]
fn a_protocol_that_nobody_records_is_refused() {
    for arguments in variations(&[PROTOCOL, "conduct", "2", "2000", "1"]) {
        check_refused(&arguments);
    }
    for word in words() {
        check_refused(&[PROTOCOL.into(), "work".into(), word.clone(), "50".into(), "1".into()]);
        check_refused(&[PROTOCOL.into(), "work".into(), "compute".into(), word]);
    }
    for threads in ["0", "-1", "4097", "4294967296"] {
        check_refused(&[PROTOCOL, "work", "compute", "50", threads].map(OsString::from));
    }
}
