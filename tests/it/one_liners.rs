//! Runs the commands that docs/analysis/query.md tells users to type.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
};

use joular_tests::{paths, python};

use crate::{joular_bpf, replay::recording};

/// Stands for DuckDB's command line: the same engine, one option.
const DUCKDB: &str = r#"import sys, duckdb
option, sql = sys.argv[1:]
assert option == "-c"
for row in duckdb.connect().execute(sql).fetchall():
    print(row)
"#;

/// Shell blocks of the document.
fn commands() -> Vec<String> {
    let text = fs::read_to_string(paths::root().join("docs/analysis/query.md")).unwrap();
    let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks.map(str::to_owned).collect()
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn typed(command: &str, directory: &Path) -> Output {
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    Command::new("sh").args(["-c", command]).current_dir(directory).env("PATH", path).output().unwrap()
}

#[test]
fn every_one_liner_of_the_document_answers() {
    let parent = tempfile::tempdir().unwrap();
    let interpreter = python::interpreter().unwrap();
    script(&parent.path().join("python"), &format!("#!/bin/sh\nexec '{}' \"$@\"\n", interpreter.display()));
    fs::write(parent.path().join("engine.py"), DUCKDB).unwrap();
    let engine = parent.path().join("engine.py");
    script(&parent.path().join("duckdb"), &format!("#!/bin/sh\nexec python '{}' \"$@\"\n", engine.display()));
    let output = parent.path().join("out");
    let finished = joular_bpf(&["--replay", &recording(), "--quiet", "--output", output.to_str().unwrap()]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let commands = commands();
    assert!(commands.len() >= 7, "{commands:?}");
    for command in &commands {
        let said = typed(command, parent.path());
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(said.status.success(), "{command}: {}", String::from_utf8_lossy(&said.stderr));
        assert!(text.contains(|c: char| c.is_ascii_digit()), "{command}: no figure in '{text}'");
    }
    let last = typed(commands.last().unwrap(), parent.path());
    let text = String::from_utf8(last.stdout).unwrap();
    let (methods, threads) = text.trim().trim_matches(['(', ')']).split_once(", ").unwrap();
    assert_eq!(methods, threads, "both are all energy of the targets");
}
