//! Replaying what is not a recording. (Real recordings are made and replayed by
//! the live tests.)

use std::fs;

use crate::joular_bpf;

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
fn a_file_that_is_not_there_is_named() {
    let finished = joular_bpf(&["--replay", "/nonexistent/some.jrec"]);
    assert!(matches!(finished.code(), Some(1 | 2)), "{finished:?}");
    assert!(finished.stderr.contains("/nonexistent/some.jrec"), "{}", finished.stderr);
}
