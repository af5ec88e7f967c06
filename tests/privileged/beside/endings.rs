//! Tests that a run's finished files are whole and its end is told, however it ends.

use std::{process::Command, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    clock::wait_for,
    profiler::{END, Output, Run},
    schedstat,
};
use rustix::process::Signal;

use crate::burner::Burner;

const LIMIT: Duration = Duration::from_secs(30);

/// Short windows and often a file, so that every kind of moment occurs.
fn run(burner: &Burner, output: &Output) -> Run {
    held(burner, output, "1s")
}

/// Short windows, written this often.
fn held(burner: &Burner, output: &Output, flush: &str) -> Run {
    Run::modelled().pid(burner.pid()).with("--interval", "200ms").with("--flush", flush).output(output.dir())
}

/// A burner that is busy for longer than any test here.
fn busy() -> Result<Burner> {
    let mut burner = Burner::start(&[100])?;
    burner.begin(Duration::from_secs(60))?;
    Ok(burner)
}

/// Waits until the run has finished its first files.
fn wait_for_files(output: &Output) -> Result<()> {
    wait_for("a first finished file", LIMIT, || {
        Ok((output.dir().exists() && output.data.parquet_files().unwrap_or(0) > 0).then_some(()))
    })
}

/// CPU seconds of targets in the data set.
fn seconds(output: &Output) -> Result<f64> {
    output.data.number("SELECT coalesce(sum(cpu_ns), 0)::DOUBLE / 1e9 FROM threads")
}

fn ends_in_order(signal: Signal) -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    let profiler = run(&burner, &output).start()?;
    let before = schedstat::process(burner.pid())?;
    let used = wait_for("the burner to use CPU time", LIMIT, || {
        let used = (schedstat::process(burner.pid())? - before) as f64 / 1e9;
        Ok((used > 1.5).then_some(used))
    })?;
    wait_for_files(&output)?;
    profiler.signal(signal)?;
    let finished = profiler.finish(END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let said = format!("{}\n{}", finished.stdout, finished.stderr);
    assert!(said.contains(&output.dir().display().to_string()), "the end does not say where the data went: {said}");
    output.data.expect_readable()?;
    // The last windows, not yet flushed when the signal came, are there too.
    let seen = seconds(&output)?;
    assert!(seen >= 0.8 * used, "{seen:.2} s of {used:.2} s");
    Ok(())
}

#[test]
fn sigint_ends_the_run_in_order() -> Result<()> {
    ends_in_order(Signal::INT)
}

#[test]
fn sigterm_ends_the_run_in_order() -> Result<()> {
    ends_in_order(Signal::TERM)
}

/// Ends a run that has written nothing yet by this number of signals, one after the other.
fn ended_impatiently(signals: usize) -> Result<(Output, f64)> {
    let (burner, output) = (busy()?, Output::new()?);
    let mut profiler = held(&burner, &output, "60s").argument("--json").start()?;
    let before = schedstat::process(burner.pid())?;
    (0..10).try_for_each(|_| profiler.wait_window().map(drop))?;
    let used = (schedstat::process(burner.pid())? - before) as f64 / 1e9;
    profiler.signal(Signal::INT)?;
    // It may be gone already, which is as good.
    (1..signals).for_each(|_| drop(profiler.signal(Signal::INT)));
    let finished = profiler.finish(END)?;
    assert!(matches!(finished.code(), Some(0 | 130)), "{finished:?}");
    output.data.files().map(drop).or_else(|_| std::fs::create_dir(output.dir()).context("no directory"))?;
    output.data.expect_readable()?;
    Ok((output, used))
}

#[test]
fn a_second_sigint_loses_nothing_that_was_recorded() -> Result<()> {
    let (output, used) = ended_impatiently(2)?;
    let seen = seconds(&output)?;
    assert!(seen >= 0.8 * used, "{seen:.2} s of {used:.2} s");
    assert_eq!(output.data.number("SELECT count(*)::DOUBLE FROM runs WHERE end_reason = 'SIGINT'")?, 1.0);
    Ok(())
}

#[test]
fn a_third_sigint_ends_at_once_or_finds_it_over() -> Result<()> {
    ended_impatiently(3).map(drop)
}

#[test]
fn the_end_of_the_processes_with_these_ids_ends_the_run() -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    let profiler = run(&burner, &output).start()?;
    wait_for_files(&output)?;
    drop(burner);
    let finished = profiler.finish(LIMIT)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stderr.contains("no process of --pid is left"), "{finished:?}");
    let ended = output.data.number("SELECT count(*)::DOUBLE FROM runs WHERE end_reason = 'end of the targets'")?;
    assert_eq!(ended, 1.0);
    Ok(())
}

#[test]
fn the_duration_ends_the_run() -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    let finished = run(&burner, &output).with("--duration", "2s").finish(LIMIT)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let recorded = output
        .data
        .number("SELECT sum(window_ns)::DOUBLE / 1e9 FROM (SELECT DISTINCT window_start, window_ns FROM windows)")?;
    assert!((1.9..2.5).contains(&recorded), "windows of {recorded:.2} s together");
    Ok(())
}

#[test]
fn kill_9_at_any_moment_leaves_whole_files_and_a_directory_that_can_be_used_again() -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    // Different every time; printed, so that a failure can be repeated.
    let mut random = joular_tests::clock::monotonic_ns();
    for round in 0..6 {
        let mut profiler = run(&burner, &output).spawn()?;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let delay = Duration::from_millis(300 + (random >> 33) % 3_000);
        std::thread::sleep(delay);
        profiler.kill();
        if output.dir().exists() {
            output.data.expect_readable().with_context(|| format!("round {round}: killed after {delay:?}"))?;
        }
    }
    let before = schedstat::process(burner.pid())?;
    let finished = run(&burner, &output).with("--duration", "2s").finish(LIMIT)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let used = (schedstat::process(burner.pid())? - before) as f64 / 1e9;
    output.data.expect_readable()?;
    // Loading programs and writing files take as long as recording, at most.
    let seen = seconds(&output)?;
    assert!(seen > 0.25 * used, "{seen:.2} s of {used:.2} s");
    Ok(())
}

#[test]
fn nothing_of_it_stays_in_the_kernel() -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    let mut profiler = run(&burner, &output).start()?;
    assert!(programs_held_by(profiler.pid())? > 0, "a running profiler holds programs");
    let ours = pinned()?;
    profiler.kill();
    assert_eq!(pinned()?, ours, "a killed profiler left pinned objects behind");
    Ok(())
}

fn programs_held_by(pid: u32) -> Result<usize> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd"))?;
    let targets = entries.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    Ok(targets.filter(|target| target.to_string_lossy().contains("bpf-prog")).count())
}

/// Names below the BPF file system: what is pinned outlives its process.
fn pinned() -> Result<String> {
    let output = Command::new("find").args(["/sys/fs/bpf", "-name", "*joular*"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
