//! Tests that a figure that is modelled or not certain says so wherever it is shown.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::DataSet,
    java::Workload,
    powercap::{FakePowercap, Plan, Watts},
    process::Finished,
    profiler::{END, Output, Run},
};
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(10);

/// A run: what it says to people, to scripts, and in its data set.
struct Shown {
    output: Output,
    text: Finished,
    json: Vec<Value>,
}

impl Shown {
    /// Plays a recorded run back in both formats; the data set is the run's own.
    fn of(output: Output, recording: &str) -> Result<Self> {
        let replay = || Run::new().with("--replay", recording).argument("--no-output");
        let (text, json) = (replay().finish(LIMIT + END)?, replay().argument("--json").finish(LIMIT + END)?);
        ensure!(text.code() == Some(0) && json.code() == Some(0), "{text:?} {json:?}");
        let json = json.stdout.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        Ok(Self { output, text, json })
    }

    /// Lines of windows, which begin with a time, and the line about the source.
    fn lines(&self) -> (Vec<&str>, Vec<&str>) {
        self.text.stdout.lines().filter(|line| line.contains(" from ")).partition(|line| line.contains(" so far "))
    }

    fn json_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.json.iter().filter(move |message| message["type"] == kind)
    }
}

/// Tables with a column of energy, but `runs`, which is about all of them.
fn tables_with_energy(data: &DataSet) -> Result<Vec<String>> {
    let mut tables = Vec::new();
    for entry in std::fs::read_dir(data.dir())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') {
            continue;
        }
        let columns = format!("SELECT count(*) FROM (DESCRIBE {name}) WHERE column_name LIKE '%\\_uj' ESCAPE '\\'");
        if data.number(&columns)? > 0.0 {
            tables.push(name);
        }
    }
    tables.sort();
    Ok(tables)
}

/// The column that says how a table's energy came about.
fn label_column(table: &str) -> &'static str {
    if table == "windows" { "label" } else { "energy_label" }
}

fn record_modelled() -> Result<Shown> {
    let output = Output::new()?;
    let recording = output.beside("run.jrec");
    let path = recording.to_str().context("a path of letters")?;
    let jvm = Workload::new("Busy").frame_pointers().start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--duration", "3s").with("--record", path);
    let finished = run.output(output.dir()).finish(LIMIT + END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    ensure!(finished.stdout.contains("model (modelled)"), "{finished:?}");
    ensure!(finished.stderr.contains("estimated at"), "{finished:?}");
    Shown::of(output, path)
}

/// A run in the middle of which the counter is set back.
fn record_ambiguous() -> Result<Shown> {
    let output = Output::new()?;
    let recording = output.beside("run.jrec");
    let path = recording.to_str().context("a path of letters")?;
    let plan = Plan::package(0, &[0, 1], Watts { idle: 20, per_cpu: 30 }).start_uj(100_000_000_000);
    let counters = FakePowercap::of(&[plan])?;
    let jvm = Workload::new("Busy").frame_pointers().start()?;
    let run = Run::new().with("--energy", "powercap").with("--powercap-root", counters.root()).pid(jvm.pid());
    let run = run.with("--record", path).argument("--json").output(output.dir());
    let mut profiler = run.with("--interval", "500ms").start()?;
    profiler.wait_window()?;
    counters.jump_back(0, 50_000_000_000)?;
    (0..3).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.stop()?;
    Shown::of(output, path)
}

#[test]
fn a_modelled_run_says_so_in_every_line_message_and_row() -> Result<()> {
    let shown = record_modelled()?;
    let (windows, summary) = shown.lines();
    assert!(windows.len() >= 3 && summary.len() == 1, "{}", shown.text.stdout);
    for line in windows.iter().chain(&summary) {
        assert!(line.contains("(modelled)"), "{line}");
    }
    for window in shown.json_of("window") {
        assert_eq!(window["audit"]["energy_label"], "modelled", "{window}");
        let domains = window["domains"].as_array().context("domains")?;
        assert!(!domains.is_empty() && domains.iter().all(|domain| domain["label"] == "modelled"), "{window}");
    }
    let summary = shown.json_of("summary").next().context("no summary")?;
    assert_eq!(summary["audit"]["energy_label"], "modelled");

    let data = &shown.output.data;
    let tables = tables_with_energy(data)?;
    assert_eq!(
        tables,
        ["branches", "jvms", "methods", "quality", "runs", "threads", "windows"],
        "is a table with energy new?"
    );
    for table in tables {
        let label = label_column(&table);
        assert!(data.number(&format!("SELECT count(*) FROM {table}"))? > 0.0, "{table} is empty");
        data.expect_none(
            &format!("rows of {table} without a label"),
            &format!("SELECT * FROM {table} WHERE {label} IS DISTINCT FROM 'modelled'"),
        )?;
    }
    Ok(())
}

#[test]
fn a_window_that_is_not_certain_says_so_in_its_line_message_and_rows() -> Result<()> {
    let shown = record_ambiguous()?;
    let (windows, _) = shown.lines();
    let is_ambiguous = |line: &&&str| line.contains(" ambiguous ");
    assert_eq!(windows.iter().filter(is_ambiguous).count(), 1, "{}", shown.text.stdout);
    assert!(shown.text.stdout.contains("ambiguous: 1 uncertain reading of energy counters"), "{}", shown.text.stdout);

    let ambiguous: Vec<&Value> =
        shown.json_of("window").filter(|window| window["domains"][0]["ambiguous"] == true).collect();
    let [window] = ambiguous[..] else { anyhow::bail!("{} windows are ambiguous", ambiguous.len()) };
    assert_eq!((&window["domains"][0]["fault"], &window["audit"]["ambiguous"]), (&"jumped".into(), &1.into()));
    let summary = shown.json_of("summary").next().context("no summary")?;
    assert_eq!(summary["audit"]["ambiguous"], 1);

    let data = &shown.output.data;
    assert_eq!(data.number("SELECT count(*) FROM windows WHERE ambiguous")?, 1.0);
    // A row of methods covers several windows, and says so if one of them is not certain.
    let methods = "SELECT m.window_start, m.ambiguous, bool_or(w.ambiguous) AS of_windows FROM methods m JOIN windows w
         ON m.run_id = w.run_id
         AND epoch_us(w.window_start) - epoch_us(m.window_start) BETWEEN 0 AND m.window_ns / 1000 - 1000
         GROUP BY ALL";
    assert!(data.number(&format!("SELECT count(*) FROM ({methods}) WHERE of_windows"))? > 0.0);
    data.expect_none(
        "rows of methods that say otherwise than their windows",
        &format!("SELECT * FROM ({methods}) WHERE ambiguous <> of_windows"),
    )?;
    for table in ["threads", "branches", "jvms", "quality"] {
        let in_it =
            format!("SELECT count(*) FROM {table} JOIN windows w USING (run_id, window_start) WHERE w.ambiguous");
        assert!(data.number(&in_it)? > 0.0, "{table} has no row in that window");
        data.expect_none(
            &format!("rows of {table} that say otherwise than their window"),
            &format!(
                "SELECT * FROM {table} t JOIN windows w USING (run_id, window_start) WHERE t.ambiguous <> w.ambiguous"
            ),
        )?;
    }
    Ok(())
}
