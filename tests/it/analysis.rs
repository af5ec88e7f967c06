//! Tests that the scripts and the notebook of docs/analysis run, and agree with each other and with
//! the data set to the microjoule.

use std::{collections::BTreeMap, path::Path, process::Command};

use joular_tests::{paths, python};
use serde_json::Value;

use crate::bad_sets;

const ENGINES: [&str; 3] = ["duckdb", "pandas", "polars"];

/// What a script of docs/analysis answers with these arguments.
fn script(name: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(python::interpreter().unwrap());
    python::with_package(&mut command).arg(paths::root().join("docs/analysis").join(name)).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Rows of every answer, by question.
fn answers(engine: &str, data: &Path) -> BTreeMap<String, Vec<Value>> {
    let said = script(&format!("with_{engine}.py"), &[data.to_str().unwrap(), "--json"]);
    let answer = |line: &str| {
        let answer: Value = serde_json::from_str(line).unwrap();
        (answer["question"].as_str().unwrap().to_owned(), answer["rows"].as_array().unwrap().clone())
    };
    said.lines().map(answer).collect()
}

/// Sum of a column of joules of an answer, in microjoules.
#[allow(clippy::cast_possible_truncation, reason = "an energy of seconds")]
fn sum(rows: &[Value], column: usize) -> i64 {
    rows.iter().map(|row| (row[column].as_f64().unwrap() * 1e6).round() as i64).sum()
}

#[test]
fn ten_questions_have_one_answer_whoever_is_asked() {
    let parent = tempfile::tempdir().unwrap();
    for name in ["good", "hostile"] {
        let data = parent.path().join(name);
        if name == "good" {
            bad_sets::good(&data)
        } else {
            bad_sets::hostile(&data)
        }
        let [duckdb, pandas, polars] = ENGINES.map(|engine| answers(engine, &data));
        assert_eq!(duckdb.len(), 10, "{:?}", duckdb.keys());
        assert!(duckdb.values().all(|rows| !rows.is_empty()), "{duckdb:?}");
        for (question, expected) in &duckdb {
            assert_eq!(&pandas[question], expected, "{name}, {question}: pandas");
            assert_eq!(&polars[question], expected, "{name}, {question}: polars");
        }
        // Domain, label, measured, to targets, idle, to others.
        let audit = &duckdb["audit"];
        assert_eq!(sum(audit, 2), sum(audit, 3) + sum(audit, 4) + sum(audit, 5));
        assert_eq!(sum(&duckdb["kinds"], 1), sum(audit, 3), "methods sum to what went to targets");
        assert_eq!(sum(&duckdb["evolution"], 2), sum(audit, 3));
        assert_eq!(sum(&duckdb["processes"], 2), sum(audit, 3));
        let is_known = |row: &Value| name == "hostile" || row[0] == "Hot";
        assert!(duckdb["processes"].iter().all(is_known), "JVMs have their main class: {duckdb:?}");
    }
}

#[test]
fn no_script_needs_what_duckdb_2_has_no_more() {
    let folders = ["docs/analysis", "tests/fixtures/python"].map(|name| paths::root().join(name));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.is_file()) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains(".fetchone("), "{}: relations have fetchall only", file.display());
    }
}

#[test]
fn one_question_is_answered_for_a_reader_whose_terminal_stays_his() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("hostile");
    bad_sets::hostile(&data);
    for engine in ENGINES {
        let said = script(&format!("with_{engine}.py"), &[data.to_str().unwrap(), "methods"]);
        assert!(said.starts_with("\nmethods: ") && said.lines().count() > 3, "{engine}: {said}");
        let headings: Vec<&str> = said.lines().nth(2).unwrap().split_whitespace().collect();
        assert_eq!(headings, ["method", "joules", "samples"], "{engine}: {said}");
        assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{engine}: {said:?}");
    }
}

#[test]
fn the_notebook_runs_and_has_no_outputs() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("good");
    bad_sets::good(&data);
    let notebook = paths::root().join("docs/analysis/joules.ipynb");
    let said = python::script("notebook.py", &data, &[notebook.to_str().unwrap()]).unwrap();
    for word in ["Hot.heavy", "attributed_joules", "tax_percent", "modelled", "Power by process", "main_class"] {
        assert!(said.contains(word), "the notebook does not show {word}: {said}");
    }
}
