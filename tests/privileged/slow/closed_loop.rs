//! Tests a machine of two sockets whose watts are known, with JVMs that compete for its CPUs: every
//! figure of a run is known in advance, and must match.
//!
//! The JVMs are stopped before the first window and before the last one ends, so that the kernel's
//! own account of each thread's time is exact and is of the windows only.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    dataset::{DataSet, float},
    java::{Jvm, Workload},
    powercap::{FakePowercap, Log, Plan, Watts},
    profiler::{END, Output, Run},
    stolen::Stolen,
    topology::{self, Cpus},
};

use crate::readings;

/// Watts of each socket, which has one CPU. Both have the same idle power, as `--idle-watts` does.
const WATTS: [Watts; 2] = [Watts { idle: 20, per_cpu: 30 }, Watts { idle: 20, per_cpu: 50 }];
/// Memory of the second socket.
const DRAM: Watts = Watts { idle: 0, per_cpu: 5 };

/// Seconds, each a window.
const WINDOWS: u32 = 30;

/// Bounds of the figures, as parts of the truth.
const TOTAL: f64 = 0.001;
const STATIC: f64 = 0.01;
const THREAD: f64 = 0.02;

/// The CPU of each JVM, and how long its thread rests after 10 ms of work: 1 %, 10 % and most of the
/// first CPU, for which they compete, and all of the second one.
const LOADS: [(usize, u32); 4] = [(0, 990), (0, 90), (0, 5), (1, 0)];

/// Threads with less time than this are not checked against the bound: the JVMs' own.
const LEAST_NS: u64 = 100_000_000;

fn start_jvm((cpu, rest_ms): (usize, u32)) -> Result<PinnedJvm> {
    let workload = Workload::new("Busy").frame_pointers().argument("seconds=600").cpu(cpu);
    Ok(PinnedJvm { cpu, jvm: workload.argument(&format!("rest={rest_ms}")).start()? })
}

struct PinnedJvm {
    cpu: usize,
    jvm: Jvm,
}

/// On-CPU nanoseconds by thread.
type Times = BTreeMap<u32, u64>;

struct Loop {
    output: Output,
    logs: Vec<Log>,
    expected: BTreeMap<u32, Expected>,
}

/// The energy that a thread must have.
struct Expected {
    cpu_ns: u64,
    energy_uj: f64,
    /// What it may have beyond that: for time stolen from its CPU.
    stolen_uj: f64,
}

fn run(windows: u32) -> Result<Loop> {
    let output = Output::new()?;
    let cpu_root = topology::create(output.beside("cpu"), Cpus::TwoSockets)?;
    let plans = [Plan::package(0, &[0], WATTS[0]), Plan::package(1, &[1], WATTS[1]), Plan::dram(1, &[1], DRAM)];
    let counters = FakePowercap::of(&plans)?;
    let jvms = LOADS.into_iter().map(start_jvm).collect::<Result<Vec<_>>>()?;
    let stolen = Stolen::start()?;
    let before = freeze(&jvms)?;
    let run = Run::new().with("--energy", "powercap").with("--powercap-root", counters.root());
    let run = run.with("--cpu-root", cpu_root).with("--idle", "separate");
    let run = run.with("--idle-watts", WATTS[0].idle.to_string()).argument("--json").output(output.dir());
    let mut profiler = jvms.iter().fold(run, |run, pinned| run.pid(pinned.jvm.pid())).start()?;
    jvms.iter().try_for_each(|pinned| pinned.jvm.thaw())?;
    for _ in 0..windows {
        profiler.wait_window()?;
    }
    let after = freeze(&jvms)?;
    profiler.stop()?;
    let mut expected = BTreeMap::new();
    for (pinned, (before, after)) in jvms.iter().zip(before.iter().zip(&after)) {
        let stolen_uj = energy_uj(pinned.cpu, stolen.at_most_ns(pinned.cpu)?);
        for (tid, ns) in after {
            let cpu_ns = ns - before.get(tid).copied().unwrap_or(0);
            expected.insert(*tid, Expected { cpu_ns, energy_uj: energy_uj(pinned.cpu, cpu_ns), stolen_uj });
        }
    }
    Ok(Loop { output, expected, logs: counters.finish()? })
}

fn freeze(jvms: &[PinnedJvm]) -> Result<Vec<Times>> {
    jvms.iter().map(|pinned| pinned.jvm.freeze()).collect()
}

/// Energy of time on a CPU, beside the idle power.
fn energy_uj(cpu: usize, cpu_ns: u64) -> f64 {
    let watts = WATTS[cpu].per_cpu + if cpu == 1 { DRAM.per_cpu } else { 0 };
    cpu_ns as f64 / 1000.0 * watts as f64
}

impl Loop {
    fn data(&self) -> &DataSet {
        &self.output.data
    }

