//! Tests directories that cannot be written, are full, or are in use.

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use anyhow::Result;
use joular_tests::{
    clock::wait_for,
    dataset::DataSet,
    mount::Tmpfs,
    process::Finished,
    profiler::{END, Output, Run},
};

use crate::burner::Burner;

const LIMIT: Duration = Duration::from_secs(30);

fn run(burner: &Burner, dir: &Path) -> Run {
    Run::modelled().pid(burner.pid()).with("--flush", "1s").output(dir)
}

fn busy() -> Result<Burner> {
    let mut burner = Burner::start(&[100])?;
    burner.begin(Duration::from_secs(60))?;
    Ok(burner)
}

/// Expects exit code 6, and a message that names the directory and the reason.
fn expect_output_error(finished: &Finished, dir: &Path, reason: &str) {
    assert_eq!(finished.code(), Some(6), "{finished:?}");
    let message = finished.stderr.to_lowercase();
    assert!(message.contains(&dir.display().to_string().to_lowercase()), "no directory in: {message}");
    assert!(message.contains(reason), "'{reason}' is not in: {message}");
    assert!(!message.contains("panicked"), "{message}");
}

#[test]
fn a_full_disk_ends_the_run_with_a_message_and_finished_files_stay() -> Result<()> {
    let burner = busy()?;
    let disk = Tmpfs::mount("size=4m")?;
    let dir = disk.path().join("out");
    let profiler = run(&burner, &dir).start()?;
    let data = DataSet::at(&dir);
    wait_for("a first finished file", LIMIT, || {
        Ok((dir.exists() && data.parquet_files().unwrap_or(0) > 0).then_some(()))
    })?;
    disk.fill()?;
    let finished = profiler.finish(LIMIT)?;
    expect_output_error(&finished, &dir, "no space left");
    data.expect_readable()?;
    assert!(data.parquet_files()? > 0);
    Ok(())
}

#[test]
fn a_read_only_directory_is_refused_before_anything_is_sampled() -> Result<()> {
    let burner = busy()?;
    let disk = Tmpfs::mount("size=1m,ro")?;
    let dir = disk.path().join("out");
    let finished = run(&burner, &dir).with("--duration", "4s").finish(LIMIT)?;
    expect_output_error(&finished, &dir, "read-only");
    assert!(!finished.stderr.contains("joular-bpf: recording"), "it sampled first: {}", finished.stderr);
    Ok(())
}

#[test]
fn a_file_in_place_of_the_directory_is_refused() -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    fs::write(output.dir(), "not a directory")?;
    let finished = run(&burner, output.dir()).with("--duration", "4s").finish(LIMIT)?;
    expect_output_error(&finished, output.dir(), "director");
    assert_eq!(fs::read_to_string(output.dir())?, "not a directory");
    Ok(())
}

#[test]
fn a_directory_in_use_is_refused_and_its_user_is_not_disturbed() -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    let first = run(&burner, output.dir()).start()?;
    let second = run(&burner, output.dir()).with("--duration", "4s").finish(LIMIT)?;
    expect_output_error(&second, output.dir(), "another run");
    let finished = first.stop()?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    output.data.expect_readable()?;
    assert_eq!(output.data.number("SELECT count(*) FROM runs")?, 1.0);
    Ok(())
}

#[test]
fn a_second_run_adds_to_the_data_set() -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    for _ in 0..2 {
        let finished = run(&burner, output.dir()).with("--duration", "4s").finish(LIMIT + END)?;
        assert_eq!(finished.code(), Some(0), "{finished:?}");
    }
    output.data.expect_readable()?;
    assert_eq!(output.data.number("SELECT count(*) FROM runs")?, 2.0);
    Ok(())
}

/// As the owner of the directory may do it, while the run writes as root.
#[test]
fn links_put_in_while_running_lead_nowhere() -> Result<()> {
    let (burner, output) = (busy()?, Output::new()?);
    let [dir, moved, elsewhere] = ["out", "moved", "elsewhere"].map(|name| output.beside(name));
    fs::create_dir(&elsewhere)?;
    let mut profiler = run(&burner, &dir).argument("--json").start()?;
    profiler.wait_window()?;
    fs::rename(&dir, &moved)?;
    symlink(&elsewhere, &dir)?;
    (0..3).try_for_each(|_| profiler.wait_window().map(drop))?;
    // What is written now stays in the directory; a link below it ends the run.
    fs::rename(moved.join("threads"), output.beside("threads"))?;
    symlink(&elsewhere, moved.join("threads"))?;
    let finished = profiler.finish(LIMIT)?;
    expect_output_error(&finished, &dir, "link");
    assert_eq!(fs::read_dir(&elsewhere)?.count(), 0);
    let windows = DataSet::at(&moved).number("SELECT count(DISTINCT window_start)::DOUBLE FROM windows")?;
    assert!(windows >= 3.0, "{windows} windows");
    Ok(())
}
