//! Tests `joular-bpf validate` as users start it. What it computes is tested where it is computed.

use std::{fs, path::Path};

use crate::{expect_usage_error, joular_bpf, replay::recording};

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

#[test]
fn a_model_of_a_board_needs_its_name_and_enough_of_a_run() {
    let parent = tempfile::tempdir().unwrap();
    let data = data_set(parent.path());
    let [log, model] = ["meter.csv", "boards.toml"].map(|name| parent.path().join(name));
    let readings: String = (0..600).map(|second| format!("{},{}\n", 1_795_258_000 + second, 40 + second % 7)).collect();
    fs::write(&log, format!("time,watts\n{readings}")).unwrap();
    let options = ["--reference", log.to_str().unwrap(), "--board-model", model.to_str().unwrap(), "--board"];
    for (board, words) in
        [(" ", "--board: it is empty"), ("Some Board Rev 1.0", "spans of windows have readings of the meter")]
    {
        let finished = joular_bpf(&[&["validate", data.as_str()][..], &options, &[board]].concat());
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        assert!(finished.stderr.contains(words), "{finished:?}");
    }
    assert!(!model.exists());
    expect_usage_error(
        &["validate", data.as_str(), "--reference", log.to_str().unwrap(), "--board", "a"],
        &["--board-model"],
    );
}
