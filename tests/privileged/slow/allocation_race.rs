//! Tests that what one thread allocates never counts for another one, however often threads are put off while they note
//! it: many of them share a CPU with a program that comes first, while the recorder takes the notes on another CPU. Only a
//! kernel that preempts itself puts them off in the middle of a note; without that (`preempt=none`) this cannot fail.

use std::{collections::BTreeMap, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    java::Workload,
    native, notes,
    process::Running,
    profiler::{END, Output, Run},
};
use rustix::process::Signal;

const THREADS: usize = 512;
const LIMIT: Duration = Duration::from_secs(120);
/// It takes the CPU for some 450 µs of each millisecond.
const NEIGHBOUR: &str = "sleep-1-150";
const CPU: usize = 0;
/// A thread allocates next to nothing after it has asked how much it had allocated; the next one had a step more.
const AFTERWARDS_BYTES: f64 = 4_096.0;

/// A program in front of all others on the CPU.
fn neighbour(directory: &std::path::Path) -> Result<Running> {
    let program = directory.join("waker");
    native::compile("waker.c", &program)?;
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &CPU.to_string(), "chrt", "--fifo", "10"]).arg(program).arg(NEIGHBOUR);
    let mut neighbour = Running::spawn("a program of real time", &mut command)?;
    neighbour.wait_stdout("ready", LIMIT)?;
    Ok(neighbour)
}

#[test]
fn each_threads_bytes_are_its_own_where_threads_are_put_off_all_the_time() -> Result<()> {
    let (directory, output) = (tempfile::tempdir()?, Output::new()?);
    let workload = Workload::new("OwnBytes").cpu(CPU).argument(&format!("threads={THREADS}"));
    // Small buffers: each of a few objects is noted.
    let mut jvm = workload.flag("-XX:TLABSize=2k").flag("-XX:MinTLABSize=2k").flag("-XX:-ResizeTLAB").start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--interval", "100ms").argument("--json").argument("--alloc");
    let mut profiler = run.output(output.dir()).start()?;
    (0..5).try_for_each(|_| profiler.wait_window().map(drop))?;
    let neighbour = neighbour(directory.path())?;
    jvm.say("go")?;
    let told = wait_for("threads to allocate", LIMIT, || Ok(jvm.records().last().cloned()))?;
    drop(neighbour);
    (0..5).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.signal(Signal::INT)?;
    profiler.finish(END)?;
    let rows = output.data.rows(
        "SELECT tid::VARCHAR AS tid, sum(allocated_bytes)::DOUBLE AS bytes, sum(samples)::DOUBLE AS samples
         FROM allocations GROUP BY 1",
    )?;
    let found: BTreeMap<&str, f64> =
        rows.iter().filter_map(|row| Some((row["tid"].as_str()?, row["bytes"].as_f64()?))).collect();
    let samples: f64 = rows.iter().filter_map(|row| row["samples"].as_f64()).sum();
    let mut largest = 0.0;
    let told = told.as_object().context("bytes of threads")?;
    ensure!(told.len() == THREADS, "{} threads, some of which had the same number", told.len());
    for (tid, told) in told {
        let told = told.as_f64().context("bytes")?;
        let found = *found.get(tid.as_str()).with_context(|| format!("nothing is recorded of thread {tid}"))?;
        ensure!((0.0..=AFTERWARDS_BYTES).contains(&(found - told)), "thread {tid}: {found} bytes, the JVM says {told}");
        largest = f64::max(largest, found - told);
    }
    let lost = output.data.number("SELECT sum(lost_allocation_map_full)::DOUBLE FROM windows")?;
    notes::figure(&format!(
        "{THREADS} threads on a CPU beside a program of real time: each one's bytes are its own, at most {largest} more \
         than it says; {samples} samples, {lost} records lost"
    ));
    ensure!(lost == 0.0, "{lost} records were lost");
    Ok(())
}
