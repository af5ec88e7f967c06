//! Tests watts per CPU second of programs that draw different power, by counters that we control.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    dataset::{DataSet, float},
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
/// Where a busy machine makes the interval wider than that, the truth lies within so many standard deviations, by chance
/// alone in all but one of a thousand cases.
const DEVIATIONS: f64 = 3.3;
/// Half of a 95 % interval, in standard deviations.
const NORMAL_95: f64 = 1.96;

/// What is found of the two programs, the one that draws more first.
struct Found {
    /// Rows of the report.
    rows: [Value; 2],
    /// Joules per CPU second, divided by time and by fitted watts.
    by_time: [f64; 2],
    by_watts: [f64; 2],
}

fn record(measures: u32) -> Result<Found> {
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
    let again = output.beside("by-watts");
    let fitted = Run::new().argument("reattribute").argument(output.dir()).output(&again);
    let fitted = fitted.with("--weights", "fitted").with("--by", "process").finish(LIMIT)?;
    ensure!(fitted.code() == Some(0), "{fitted:?}");
    let audit = Run::new().argument("audit").argument(&again).finish(LIMIT)?;
    ensure!(audit.code() == Some(0), "{audit:?}");
    Ok(Found {
        rows: [row(pids[0])?, row(pids[1])?],
        by_time: watts(&output.data, pids)?,
        by_watts: watts(&DataSet::at(again), pids)?,
    })
}

fn watts(data: &DataSet, pids: [u32; 2]) -> Result<[f64; 2]> {
    let of = |pid: u32| {
        data.number(&format!("SELECT sum(energy_uj)::DOUBLE * 1000 / sum(cpu_ns) FROM threads WHERE pid = {pid}"))
    };
    Ok([of(pids[0])?, of(pids[1])?])
}

#[test]
fn programs_have_the_watts_that_they_draw() -> Result<()> {
    repeat_once(|measures| {
        let found = record(measures)?;
        for (place, expected) in [WATTS.per_cpu + MORE, WATTS.per_cpu].into_iter().enumerate() {
            let (row, expected) = (&found.rows[place], expected as f64);
            let (told, by_time, by_watts) = (float(row, "watts")?, found.by_time[place], found.by_watts[place]);
            notes::figure(&format!(
                "{expected} W: {told:.2} W, {by_time:.2} W by time, {by_watts:.2} W by fitted watts"
            ));
            ensure!(row["is_told"] == true, "windows do not tell the watts: {row}");
            let deviation = (float(row, "high_watts")? - float(row, "low_watts")?) / (2.0 * NORMAL_95);
            let is_near = |watts: f64| (watts - expected).abs() <= (TOLERANCE * expected).max(DEVIATIONS * deviation);
            ensure!(is_near(told) && is_near(by_watts), "{told:.2} and {by_watts:.2} of {expected} W: {row}");
        }
        // Else there is nothing to see.
        let apart_by_time = (found.by_time[0] - found.by_time[1]).abs();
        ensure!(apart_by_time < MORE as f64 / 4.0, "by time alone they are {apart_by_time:.2} W apart");
        Ok(())
    })
}
