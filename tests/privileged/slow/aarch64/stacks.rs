//! Looks at the stacks of workloads whose call paths are known: whether they are right, and whether walks come to the
//! thread's first function.

use anyhow::{Result, ensure};
use joular_tests::{
    dataset::{DataSet, float},
    known::{self, CallLines, Report, Root},
    notes,
    statistics::RARE_SIGMAS,
};
use serde_json::Value;

/// The least share of samples of Java threads whose walk comes to the thread's first function.
const WHOLE: f64 = 0.995;
/// The same for stacks that are right by what is known of their workload.
const RIGHT: f64 = 0.98;
/// Scenarios of `known.Main` that are run.
pub const SCENARIOS: &str = "recurse-100 lambdas inlined megamorphic natives exceptions";
/// What JVMs can run that have virtual threads.
pub const VIRTUAL: &str = "virtual";
pub const FIRST_WITH_VIRTUAL: u32 = 21;

/// Fails unless the stacks of a process that ran them are right, and whole from this window on. Until the tables of a JVM's
/// libraries are made, walks go on by frame pointers, which do not show that they have come to the end.
pub fn check(data: &DataSet, pid: u32, settled: f64, of: &str) -> Result<()> {
    check_ends(data, pid, settled, of)?;
    let report = Report::of(of, &known::stacks(data, pid)?, &CallLines::read()?, Root::Native);
    println!("{report}");
    for (scenario, tally) in &report.scenarios {
        tally.examples.iter().for_each(|example| println!("{of} {scenario}: {example}"));
    }
    let wanted =
        SCENARIOS.split(' ').filter(|name| report.of_scenario(name).is_none_or(|tally| tally.samples() < 10.0));
    let missing: Vec<_> = wanted.collect();
    ensure!(missing.is_empty(), "{of}: hardly a sample of {missing:?}");
    let total = report.total();
    let share = total.right() / total.samples();
    notes::figure(&format!("{of}: {share:.4} of {} samples have the stacks that are known", total.samples()));
    ensure!(share >= RIGHT - error(RIGHT, total.samples()), "{of}: {share}");
    ensure!(total.wrong_method == 0.0, "{of}: methods that cannot be there: {total:?}");
    Ok(())
}

/// By how much chance may make a share less than it should be.
fn error(share: f64, samples: f64) -> f64 {
    RARE_SIGMAS * (share * (1.0 - share) / samples).sqrt()
}

/// Stacks may be lost where the machine had to wait for a CPU of this one, and reported late.
fn check_ends(data: &DataSet, pid: u32, settled: f64, of: &str) -> Result<()> {
    let rows = data.rows(&format!(
        "SELECT coalesce(walk_end, '') || ' ' || coalesce(unnamed, '') AS ending, sum(samples)::DOUBLE AS samples,
           coalesce(is_complete, false)::DOUBLE AS whole
         FROM quality JOIN (SELECT DISTINCT window_start, window_index, len(other_losses) > 0 AS is_late FROM windows)
           USING (window_start)
         WHERE pid = {pid} AND category = 'java' AND window_index >= {settled} AND NOT is_late GROUP BY ALL ORDER BY ALL"
    ))?;
    let sum = |counts: fn(&Value) -> bool| {
        let samples = rows.iter().filter(|row| counts(row)).map(|row| float(row, "samples"));
        samples.sum::<Result<f64>>()
    };
    let (all, whole) = (sum(|_| true)?, sum(|row| row["whole"] == 1.0)?);
    let endings: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}", row["ending"].as_str().unwrap_or_default().trim(), row["samples"]))
        .collect();
    let share = whole / all;
    notes::figure(&format!(
        "{of}: {:.2} % of {all} walks of Java threads come to the first function: {}",
        100.0 * share,
        endings.join(", ")
    ));
    ensure!(all >= 300.0, "{of}: {all} samples");
    ensure!(share >= WHOLE - error(WHOLE, all), "{of}: {whole} of {all}: {endings:?}");
    Ok(())
}
