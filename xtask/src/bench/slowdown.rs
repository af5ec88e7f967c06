//! Measures how much slower a busy JVM gets. One JVM runs all the time. The profiler is on in short
//! phases, each compared with the mean of the phases without it just before and after, so that
//! neither drift nor other users of the machine count as slowdown.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    clock::monotonic_ns,
    java::{Jvm, Workload},
    profiler::{Output, Run},
};
use serde_json::Value;

use super::figure::Figure;
use crate::shell;

/// Pause after the profiler's start, before measuring. What it does once per run (kernel symbols,
/// libraries, unwind tables, names of what it sees first) would otherwise be paid in every phase,
/// and is a figure of its own (CPU of a start).
const START: Duration = Duration::from_secs(5);
/// Pause after the profiler's end, which writes files.
const END: Duration = Duration::from_secs(2);

/// A stretch of time on the monotonic clock.
struct Phase {
    start: u64,
    end: u64,
}

impl Phase {
    /// Once it has settled for some time.
    fn measure(settle: Duration, length: Duration) -> Self {
        thread::sleep(settle);
        let start = monotonic_ns();
        thread::sleep(length);
        Self { start, end: monotonic_ns() }
    }

    /// Operations per second within it.
    fn throughput(&self, progress: &[(u64, f64)]) -> Result<f64> {
        let done = operations_at(progress, self.end)? - operations_at(progress, self.start)?;
        Ok(done * 1e9 / (self.end - self.start) as f64)
    }
}

/// How the profiler is started.
#[derive(Clone, Copy, Debug)]
pub struct Profiling {
    pub frequency: u32,
    /// Whether allocations are sampled.
    pub alloc: bool,
}

impl Profiling {
    fn name(self) -> String {
        format!("{} Hz{}", self.frequency, if self.alloc { " with --alloc" } else { "" })
    }

    const fn target(self) -> &'static str {
        match (self.frequency, self.alloc) {
            (_, true) => "≤ 2 %",
            (..=99, false) => "≤ 0.5 %",
            (_, false) => "≤ 3 %",
        }
    }
}

pub fn measure(profiling: Profiling, pairs: u32, length: Duration) -> Result<Figure> {
    let (frequency, name) = (profiling.frequency, profiling.name());
    shell::step(&format!(
        "slowdown of a busy JVM at {name}: {pairs} phases of {length:?} with the profiler, as many without"
    ));
    let limit = f64::from(pairs + 1) * (2.0 * length.as_secs_f64() + 20.0);
    let jvm = Workload::new("Throughput").argument(&format!("seconds={limit}")).start()?;
    let mut off = vec![Phase::measure(END, length)];
    let mut on = Vec::new();
    for _ in 0..pairs {
        let output = Output::new()?;
        let profiler = Run::new().with("--comm", "java").with("--frequency", frequency.to_string()).argument("--quiet");
        let profiler = if profiling.alloc { profiler.argument("--alloc") } else { profiler };
        let profiler = profiler.output(output.dir()).start()?;
        on.push(Phase::measure(START, length));
        profiler.stop()?;
        off.push(Phase::measure(END, length));
    }
    let progress = progress(&jvm)?;
    let mut slowdowns = Vec::new();
    for (index, phase) in on.iter().enumerate() {
        let around = f64::midpoint(off[index].throughput(&progress)?, off[index + 1].throughput(&progress)?);
        slowdowns.push(100.0 * (1.0 - phase.throughput(&progress)? / around));
    }
    Ok(Figure {
        name: format!("JVM slowdown, at {name}"),
        unit: "%",
        target: profiling.target(),
        method: format!(
            "a JVM keeps every CPU busy and counts its transactions; each of {pairs} phases of {} ms with the profiler, \
             {} s after its start, is compared with the mean of the phases without it before and after",
            length.as_millis(),
            START.as_secs()
        ),
        values: slowdowns,
        digits: 2,
    })
}

/// What the workload printed: moments and operations done so far.
fn progress(jvm: &Jvm) -> Result<Vec<(u64, f64)>> {
    // One more line, so that the last phase is covered.
    thread::sleep(Duration::from_millis(200));
    let point = |record: &Value| Some((record["mono_ns"].as_u64()?, record["operations"].as_f64()?));
    jvm.records().iter().map(|record| point(record).with_context(|| format!("unexpected line {record}"))).collect()
}

/// Operations done at a moment, between two lines in proportion.
fn operations_at(progress: &[(u64, f64)], moment: u64) -> Result<f64> {
    let after = progress.partition_point(|(at, _)| *at < moment);
    let (before, after) = (after.checked_sub(1).and_then(|at| progress.get(at)), progress.get(after));
    let ((t0, x0), (t1, x1)) = before.zip(after).context("a phase lies outside of what the workload printed")?;
    Ok(x0 + (x1 - x0) * (moment - t0) as f64 / (t1 - t0) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_between_lines_is_interpolated() -> Result<()> {
        let progress = [(0, 0.0), (1_000_000_000, 100.0), (2_000_000_000, 300.0)];
        let phase = Phase { start: 500_000_000, end: 1_500_000_000 };
        assert_eq!(phase.throughput(&progress)?, 150.0);
        assert!(Phase { start: 0, end: 3_000_000_000 }.throughput(&progress).is_err());
        Ok(())
    }
}
