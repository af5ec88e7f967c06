//! Tests `joular-bpf validate` as users start it. What it computes is tested where it is computed.

use std::{fs, path::Path};

use crate::{joular_bpf, replay::recording};

/// Eight windows of a second.
fn data_set(parent: &Path) -> String {
    let data = parent.join("out").to_str().unwrap().to_owned();
    let finished = joular_bpf(&["--replay", &recording(), "--quiet", "--output", &data]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    data
}

fn said(data: &str, log: &Path) -> String {
    let finished = joular_bpf(&["validate", data, "--reference", log.to_str().unwrap()]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    finished.stderr
}

#[test]
fn what_cannot_be_compared_is_an_error_that_says_why() {
    let parent = tempfile::tempdir().unwrap();
    let data = data_set(parent.path());
    let log = parent.path().join("meter.csv");
    assert!(said(&data, &log).contains("name a CSV file with --reference"));
    fs::write(&log, "when,what\n1,2\n").unwrap();
    assert!(said(&data, &log).contains("its first line names no column of"));
    fs::write(&log, "time,watts\n2026-11-21T10:00:00Z,40\n2026-11-21T10:00:01Z,many\n").unwrap();
    assert!(said(&data, &log).contains("line 3"));
    let readings: String = (0..600).map(|second| format!("{},{}\n", 1_795_258_000 + second, 40 + second % 7)).collect();
    fs::write(&log, format!("time,watts\n{readings}")).unwrap();
    assert!(said(&data, &log).contains("spans of windows have readings of the meter"));
}