    /// Checks, to a thousandth, what the counters advanced against what they had to.
    fn expect_total(&self) -> Result<()> {
        for (log, (domain, socket)) in self.logs.iter().zip([("package", 0), ("package", 1), ("dram", 1)]) {
            let rows = readings::of(self.data(), domain, socket)?;
            ensure!(rows.len() >= WINDOWS as usize && rows.iter().all(readings::Row::is_plain), "{rows:?}");
            readings::expect_explained(log, &rows)?;
            let measured_uj = rows.iter().map(|row| row.measured_uj).sum::<u64>() as f64;
            let truth_uj = log.energy_uj_at(rows[rows.len() - 1].end_us)? - log.energy_uj_at(rows[0].start_us)?;
            expect_near(&format!("{domain} of socket {socket}"), measured_uj, truth_uj, TOTAL)?;
        }
        Ok(())
    }

    fn expect_static(&self) -> Result<()> {
        for (socket, watts) in WATTS.iter().enumerate() {
            let sum = |column: &str| {
                let of = format!("windows WHERE domain = 'package' AND socket = {socket}");
                self.data().number(&format!("SELECT sum({column})::DOUBLE FROM {of}"))
            };
            let expected_uj = sum("window_ns")? / 1000.0 * watts.idle as f64;
            expect_near(&format!("static share of socket {socket}"), sum("static_uj")?, expected_uj, STATIC)?;
        }
        Ok(())
    }

    /// Each thread that matters, by its time and the watts of its socket.
    fn expect_threads(&self) -> Result<()> {
        let rows = self.data().rows("SELECT tid, sum(energy_uj)::BIGINT AS energy_uj FROM threads GROUP BY tid")?;
        let mut held = 0;
        for (tid, expected) in self.expected.iter().filter(|(_, thread)| thread.cpu_ns >= LEAST_NS) {
            let row = rows.iter().find(|row| row["tid"] == *tid).with_context(|| format!("no row of thread {tid}"))?;
            let found_uj = float(row, "energy_uj")?;
            // The part of its excess that may be of stolen time is none of ours.
            let stolen_uj = (found_uj - expected.energy_uj).clamp(0.0, expected.stolen_uj);
            let seconds = expected.cpu_ns as f64 / 1e9;
            expect_near(&format!("thread {tid} of {seconds:.2} s"), found_uj - stolen_uj, expected.energy_uj, THREAD)?;
            held += 1;
        }
        ensure!(held >= LOADS.len(), "only {held} threads have run for long");
        Ok(())
    }

    /// The tables of energies, whatever order their rows are in.
    fn contents(data: &DataSet) -> Result<Vec<serde_json::Value>> {
        let content = |table: &str| format!("SELECT count(*) AS n, sum(hash(t))::VARCHAR AS content FROM {table} t");
        let tables = ["windows", "threads", "branches", "methods", "jvms", "quality", "weights"];
        Ok(tables.iter().map(|table| data.rows(&content(table))).collect::<Result<Vec<_>>>()?.concat())
    }

    /// Spread the idle power and set it apart again.
    fn expect_reattributed_there_and_back(&self) -> Result<()> {
        let spread = self.reattributed(self.data(), "spread", &["--idle", "spread"])?;
        ensure!(Self::contents(&spread)? != Self::contents(self.data())?, "another policy made no difference");
        ensure!(spread.number("SELECT sum(static_uj) FROM windows")? == 0.0, "spread leaves a static share");
        readings::expect_audited(&spread)?;
        let watts = WATTS[0].idle.to_string();
        let back = self.reattributed(&spread, "back", &["--idle", "separate", "--idle-watts", &watts])?;
        ensure!(Self::contents(&back)? == Self::contents(self.data())?, "there and back is not the same");
        Ok(())
    }

    fn reattributed(&self, data: &DataSet, name: &str, options: &[&str]) -> Result<DataSet> {
        let output = self.output.beside(name);
        let run = Run::new().argument("reattribute").argument(data.dir()).output(&output);
        let finished = options.iter().fold(run, |run, option| run.argument(option)).finish(END)?;
        ensure!(finished.code() == Some(0), "{finished:?}");
        Ok(DataSet::at(output))
    }
}

fn expect_near(what: &str, found: f64, expected: f64, tolerance: f64) -> Result<()> {
    let error = found / expected - 1.0;
    eprintln!("{what}: {found:.0} of {expected:.0} µJ, {:+.4} %", 100.0 * error);
    ensure!(error.abs() <= tolerance, "{what}: {found} of {expected} µJ is off by {:.3} %", 100.0 * error);
    Ok(())
}

#[test]
fn total_static_share_and_each_thread_are_what_the_watts_say() -> Result<()> {
    repeat_once(|measures| {
        let run = run(measures * WINDOWS)?;
        run.expect_total()?;
        run.expect_static()?;
        run.expect_threads()?;
        readings::expect_audited(run.data())?;
        run.expect_reattributed_there_and_back()
    })
}
