//! Tests a machine on which far more threads come than there were at the start: the maps become larger,
//! so that each has its place.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    native, notes,
    process::Running,
    profiler::{Output, Run},
};

use crate::{burner::Burner, recordings};

/// The least number of places that there are at the start.
const PLACES: usize = 16_384;
/// More than that, and fewer than a process may have by default.
const THREADS: usize = 20_000;
/// Each runs in each window, whenever it wakes.
const SLEEP_MS: u32 = 300;
const STARTED: Duration = Duration::from_secs(60);
/// Longer than the run.
const BURN: Duration = Duration::from_secs(60);
/// Those that may be too full: a bank gets more room when its window has ended, and there are two.
const SETTLES: usize = 4;
const JUDGED: usize = 3;

/// Threads that sleep; `None` if the machine does not allow as many.
fn crowd(program: &Path) -> Result<Option<Running>> {
    native::compile("crowd.c", program)?;
    let mut command = Command::new(program);
    let mut crowd = Running::spawn("crowd", command.args([THREADS.to_string(), SLEEP_MS.to_string()]))?;
    let said = crowd.wait_stdout("re", STARTED)?;
    Ok((said == "ready").then_some(crowd))
}

#[test]
fn threads_that_come_later_find_places() -> Result<()> {
    let output = Output::new()?;
    let recording = output.beside("run.jrec");
    let mut burner = Burner::start(&[10])?;
    let run = Run::modelled().pid(burner.pid()).with("--record", &recording);
    let mut profiler = run.argument("--no-output").argument("--json").start()?;
    burner.begin(BURN)?;
    profiler.wait_window()?;
    let Some(crowd) = crowd(&output.beside("crowd"))? else {
        notes::figure(&format!(
            "this machine does not allow {THREADS} threads: maps that become larger were not tested"
        ));
        return Ok(());
    };
    for _ in 0..SETTLES + JUDGED {
        profiler.wait_window()?;
    }
    profiler.stop()?;
    drop(crowd);

    let windows = recordings::windows(&recording)?;
    // The last one is cut short.
    let judged = windows.len().checked_sub(JUDGED + 1).and_then(|first| windows.get(first..first + JUDGED));
    let judged = judged.with_context(|| format!("only {} windows", windows.len()))?;
    let most = judged.iter().map(|window| window.threads.len()).max().unwrap_or(0);
    let lost: Vec<u64> = windows.iter().map(|window| window.cpus.iter().map(|cpu| cpu.unslotted_ns).sum()).collect();
    notes::figure(&format!("up to {most} threads in a window; time of those without a place: {lost:?} ns"));
    ensure!(most > PLACES, "only {most} threads ran in a window");
    for window in judged {
        let unslotted_ns: u64 = window.cpus.iter().map(|cpu| cpu.unslotted_ns).sum();
        let is_full = window.losses.iter().any(|loss| loss.cause == "thread_map_full");
        ensure!(unslotted_ns == 0 && !is_full, "window {}: {unslotted_ns} ns, {:?}", window.index, window.losses);
    }
    Ok(())
}
