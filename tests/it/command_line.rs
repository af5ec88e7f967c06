//! Tests help, version, and the handling of arguments that make no sense.

use std::{
    io,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use joular_tests::paths;

use crate::{expect_usage_error, joular_bpf};

/// Names that people and scripts rely on.
const OPTIONS: &[&str] = &[
    "--comm",
    "--pid",
    "--all",
    "--duration",
    "--interval",
    "--frequency",
    "--output",
    "--energy",
    "--energy-file",
    "--powercap-root",
    "--idle",
    "--idle-watts",
    "--model-watts",
    "--record",
    "--replay",
    "--config",
    "--json",
    "--quiet",
    "--flush",
    "--top",
];

#[test]
fn help_goes_to_standard_output_and_names_every_option() {
    let finished = joular_bpf(&["--help"]);
    assert_eq!(finished.code(), Some(0));
    for option in OPTIONS {
        assert!(finished.stdout.contains(option), "--help does not mention {option}");
    }
    for command in ["doctor", "sources"] {
        assert!(finished.stdout.contains(command), "--help does not mention {command}");
    }
}

#[test]
fn help_shows_an_example() {
    let finished = joular_bpf(&["--help"]);
    assert!(finished.stdout.contains("joular-bpf --comm java"), "{}", finished.stdout);
}

#[test]
fn version_is_that_of_the_workspace() {
    let finished = joular_bpf(&["--version"]);
    assert_eq!(finished.code(), Some(0));
    assert_eq!(finished.stdout.trim(), concat!("joular-bpf ", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_unknown_option_is_named() {
    expect_usage_error(&["--no-such-option"], &["--no-such-option"]);
}

#[test]
fn a_value_that_is_not_one_is_named_with_its_option() {
    for (option, value) in [
        ("--interval", "soon"),
        ("--duration", "-1s"),
        ("--frequency", "often"),
        ("--pid", "java"),
        ("--energy", "sunlight"),
        ("--idle", "sometimes"),
        ("--idle-watts", "some"),
        ("--model-watts", "10"),
    ] {
        expect_usage_error(&["--all", &format!("{option}={value}")], &[option]);
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for (option, value) in
        [("--interval", "0s"), ("--frequency", "0"), ("--frequency", "10001"), ("--model-watts", "30:10")]
    {
        expect_usage_error(&["--all", &format!("{option}={value}")], &[option]);
    }
}

#[test]
fn a_name_pattern_that_cannot_be_read_is_refused() {
    expect_usage_error(&["--comm", "[java"], &["[java"]);
}

#[test]
fn a_replay_takes_nothing_that_its_recording_decided() {
    for options in [&["--comm", "java"][..], &["--all"], &["--frequency", "199"], &["--record", "other.jrec"]] {
        expect_usage_error(&[&["--replay", "some.jrec"], options].concat(), &["--replay", options[0]]);
    }
}

#[test]
fn a_pid_of_no_process_ends_the_run_before_it_begins() {
    // Above the highest pid that Linux gives (2^22).
    let output = tempfile::tempdir().unwrap();
    let output = output.path().join("out");
    let place = output.to_str().unwrap();
    let started = Instant::now();
    let finished = joular_bpf(&["--pid", "99999999", "--duration", "15s", "--output", place]);
    assert_eq!(finished.code(), Some(5), "{finished:?}");
    assert!(started.elapsed() < Duration::from_secs(10), "it waited");
    for word in ["there is no process 99999999", "ps -eo pid,comm", "--comm"] {
        assert!(finished.stderr.contains(word), "the message lacks '{word}': {}", finished.stderr);
    }
    assert!(!output.exists(), "a data set was begun");
}

/// A reader that has gone before the first byte.
#[test]
fn a_closed_pipe_is_no_error_of_anything_that_prints() {
    let empty = tempfile::tempdir().unwrap();
    let nothing = empty.path().to_str().unwrap();
    let no_meters = ["--sys-root", nothing, "--powercap-root", nothing];
    let fitness = joular_bpf(&[&["doctor"][..], &no_meters].concat()).code().unwrap();
    for (command, code) in [
        (&["sources"][..], 0),
        (&["sources", "--json"], 0),
        (&["doctor"], fitness),
        (&["doctor", "--json"], fitness),
        (&["completions", "bash"], 0),
        (&["man"], 0),
        (&["--help"], 0),
        (&["--version"], 0),
    ] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut closed = Command::new(paths::joular_bpf());
        closed.args(command).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
        if matches!(command[0], "sources" | "doctor") {
            closed.args(no_meters);
        }
        let finished = closed.output().unwrap();
        let said = String::from_utf8_lossy(&finished.stderr);
        assert_eq!(finished.status.code(), Some(code), "{command:?}: {said}");
        assert_eq!(said, "", "{command:?}");
    }
}

#[test]
fn sources_name_every_source_and_mark_what_a_recording_would_use() {
    let empty = tempfile::tempdir().unwrap();
    let nothing = empty.path().to_str().unwrap();
    let finished = joular_bpf(&["sources", "--json", "--sys-root", nothing, "--powercap-root", nothing]);
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    let listing: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    let rows = listing["sources"].as_array().unwrap();
    let state = |name: &str| rows.iter().find(|row| row["source"] == name).unwrap()["state"].clone();
    for (name, expected) in [("perf", "absent"), ("powercap", "absent"), ("watts", "not asked"), ("model", "chosen")] {
        assert_eq!(state(name), expected, "{name}");
    }
}

/// A Raspberry Pi of a revision that nobody measured, which has no meter.
#[test]
fn a_board_is_known_and_its_curve_is_said() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("device-tree")).unwrap();
    std::fs::write(root.path().join("device-tree/model"), b"Raspberry Pi 4 Model B Rev 1.5\0").unwrap();
    std::fs::write(root.path().join("boards.toml"), "[[board]]\ncode = 'bad'\nnames = ['a']\nlinear = [1, -1]\n")
        .unwrap();
    let nothing = root.path().to_str().unwrap();
    let roots = ["--sys-root", nothing, "--powercap-root", nothing, "--proc-root", nothing];
    let finished = joular_bpf(&[&["sources", "--json"][..], &roots].concat());
    assert_eq!(finished.code(), Some(0), "{}", finished.stderr);
    let listing: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    let board = listing["sources"].as_array().unwrap().iter().find(|row| row["source"] == "board").unwrap();
    assert_eq!((&board["state"], &board["domains"][0]["domain"]), (&"chosen".into(), &"platform".into()), "{board}");
    assert_eq!(board["domains"][0]["label"], "modelled");
    let basis = board["basis"].as_str().unwrap();
    for words in ["Raspberry Pi 4 Model B Rev 1.5", "rbp4b1.2-64", "the published line", "measured on revision 1.2"] {
        assert!(basis.contains(words), "{basis}");
    }
    let models = root.path().join("boards.toml");
    let own = ["--energy", "board", "--board-models", models.to_str().unwrap()];
    let refused = joular_bpf(&[&["sources"][..], &roots, &own].concat());
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stdout.contains("boards.toml: board bad: linear must be two numbers"), "{}", refused.stdout);
}

#[test]
fn a_plot_that_cannot_be_written_and_commands_for_no_variant_are_told_before_anything_runs() {
    let began = tempfile::tempdir().unwrap();
    let began = began.path().join("began");
    let touch = began.to_str().unwrap();
    let once = |command: &'static str, options: &[&'static str]| [&[command, "--repeat", "2"][..], options].concat();
    for (options, words) in [
        (once("run", &["--export-plot", "a.png", "--"]), &["--export-plot", "a.png", ".svg", ".pdf"][..]),
        (once("run", &["--export-plot", "plot", "--"]), &["plot.svg or plot.pdf"]),
        (once("sweep", &["--parameter", "n=1..4", "--export-plot", "a.eps", "--"]), &["--export-plot", "a.eps"]),
        (once("run", &["--prepare", "a", "--prepare", "b", "--"]), &["--prepare", "2 commands for 1 variant"]),
        (
            once("sweep", &["--parameter", "n=1..4", "--cleanup", "a", "--cleanup", "b", "--"]),
            &["--cleanup", "2 commands for 4 variants", "once for all, or once for each", "n=1, n=2, n=3, n=4"],
        ),
    ] {
        expect_usage_error(&[&options[..], &["touch", touch, "{n}"]].concat(), words);
    }
    assert!(!began.exists(), "a command ran");
}
