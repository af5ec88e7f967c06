//! Tests watts per CPU second of programs that draw different power, by counters that we control.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    dataset::float,
    notes,
    powercap::{FakePowercap, Plan, Watts},
    profiler::{Output, Run},
};
use serde_json::Value;

use crate::burner::Burner;

const WATTS: Watts = Watts { idle: 20, per_cpu: 10 };
/// What a CPU draws more while the first program runs on it.
const MORE: u64 = 20;
/// Lengths of bursts of both programs, ms: each has all of them, in another order.
const BURSTS_MS: [u64; 8] = [100, 350, 50, 500, 200, 450, 150, 300];
const ROUNDS: u32 = 5;
const LIMIT: Duration = Duration::from_secs(20);
/// Of the programs' watts.
const TOLERANCE: f64 = 0.1;

/// What the report says of two programs.
fn watts_of_two(measures: u32) -> Result<[Value; 2]> {
    let output = Output::new()?;
    let cpus: Vec<usize> = (0..std::thread::available_parallelism()?.get()).collect();
    let mut programs = [Burner::start(&[100])?, Burner::start(&[100])?];
    let pids = programs.each_ref().map(Burner::pid);
    let counters = FakePowercap::of(&[Plan::package(0, &cpus, WATTS).more_of(pids[0], MORE)])?;
    let run = Run::new().with("--energy", "powercap").with("--powercap-root", counters.root());
    let run = run.with("--idle-watts", WATTS.idle.to_string()).with("--interval", "200ms");
    let profiler = run.pid(pids[0]).pid(pids[1]).output(output.dir()).start()?;
    for round in 0..measures * ROUNDS {
        for (place, first_ms) in BURSTS_MS.iter().enumerate() {
            // Far enough from the first one's place that neither order follows the other.
            let second_ms = BURSTS_MS[(place * 3 + round as usize) % BURSTS_MS.len()];
            programs[0].begin(Duration::from_millis(*first_ms))?;
            programs[1].begin(Duration::from_millis(second_ms))?;
            programs.iter_mut().try_for_each(|program| program.wait_done(LIMIT))?;
        }
    }
    profiler.stop()?;
    let report = Run::new().argument("report").argument(output.dir());
    let report = report.argument("--watts").with("--by", "process").argument("--json").finish(LIMIT)?;
    ensure!(report.code() == Some(0), "{report:?}");
    let tables: Value = serde_json::from_str(&report.stdout)?;
    notes::figure(&tables.to_string());
    ensure!(tables[0]["differs"] == true, "{tables}");
    let rows = tables[0]["rows"].as_array().context("rows")?;
    let row = |pid: u32| {
        let is_it = |row: &&Value| row["name"].as_str().is_some_and(|name| name.contains(&pid.to_string()));
        rows.iter().find(is_it).cloned().with_context(|| format!("no row of process {pid}: {tables}"))
    };
    Ok([row(pids[0])?, row(pids[1])?])
}

#[test]
fn programs_have_the_watts_that_they_draw() -> Result<()> {
    repeat_once(|measures| {
        for (row, expected) in watts_of_two(measures)?.iter().zip([WATTS.per_cpu + MORE, WATTS.per_cpu]) {
            let (found, expected) = (float(row, "watts")?, expected as f64);
            ensure!((found / expected - 1.0).abs() <= TOLERANCE, "{found:.2} of {expected} W: {row}");
            let [by_time, by_watts] = ["part_by_time", "part_by_watts"].map(|name| float(row, name));
            notes::figure(&format!("{expected} W: {found:.2} W, {:.3} by time, {:.3} by watts", by_time?, by_watts?));
        }
        Ok(())
    })
}
