//! Tests two methods whose shares the workload itself measures: the profiler must report the same,
//! within what sampling allows.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    dataset::{DataSet, float},
    java::{Jvm, Workload},
    profiler::{END, Output, Run},
    statistics::RARE_SIGMAS,
};

const RECORDED: Duration = Duration::from_secs(10);

/// Part of `heavy` in the time of `heavy` and `light`, between two moments, as
/// the workload measured it. Its lines come every 100 ms: since it keeps the
/// ratio all the time, the lines next to the moments are near enough.
fn measured_share(jvm: &Jvm, start_us: i64, end_us: i64) -> Result<f64> {
    let records = jvm.records();
    let moment = |record: &serde_json::Value| record["wall_us"].as_i64().unwrap_or(0);
    let first = records.iter().find(|record| moment(record) >= start_us).context("no line after the start")?;
    let last = records.iter().rfind(|record| moment(record) <= end_us).context("no line before the end")?;
    let spent = |column| Ok::<_, anyhow::Error>(float(last, column)? - float(first, column)?);
    let (heavy, light) = (spent("heavy_ns")?, spent("light_ns")?);
    ensure!(heavy > 1e9, "the workload hardly ran between {first} and {last}");
    Ok(heavy / (heavy + light))
}

/// Sums of a column over a method whose name ends so.
fn sum(data: &DataSet, column: &str, method: &str) -> Result<f64> {
    data.number(&format!("SELECT coalesce(sum({column}), 0)::DOUBLE FROM methods WHERE method LIKE '%{method}'"))
}

#[test]
fn shares_of_two_methods_are_those_measured_inside_the_workload() -> Result<()> {
    repeat_once(two_methods)
}

fn two_methods(measures: u32) -> Result<()> {
    let output = Output::new()?;
    let workload = Workload::new("Split").frame_pointers().argument("seconds=120");
    let jvm = workload.dont_inline("Split::heavy").dont_inline("Split::light").start()?;
    let run = Run::modelled().pid(jvm.pid()).with("--frequency", "999");
    let run = run.with("--duration", format!("{}s", (measures * RECORDED).as_secs()));
    let finished = run.output(output.dir()).finish(measures * RECORDED + END)?;
    assert_eq!(finished.code(), Some(0), "{finished:?}");

    let data = &output.data;
    let start = data.number("SELECT min(epoch_us(window_start)) FROM windows")?;
    let end = data.number("SELECT max(epoch_us(window_start) + window_ns // 1000) FROM windows")?;
    let expected = measured_share(&jvm, start as i64, end as i64)?;
    assert!((expected - 0.7).abs() < 0.01, "the workload itself is off: {expected:.4}");

    let samples = sum(data, "self_samples", "Split.heavy")? + sum(data, "self_samples", "Split.light")?;
    assert!(samples > 6_600.0, "only {samples} samples in 10 s at 999 Hz: is the methods' time seen as theirs?");
    let sigma = (expected * (1.0 - expected) / samples).sqrt();
    for column in ["self_samples", "self_cpu_ns", "self_uj"] {
        let (heavy, light) = (sum(data, column, "Split.heavy")?, sum(data, column, "Split.light")?);
        let share = heavy / (heavy + light);
        let distance = (share - expected).abs() / sigma;
        assert!(distance <= RARE_SIGMAS, "{column}: {share:.4}, measured inside {expected:.4}: {distance:.1} σ apart");
    }
    Ok(())
}
