//! Measures what the profiler takes, and how much it sees, where programs run that nobody here wrote, and
//! where hundreds of JVMs have almost nothing to do.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    clock::monotonic_ns,
    java::{Jvm, Workload},
    profiler::{Output, Run},
    schedstat,
    servers::Program,
};

use super::{figure::Figure, own_time, resources::peak_memory_mib};
use crate::{setup, shell};

const RUNS: usize = 3;
/// The profiler's first seconds are its start, and a server compiles its methods first.
const WARM_UP: Duration = Duration::from_secs(12);
const MEASURED: Duration = Duration::from_secs(20);

const IDLE_JVMS: usize = 200;
/// Started at the same time.
const AT_ONCE: usize = 4;
/// Two thousandths of a CPU each.
const THREAD: &str = "sleep-200-130";

pub fn measure() -> Result<Vec<Figure>> {
    setup::servers();
    let mut figures = Vec::new();
    for program in Program::ALL {
        shell::step(&format!("the profiler's own CPU and memory: {program}"));
        let server = program.start()?;
        figures.extend(of_load(&program.to_string(), "none")?);
        drop(server);
    }
    shell::step(&format!("the profiler's own CPU and memory: {IDLE_JVMS} JVMs that are mostly idle"));
    let jvms = idle_jvms()?;
    figures.extend(of_load(&format!("{IDLE_JVMS} idle JVMs"), "≤ 64 MiB")?);
    drop(jvms);
    Ok(figures)
}

fn idle_jvms() -> Result<Vec<Jvm>> {
    let start = || Workload::new("Waker").flag("-Xmx16m").flag("-XX:+UseSerialGC").argument(THREAD).start();
    let some = || (0..IDLE_JVMS / AT_ONCE).map(|_| start()).collect::<Result<Vec<_>>>();
    thread::scope(|scope| {
        let others: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(some)).collect();
        let started = others.into_iter().map(|other| other.join().ok().context("starting JVMs panicked")?);
        Ok(started.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// All JVMs of the machine, at the default frequency.
fn of_load(load: &str, memory_target: &'static str) -> Result<Vec<Figure>> {
    let (mut cpu, mut memory, mut whole, mut own_time) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        let output = Output::new()?;
        let profiler = Run::new().with("--comm", "java").argument("--quiet").output(output.dir()).start()?;
        thread::sleep(WARM_UP);
        let before = (monotonic_ns(), schedstat::process(profiler.pid())?);
        thread::sleep(MEASURED);
        let after = (monotonic_ns(), schedstat::process(profiler.pid())?);
        cpu.push(100.0 * (after.1 - before.1) as f64 / (after.0 - before.0) as f64);
        memory.push(peak_memory_mib(profiler.pid())?);
        if run == RUNS - 1 {
            own_time = own_time::of(&profiler, load)?;
        }
        profiler.stop()?;
        whole.push(output.data.number(
            "SELECT 100 * sum(samples) FILTER (is_complete)::DOUBLE / sum(samples) FROM quality WHERE category = 'java'",
        )?);
    }
    let figure = |what: &str, unit, target, digits, values, method: &str| Figure {
        name: format!("{what}, {load}"),
        unit,
        target,
        digits,
        values,
        method: method.to_owned(),
    };
    let mut figures = vec![
        figure(
            "CPU of the profiler",
            "% of one core",
            "≤ 1 %",
            2,
            cpu,
            "on-CPU time of all its threads in 20 s, from 12 s after its start",
        ),
        figure("peak memory", "MiB", memory_target, 1, memory, "VmHWM of the same runs"),
        figure(
            "whole stacks",
            "%",
            "≥ 99.5 %",
            2,
            whole,
            "samples of Java threads in the same runs, start included, whose stack reaches the thread's first function",
        ),
    ];
    figures.splice(1..1, own_time);
    Ok(figures)
}
