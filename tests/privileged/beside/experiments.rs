//! Tests experiments: commands that run many times, in a random order, through interruptions and bad input.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    paths,
    process::{Finished, Running},
    profiler::Output,
};
use rustix::process::Signal;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(120);

fn spawn(options: &[&str]) -> Result<Running> {
    let mut line = Command::new("env");
    line.arg("--default-signal").arg(paths::joular_bpf()).args(["run", "--energy", "model"]).args(options);
    Running::spawn("joular-bpf run", &mut line)
}

fn run(options: &[&str]) -> Result<Finished> {
    spawn(options)?.finish(LIMIT)
}

fn log(output: &Output) -> Result<Value> {
    Ok(serde_json::from_str(&fs::read_to_string(output.dir().join("experiment.json"))?)?)
}

fn runs(log: &Value) -> &[Value] {
    log["runs"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Sum of what a variant's data set says that threads used, and of how many runs.
fn recorded(output: &Output, variant: &str) -> Result<(u64, u64)> {
    let dir = output.dir().join(variant);
    let dir = dir.to_str().context("a path of text")?;
    let finished =
        Running::spawn("audit", Command::new(paths::joular_bpf()).args(["audit", dir, "--json"]))?.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let audits: Value = serde_json::from_str(&finished.stdout)?;
    let audits = audits.as_array().context("audits of runs")?;
    let energy = audits.iter().filter_map(|audit| audit["attributed_uj"].as_u64()).sum();
    Ok((energy, audits.len().try_into()?))
}

/// What the log says of a variant: energy and runs.
fn logged(log: &Value, variant: u64) -> (u64, u64) {
    let of = runs(log).iter().filter(|run| run["variant"] == variant);
    of.fold((0, 0), |(energy, count), run| (energy + run["energy_uj"].as_u64().unwrap_or_default(), count + 1))
}

#[test]
fn an_experiment_that_was_interrupted_and_killed_goes_on_and_has_every_run_once() -> Result<()> {
    let output = Output::new()?;
    let dir = output.dir().to_str().context("a path of text")?.to_owned();
    let script = "echo started; for i in $(seq 20000); do :; done; sleep 0.3";
    let (a, b) = (format!("a=sh -c '{script}'"), format!("b=sh -c '{script}; :'"));
    let options = ["--repeat", "3", "--seed", "7", "--show-output", "--output", &dir, "--variant", &a, "--variant", &b];
    // The first is asked to end in its second run, the second is killed in its second run.
    for signal in [Signal::TERM, Signal::KILL] {
        let mut running = spawn(&options)?;
        running.wait_stdout("started\nstarted", LIMIT)?;
        running.signal(signal)?;
        let finished = running.finish(LIMIT)?;
        if signal == Signal::TERM {
            ensure!(
                finished.code() == Some(143) && finished.stderr.contains("goes on with the others"),
                "{finished:?}"
            );
        }
    }
    let finished = run(&options)?;
    ensure!(finished.code() == Some(0) && finished.stderr.contains("are done already"), "{finished:?}");
    let log = log(&output)?;
    let mut places: Vec<String> = runs(&log).iter().map(|run| format!("{}{}", run["variant"], run["round"])).collect();
    places.sort();
    ensure!(places == ["00", "01", "02", "10", "11", "12"], "{log}");
    for (variant, at) in [("a", 0), ("b", 1)] {
        ensure!(recorded(&output, variant)? == logged(&log, at), "{variant}: {log}");
    }
    // Nothing is left to do, and one more run of each is two more.
    let finished = run(&options)?;
    ensure!(finished.code() == Some(0) && finished.stderr.contains("0 runs in random order"), "{finished:?}");
    let other = run(&["--repeat", "3", "--output", &dir, "--", "true"])?;
    ensure!(other.code() == Some(6) && other.stderr.contains("holds another experiment"), "{other:?}");
    Ok(())
}

#[test]
fn work_is_what_the_command_prints_and_each_run_counts_by_its_own() -> Result<()> {
    let output = Output::new()?;
    let export = output.beside("results.json");
    let (dir, export) = (output.dir().to_str().context("text")?, export.to_str().context("text")?);
    let script = "n=$(( ($$ % 7 + 1) * 1000 )); i=0; while [ $i -lt $n ]; do i=$((i+1)); done; echo handled $n units";
    let options = ["--repeat", "4", "--work-regex", "handled (\\d+)", "--output", dir, "--export-json", export];
    let finished = run(&[&options[..], &["--", "sh", "-c", script]].concat())?;
    ensure!(finished.code() == Some(0) && !finished.stdout.contains("handled"), "{finished:?}");
    let results: Value = serde_json::from_str(&fs::read_to_string(export)?)?;
    let runs = runs(&results["experiment"]);
    #[allow(clippy::cast_precision_loss, reason = "a mean")]
    let per_unit = |run: &Value| Some(run["energy_uj"].as_f64()? / 1e6 / run["work"].as_f64()?);
    let per_unit: Vec<f64> = runs.iter().filter_map(per_unit).collect();
    ensure!(per_unit.len() == 4, "{results}");
    let mean = per_unit.iter().sum::<f64>() / 4.0;
    let shown = results["summary"]["variants"][0]["joules_per_work"]["mean"].as_f64().context("a mean")?;
    ensure!((shown / mean - 1.0).abs() < 1e-9, "{shown} {mean}");
    Ok(())
}

#[test]
fn what_cannot_be_an_experiment_is_told_and_leaves_nothing_behind() -> Result<()> {
    for (options, code, expected) in [
        (&["--repeat", "0", "--", "true"][..], 2, "--repeat: 0 is not between"),
        (&["--variant", "a=true", "--", "true"], 2, "leave one of them out"),
        (&["--parameter", "n=1,2", "--", "true"], 2, "{n} stands nowhere"),
        (&["--work", "0", "--", "true"], 2, "0 is not an amount of work"),
        (&["--work-regex", "a(", "--", "true"], 2, "--work-regex: 'a(' is not a pattern"),
        (&["--cool-down", "soon", "--repeat", "2", "--", "true"], 2, "--cool-down: not a time"),
        (&["--repeat", "2", "--", "false"], 1, "base ended with exit code 1"),
        (&["--repeat", "2", "--", "/nowhere/at-all"], 127, "base ended with exit code 127"),
        (&["--repeat", "2", "--work-regex", "n=(\\d+)", "--", "true"], 1, "printed no number"),
    ] {
        let output = Output::new()?;
        let dir = output.dir().to_str().context("a path of text")?;
        let finished = run(&[&["--output", dir], options].concat())?;
        ensure!(finished.code() == Some(code) && finished.stderr.contains(expected), "{options:?}: {finished:?}");
        let left = fs::read_dir(output.dir().join("base/windows"));
        ensure!(left.map_or(0, Iterator::count) == 0, "{options:?} left a window");
    }
    let counted = run(&["--repeat", "2", "--ignore-failure", "--", "false"])?;
    ensure!(counted.code() == Some(0), "{counted:?}");
    Ok(())
}
