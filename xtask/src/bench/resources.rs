//! Measures what the profiler itself takes with two busy JVMs: CPU, memory, disk.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    bpf_stats::{BpfStats, programs},
    clock::monotonic_ns,
    java::Workload,
    profiler::{Output, Run},
    schedstat,
};

use super::figure::Figure;
use crate::shell;

const RUNS: usize = 3;
const JVMS: f64 = 2.0;
/// Reading symbols of everything for the first time is start-up, not steady state.
const WARM_UP: Duration = Duration::from_secs(4);
const MEASURED: Duration = Duration::from_secs(20);

pub fn measure() -> Result<Vec<Figure>> {
    shell::step("the profiler's own CPU, memory and disk space, two busy JVMs");
    let limit = format!("seconds={}", 600);
    let jvms = [
        Workload::new("Throughput").argument("threads=1").argument(&limit).start()?,
        Workload::new("Busy").argument("depth=32").argument(&limit).start()?,
    ];
    let (mut start_up, mut cpu, mut memory, mut disk) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let output = Output::new()?;
        let start = monotonic_ns();
        let profiler = Run::new().with("--comm", "java").argument("--quiet").output(output.dir()).start()?;
        thread::sleep(WARM_UP);
        let before = (monotonic_ns(), schedstat::process(profiler.pid())?);
        start_up.push(before.1 as f64 / 1e6);
        thread::sleep(MEASURED);
        let after = (monotonic_ns(), schedstat::process(profiler.pid())?);
        cpu.push(100.0 * (after.1 - before.1) as f64 / (after.0 - before.0) as f64);
        memory.push(peak_memory_mib(profiler.pid())?);
        profiler.stop()?;
        let minutes = (monotonic_ns() - start) as f64 / 60e9;
        disk.push(output.data.parquet_bytes()? as f64 / 1024.0 / JVMS / minutes);
    }
    let taken = (0..RUNS).map(|_| taken()).collect::<Result<Vec<_>>>()?;
    drop(jvms);
    let figure = |name: &str, unit, target, digits, values, method: &str| Figure {
        name: name.to_owned(),
        unit,
        target,
        digits,
        values,
        method: method.to_owned(),
    };
    Ok(vec![
        figure(
            "CPU of a start",
            "ms",
            "none",
            0,
            start_up,
            "on-CPU time of its first four seconds: loading and verifying the programs, kernel symbols, libraries, unwind tables",
        ),
        figure(
            "CPU of the profiler",
            "% of one core",
            "≤ 1 %",
            2,
            cpu,
            "on-CPU time of all its threads in 20 s of steady state",
        ),
        figure(
            "CPU taken from all CPUs",
            "%",
            "≤ 0.5 %",
            2,
            taken,
            "on-CPU time of the profiler's threads and run time of its eBPF programs (by the kernel's statistics, \
             samples by the event cpu-clock) in 20 s, of the time of all CPUs; what interrupts and colder caches cost \
             is not in it",
        ),
        figure("peak memory", "MiB", "≤ 40 MiB", 1, memory, "VmHWM of the same runs"),
        figure(
            "Parquet per JVM-minute",
            "KiB",
            "≤ 1024 KiB",
            0,
            disk,
            "all files of the same runs (about 25 s, two JVMs), per JVM and minute",
        ),
    ])
}

/// The part of all CPUs' time that the profiler and its programs have, in percent.
fn taken() -> Result<f64> {
    let _stats = BpfStats::enable()?;
    let output = Output::new()?;
    // The kernel's statistics leave out what runs at its timers.
    let run = Run::new().with("--comm", "java").with("--sampler", "cpu-clock").argument("--quiet");
    let profiler = run.output(output.dir()).start()?;
    let used_ns = || -> Result<u64> {
        let in_programs: u64 = programs(&profiler)?.values().map(|program| program.run_time_ns).sum();
        Ok(in_programs + schedstat::process(profiler.pid())?)
    };
    thread::sleep(WARM_UP);
    let before = (monotonic_ns(), used_ns()?);
    thread::sleep(MEASURED);
    let after = (monotonic_ns(), used_ns()?);
    profiler.stop()?;
    let cpus = thread::available_parallelism()?.get() as f64;
    Ok(100.0 * (after.1 - before.1) as f64 / (after.0 - before.0) as f64 / cpus)
}

pub fn peak_memory_mib(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("reading the profiler's status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().with_context(|| format!("VmHWM '{line}'"))?;
    Ok(kib / 1024.0)
}
