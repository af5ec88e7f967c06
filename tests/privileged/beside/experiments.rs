//! Tests experiments: commands that run many times, in a random order, through interruptions and bad input.

use std::{fs, os::fd::AsRawFd as _, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    mount::Tmpfs,
    paths,
    process::{Finished, Running},
    profiler::Output,
};
use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{Pid, Signal, kill_process},
};
use serde_json::Value;

pub(super) const LIMIT: Duration = Duration::from_secs(120);

pub(super) fn spawn(options: &[&str]) -> Result<Running> {
    let mut line = Command::new("env");
    line.arg("--default-signal").arg(paths::joular_bpf()).args(["run", "--energy", "model"]).args(options);
    Running::spawn("joular-bpf run", &mut line)
}

pub(super) fn run(options: &[&str]) -> Result<Finished> {
    spawn(options)?.finish(LIMIT)
}

pub(super) fn log(dir: &Path) -> Result<Value> {
    Ok(serde_json::from_str(&fs::read_to_string(dir.join("experiment.json"))?)?)
}

pub(super) fn runs(log: &Value) -> &[Value] {
    log["runs"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Sum of what a variant's data set says that threads used, and of how many runs.
fn recorded(dir: &Path, variant: &str) -> Result<(u64, u64)> {
    let dir = dir.join(variant);
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

/// Waits until so many runs count.
fn wait_for_runs(dir: &Path, count: usize) -> Result<()> {
    wait_for(&format!("{count} runs"), LIMIT, || Ok(log(dir).is_ok_and(|log| runs(&log).len() >= count).then_some(())))
}

#[test]
fn an_experiment_that_was_interrupted_and_killed_goes_on_and_has_every_run_once() -> Result<()> {
    let output = Output::new()?;
    let dir = output.dir().to_str().context("a path of text")?.to_owned();
    let script = "for i in $(seq 20000); do :; done; sleep 0.5";
    let (a, b) = (format!("a=sh -c '{script}'"), format!("b=sh -c '{script}; :'"));
    let options = ["--repeat", "3", "--seed", "7", "--output", &dir, "--variant", &a, "--variant", &b];
    for (done, signal) in [(1, Signal::TERM), (2, Signal::KILL)] {
        let running = spawn(&options)?;
        wait_for_runs(output.dir(), done)?;
        running.signal(signal)?;
        let finished = running.finish(LIMIT)?;
        if signal == Signal::TERM {
            ensure!(
                finished.code() == Some(143) && finished.stderr.contains("goes on with the others"),
                "{finished:?}"
            );
        }
    }
    // A run of the experiment that was killed may take a moment to end: the next one waits for it.
    let finished = run(&options)?;
    ensure!(finished.code() == Some(0) && finished.stderr.contains("are done already"), "{finished:?}");
    let log = log(output.dir())?;
    let mut places: Vec<String> = runs(&log).iter().map(|run| format!("{}{}", run["variant"], run["round"])).collect();
    places.sort();
    ensure!(places == ["00", "01", "02", "10", "11", "12"], "{log}");
    for (variant, at) in [("a", 0), ("b", 1)] {
        ensure!(recorded(output.dir(), variant)? == logged(&log, at), "{variant}: {log}");
    }
    // Nothing is left to do, and one more run of each is two more.
    let finished = run(&options)?;
    ensure!(
        finished.code() == Some(0) && finished.stderr.contains("nothing is run: 6 are done already"),
        "{finished:?}"
    );
    let other = run(&[&options[..], &["--frequency", "199"]].concat())?;
    ensure!(other.code() == Some(6) && other.stderr.contains("--frequency differs"), "{other:?}");
    let other = run(&["--repeat", "3", "--output", &dir, "--", "true"])?;
    ensure!(other.code() == Some(6) && other.stderr.contains("holds another experiment"), "{other:?}");
    Ok(())
}

/// Children of a process.
fn children(pid: u32) -> Result<Vec<u32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    text.split_whitespace().map(|pid| Ok(pid.parse()?)).collect()
}

/// What an experiment leaves behind that was killed: its run, which stands still and so has the data set, and the command.
struct Killed {
    trial: Pid,
    command: u32,
}

/// Starts an experiment, and kills it when its command has said that it began.
fn killed_while_its_run_stands_still(options: &[&str], began: &Path) -> Result<Killed> {
    let killed = spawn(options)?;
    wait_for("the command to begin", LIMIT, || Ok(began.exists().then_some(())))?;
    let trial = *children(killed.pid())?.first().context("a run")?;
    let command = *children(trial)?.first().context("a command")?;
    let trial = Pid::from_raw(trial.try_into()?).context("a pid")?;
    kill_process(trial, Signal::STOP)?;
    killed.signal(Signal::KILL)?;
    killed.finish(LIMIT)?;
    Ok(Killed { trial, command })
}

/// The run is stopped when its experiment is killed, so that it certainly has the data set when the same command line is
/// given again.
#[test]
fn an_experiment_that_goes_on_waits_for_the_run_of_one_that_was_killed_and_says_so() -> Result<()> {
    let output = Output::new()?;
    let dir = output.dir().to_str().context("a path of text")?.to_owned();
    let began = output.beside("began");
    // The first run is stopped while it works, others end soon.
    let script = format!("if mkdir '{}' 2>/dev/null; then exec sleep 100; fi", began.display());
    let options = ["--repeat", "2", "--seed", "7", "--output", &dir, "--", "sh", "-c", &script];
    let Killed { trial, command } = killed_while_its_run_stands_still(&options, &began)?;
    let mut again = spawn(&options)?;
    let said = again.wait_stderr_with("waiting for process", LIMIT);
    kill_process(trial, Signal::CONT)?;
    let said = said?;
    ensure!(said.contains(&trial.as_raw_nonzero().to_string()) && said.contains("asked to end"), "{said}");
    let finished = again.finish(LIMIT)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    let log = log(output.dir())?;
    ensure!(runs(&log).len() == 2 && recorded(output.dir(), "base")? == logged(&log, 0), "{log}");
    // Nobody measures the command of the killed one any more, and it does not go on.
    ensure!(!Path::new(&format!("/proc/{command}")).exists(), "the command goes on");
    Ok(())
}

/// Whoever waits for an experiment's run may give up, and leaves everything as it was.
#[test]
fn waiting_for_a_run_of_a_killed_experiment_can_be_interrupted() -> Result<()> {
    let output = Output::new()?;
    let dir = output.dir().to_str().context("a path of text")?.to_owned();
    let began = output.beside("began");
    let script = format!("touch '{}'; exec sleep 100", began.display());
    let options = ["--repeat", "2", "--output", &dir, "--", "sh", "-c", &script];
    let Killed { trial, .. } = killed_while_its_run_stands_still(&options, &began)?;
    let mut again = spawn(&options)?;
    let said = again.wait_stderr_with("waiting for process", LIMIT);
    again.signal(Signal::INT)?;
    let finished = again.finish(Duration::from_secs(20));
    kill_process(trial, Signal::CONT)?;
    said?;
    let finished = finished?;
    ensure!(finished.code() == Some(130) && finished.stderr.contains("interrupted"), "{finished:?}");
    Ok(())
}

/// A run that is told to begin when its experiment is gone already: nobody reads what it came to.
#[test]
fn a_run_whose_experiment_was_killed_before_it_began_starts_no_command() -> Result<()> {
    let output = Output::new()?;
    let (began, dir) = (output.beside("began"), output.dir().to_str().context("a path of text")?.to_owned());
    let (reader, writer) = std::io::pipe()?;
    fcntl_setfd(&writer, FdFlags::empty())?;
    drop(reader);
    let orders = serde_json::json!({ "output": dir, "shows_output": true, "outcome": writer.as_raw_fd() }).to_string();
    let mut line = Command::new(paths::joular_bpf());
    line.args(["__trial", &orders, "2", "touch"]).arg(&began);
    line.args(["joular-bpf", "run", "--energy", "model", "--repeat", "2", "--", "touch"]).arg(&began);
    let finished = Running::spawn("a run of an experiment", &mut line)?.finish(LIMIT)?;
    ensure!(finished.code() == Some(1) && !began.exists() && !output.dir().exists(), "{finished:?}");
    ensure!(finished.stderr.contains("the experiment has ended"), "{finished:?}");
    Ok(())
}

#[test]
fn a_full_disk_ends_an_experiment_which_goes_on_when_there_is_room() -> Result<()> {
    let disk = Tmpfs::mount("size=4m")?;
    let dir = disk.path().join("out");
    let options = ["--repeat", "4", "--output", dir.to_str().context("a path of text")?, "--", "sleep", "0.5"];
    let running = spawn(&options)?;
    wait_for_runs(&dir, 1)?;
    disk.fill()?;
    let finished = running.finish(LIMIT)?;
    ensure!(finished.code() == Some(6) && finished.stderr.contains("no space left on the device"), "{finished:?}");
    let before = runs(&log(&dir)?).len();
    ensure!((1..4).contains(&before), "{before} runs");
    disk.make_room()?;
    let finished = run(&options)?;
    ensure!(
        finished.code() == Some(0) && finished.stderr.contains(&format!("{before} are done already")),
        "{finished:?}"
    );
    let log = log(&dir)?;
    ensure!(runs(&log).len() == 4 && recorded(&dir, "base")? == logged(&log, 0), "{log}");
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

/// A class file of tests/fixtures/java, compiled.
fn compiled(name: &str) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let source = paths::root().join(format!("tests/fixtures/java/{name}.java"));
    let status = Command::new("javac").arg("-d").arg(folder.path()).arg(source).status()?;
    ensure!(status.success(), "compiling {name}.java");
    Ok(folder)
}

/// Sweeps one of the methods of Growth.java.
fn sweep(classes: &str, kind: &str, values: &str, options: &[&str]) -> Result<Finished> {
    let mut line = Command::new(paths::joular_bpf());
    line.args(["sweep", "--energy", "model", "--frequency", "499", "--repeat", "2", "--parameter", values])
        .args(options);
    line.args(["--", "java", "-cp", classes, "Growth", kind, "{n}"]);
    Running::spawn("joular-bpf sweep", &mut line)?.finish(LIMIT)
}

#[test]
fn a_sweep_finds_how_methods_grow_and_compares_no_other_range() -> Result<()> {
    let folder = compiled("Growth")?;
    let classes = folder.path().to_str().context("text")?;
    let results = folder.path().join("scan.json");
    let results = results.to_str().context("text")?;
    let svg = folder.path().join("scan.svg");
    let finished = sweep(
        classes,
        "scan",
        "n=2000..32000:log:5",
        &["--export-json", results, "--export-plot", svg.to_str().context("text")?],
    )?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    ensure!(fs::read_to_string(&svg)?.contains("Growth.scan"), "the picture has the method");
    let found: Value = serde_json::from_str(&fs::read_to_string(results)?)?;
    let is_linear = |growth: &Value| {
        let classes = std::iter::once(&growth["class"]).chain(growth["alternatives"].as_array().into_iter().flatten());
        classes.into_iter().any(|class| class == "n")
    };
    let scan = found["methods"].as_array().into_iter().flatten().find(|method| method["name"] == "Growth.scan");
    ensure!(is_linear(&found["total"]["growth"]) && is_linear(&scan.context("the method")?["growth"]), "{found}");
    // Discs of a tower are no times of a scan.
    let other = sweep(classes, "hanoi", "n=18..28:step:2", &["--against", results])?;
    ensure!(other.code() == Some(9) && other.stderr.contains("different ranges of n"), "{other:?}");
    Ok(())
}
