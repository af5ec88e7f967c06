//! Tests `--dram-by allocation`: of two JVMs that use the CPU alike, the one that allocates has the energy of memory, at the
//! paths that allocate.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    java::Workload,
    notes,
    powercap::{FakePowercap, Plan, Watts},
    profiler::{Output, Run},
};

use crate::readings;

const PACKAGE: Watts = Watts { idle: 9, per_cpu: 14 };
const MEMORY: Watts = Watts { idle: 0, per_cpu: 5 };
const LIMIT: Duration = Duration::from_secs(120);
/// Windows in which both have run.
const WINDOWS: usize = 8;

#[test]
fn memory_is_with_who_allocates_and_at_the_paths_that_do() -> Result<()> {
    let cpus: Vec<usize> = (0..std::thread::available_parallelism()?.get()).collect();
    let counters = FakePowercap::of(&[Plan::package(0, &cpus, PACKAGE), Plan::dram(0, &cpus, MEMORY)])?;
    let computing = Workload::new("Busy").argument("threads=1").start()?;
    let mut allocating = Workload::new("Allocations").start()?;
    let output = Output::new()?;
    let run = Run::new().with("--energy", "powercap").with("--powercap-root", counters.root()).argument("--json");
    let run = run.with("--dram-by", "allocation").with("--interval", "500ms").output(output.dir());
    let mut profiler = run.pid(computing.pid()).pid(allocating.pid()).start()?;
    profiler.wait_window()?;
    for _ in 0..WINDOWS {
        let before = allocating.records().len();
        allocating.say("go")?;
        wait_for("a program to allocate", LIMIT, || Ok(allocating.records().get(before).cloned()))?;
    }
    profiler.wait_window()?;
    let finished = profiler.stop()?;
    ensure!(finished.stderr.contains("memory (dram) is divided by bytes allocated"), "{finished:?}");
    let data = &output.data;
    data.expect_none(
        "domains that are not divided as was asked",
        "SELECT * FROM windows WHERE divided_by <> CASE domain WHEN 'dram' THEN 'allocation' ELSE 'cpu_weights' END",
    )?;
    // While it allocates; a window in which nobody does is divided by time.
    let busy = "window_start IN (SELECT window_start FROM allocations GROUP BY 1 HAVING sum(allocated_bytes) > 100e6)";
    let number = |sql: String| data.number(&sql).with_context(|| sql.clone());
    let memory = number(format!("SELECT sum(attributed_uj) FROM windows WHERE domain = 'dram' AND {busy}"))?;
    let of =
        |pid: u32| number(format!("SELECT coalesce(sum(by_bytes_uj), 0) FROM threads WHERE pid = {pid} AND {busy}"));
    let time = |pid: u32| number(format!("SELECT sum(cpu_ns) FROM threads WHERE pid = {pid} AND {busy}"));
    let (share, share_of_time) =
        (of(allocating.pid())? / memory, time(allocating.pid())? / (time(allocating.pid())? + time(computing.pid())?));
    notes::figure(&format!(
        "memory by allocation: {share:.4} is with who allocates, which had {share_of_time:.3} of the CPU time"
    ));
    ensure!(memory > 0.0 && share > 0.99, "{share} of {memory} µJ is with who allocates");
    ensure!(share_of_time < 0.9, "time alone would have given it as much");
    data.expect_none(
        "paths whose part of a thread's memory is not their part of its bytes",
        "WITH allocated AS (SELECT window_start, tid, stack_id, sum(allocated_bytes) AS bytes FROM allocations GROUP BY ALL),
         parts AS (SELECT *, bytes / sum(bytes) OVER (PARTITION BY window_start, tid) AS part FROM allocated),
         whole AS (SELECT window_start, tid, sum(by_bytes_uj) AS uj FROM threads GROUP BY ALL)
         SELECT * FROM parts JOIN whole USING (window_start, tid) LEFT JOIN branches b USING (window_start, tid, stack_id)
         WHERE abs(part * whole.uj - coalesce(b.by_bytes_uj, 0)) > 1.001",
    )?;
    readings::expect_audited(data)
}
