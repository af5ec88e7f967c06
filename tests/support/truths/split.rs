//! Compares the shares of two methods with what `Split.java` measures inside.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{
    dataset::{DataSet, float},
    notes,
    statistics::RARE_SIGMAS,
};

/// Part of `heavy` in the time of `heavy` and `light`, between two moments, as
/// the workload measured it. Its lines come every 100 ms: since it keeps the
/// ratio all the time, the lines next to the moments are near enough.
fn measured_share(records: &[Value], start_us: f64, end_us: f64) -> Result<f64> {
    let moment = |record: &Value| record["wall_us"].as_f64().unwrap_or(0.0);
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

/// Compares what was recorded, of at least so many samples, with the lines that the program wrote.
pub fn check(data: &DataSet, records: &[Value], least_samples: f64, of: &str) -> Result<()> {
    let start = data.number("SELECT min(epoch_us(window_start))::DOUBLE FROM windows")?;
    let end = data.number("SELECT max(epoch_us(window_start) + window_ns // 1000)::DOUBLE FROM windows")?;
    let expected = measured_share(records, start, end)?;
    ensure!((expected - 0.7).abs() < 0.01, "{of}: the workload itself is off: {expected:.4}");
    let samples = sum(data, "self_samples", "Split.heavy")? + sum(data, "self_samples", "Split.light")?;
    ensure!(samples > least_samples, "{of}: only {samples} samples: is the methods' time seen as theirs?");
    let sigma = (expected * (1.0 - expected) / samples).sqrt();
    for column in ["self_samples", "self_cpu_ns", "self_uj"] {
        let (heavy, light) = (sum(data, column, "Split.heavy")?, sum(data, column, "Split.light")?);
        let share = heavy / (heavy + light);
        let distance = (share - expected).abs() / sigma;
        notes::figure(&format!(
            "{of}: {column}: {share:.4}, measured inside {expected:.4}: {distance:.1} σ apart, {samples} samples"
        ));
        ensure!(distance <= RARE_SIGMAS, "{of}: {column}: {share:.4}, not {expected:.4}: {distance:.1} σ apart");
    }
    Ok(())
}
