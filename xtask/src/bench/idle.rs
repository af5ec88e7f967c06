//! Measures how often the profiler interrupts and wakes CPUs that have almost nothing to do. A small
//! JVM wakes now and then: samples of its threads are interrupts too, but wake no CPU. The profiler is on in phases, each compared with those without it before and after.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    clock::monotonic_ns,
    java::Workload,
    profiler::{Output, Run},
};

use super::figure::Figure;
use crate::shell;

const PAIRS: usize = 12;
/// Until the profiler has read what it needs, the code of the first samples too.
const START: Duration = Duration::from_secs(12);
const END: Duration = Duration::from_secs(1);
const PHASE: Duration = Duration::from_secs(10);

/// Per CPU and second, over all CPUs.
#[derive(Clone, Copy)]
struct Rates {
    /// Interrupts of the local timer.
    timer: f64,
    /// Interrupts of all kinds.
    all: f64,
    /// Times that a CPU left an idle state. An interrupt of a running thread is none.
    wake_ups: f64,
}

/// How often the CPUs have been in an idle state: the kernel's cpuidle counts it per CPU and state.
fn idle_entries() -> Result<f64> {
    let mut entries = 0.0;
    for cpu in fs::read_dir("/sys/devices/system/cpu")? {
        let Ok(states) = fs::read_dir(cpu?.path().join("cpuidle")) else { continue };
        for state in states {
            let usage = state?.path().join("usage");
            let text = fs::read_to_string(&usage).with_context(|| format!("reading {}", usage.display()))?;
            entries += text.trim().parse::<f64>().with_context(|| format!("a count in {}", usage.display()))?;
        }
    }
    Ok(entries)
}

/// Counts since the start of the machine, and the number of CPUs.
fn counted() -> Result<(Rates, f64)> {
    let text = fs::read_to_string("/proc/interrupts").context("reading /proc/interrupts")?;
    let cpus = text.lines().next().map_or(0, |line| line.split_whitespace().count());
    let mut counts = Rates { timer: 0.0, all: 0.0, wake_ups: idle_entries()? };
    for line in text.lines().skip(1) {
        let mut words = line.split_whitespace();
        let name = words.next();
        let sum: f64 = words.take(cpus).filter_map(|word| word.parse::<f64>().ok()).sum();
        counts.all += sum;
        if name == Some("LOC:") {
            counts.timer = sum;
        }
    }
    Ok((counts, cpus as f64))
}

fn phase(settle: Duration) -> Result<Rates> {
    thread::sleep(settle);
    let (start_ns, (before, cpus)) = (monotonic_ns(), counted()?);
    thread::sleep(PHASE);
    let (after, _) = counted()?;
    let seconds = (monotonic_ns() - start_ns) as f64 / 1e9;
    let rate = |before: f64, after: f64| (after - before) / seconds / cpus;
    Ok(Rates {
        timer: rate(before.timer, after.timer),
        all: rate(before.all, after.all),
        wake_ups: rate(before.wake_ups, after.wake_ups),
    })
}

pub fn measure() -> Result<Vec<Figure>> {
    shell::step("interrupts that the profiler adds to idle CPUs");
    let _jvm = Workload::new("Waker").argument("sleep-20-130").start()?;
    let mut off = vec![phase(END)?];
    let mut on = Vec::new();
    for _ in 0..PAIRS {
        let output = Output::new()?;
        let profiler = Run::new().with("--comm", "java").argument("--quiet").output(output.dir()).start()?;
        on.push(phase(START)?);
        profiler.stop()?;
        off.push(phase(END)?);
    }
    let added = |of: fn(&Rates) -> f64| {
        let around = off.windows(2).map(|pair| f64::midpoint(of(&pair[0]), of(&pair[1])));
        on.iter().zip(around).map(|(on, around)| of(on) - around).collect()
    };
    let figure = |name: &str, target, values, what: &str| Figure {
        name: name.to_owned(),
        unit: "/s",
        target,
        digits: 1,
        values,
        method: format!(
            "{what} per CPU and second on a machine whose one JVM works for 0.4 ms every 20 ms, in {PAIRS} phases of {} s \
             with the profiler, less the mean of those without it before and after",
            PHASE.as_secs()
        ),
    };
    Ok(vec![
        figure(
            "timer interrupts added to an idle CPU",
            "≤ 2 /s",
            added(|rates| rates.timer),
            "interrupts of the local timer",
        ),
        figure(
            "wake-ups added to an idle CPU",
            "≤ 2 /s",
            added(|rates| rates.wake_ups),
            "times that a CPU leaves an idle state, as cpuidle counts them,",
        ),
        figure("all interrupts added to an idle CPU", "none", added(|rates| rates.all), "interrupts of all kinds"),
    ])
}
