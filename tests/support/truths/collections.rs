//! Compares collections, and who is charged for them, with what `Collections.java` says of its JVM.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{
    dataset::{DataSet, float},
    notes,
};

/// Methods of the program, which allocate.
pub const METHODS: [&str; 2] = ["Collections.often", "Collections.seldom"];

/// By collector: how many collections ended while the program allocated, and how many milliseconds they took.
fn recorded(data: &DataSet, pid: u32, told: &Value) -> Result<BTreeMap<String, (f64, f64)>> {
    let rows = data.rows(&format!(
        "SELECT collector, count(*)::DOUBLE AS count, sum(duration_ns)::DOUBLE / 1e6 AS ms
         FROM collections WHERE pid = {pid} AND epoch_us(start) + duration_ns // 1000 BETWEEN {} AND {} GROUP BY 1",
        told["from"], told["to"]
    ))?;
    let row =
        |row: &Value| Some((row["collector"].as_str()?.to_owned(), (row["count"].as_f64()?, row["ms"].as_f64()?)));
    rows.iter().map(|found| row(found).with_context(|| format!("{found}"))).collect()
}

/// Every collection that Java counts is there, and takes about as long; nothing of the collector's energy is lost.
pub fn check(data: &DataSet, pid: u32, told: &Value, of: &str) -> Result<()> {
    let found = recorded(data, pid, told)?;
    let told = told["collections"].as_object().context("collections")?;
    let mut all = 0.0;
    for (collector, counts) in told {
        // Pauses of a concurrent cycle are a part of it, and have no pools of their own.
        if collector.contains("Pauses") {
            continue;
        }
        let figure = |index: usize| counts[index].as_f64().context("a figure");
        let (count, ms) = (figure(0)?, figure(1)?);
        let (found_count, found_ms) = found.get(collector).copied().unwrap_or_default();
        notes::figure(&format!("{of}: {collector}: {found_count} of {count} in {found_ms:.1} of {ms} ms"));
        ensure!(found_count == count, "{of}: {found_count} of {count} by {collector}");
        // Java rounds the time of all collections so far down to milliseconds, so that a difference of two such figures
        // is up to one too much or too little.
        ensure!(
            ((ms - 1.0) * 0.9..=(ms + 1.0) * 1.1 + 5.0).contains(&found_ms),
            "{of}: {found_ms} of {ms} ms by {collector}"
        );
        all += count;
    }
    ensure!(all >= 3.0, "{of}: {all} collections");
    check_charges(data, pid, of)
}

/// In each window in which anything was allocated all of the collector's energy is charged but what G1's refinement used, and
/// in no other.
fn check_charges(data: &DataSet, pid: u32, of: &str) -> Result<()> {
    let windows = data.rows(&format!(
        "WITH charged AS (SELECT window_start, sum(gc_charged_uj)::DOUBLE AS uj FROM gc_charges WHERE pid = {pid} GROUP BY 1),
           allocated AS (SELECT window_start, sum(allocated_bytes)::DOUBLE AS bytes FROM allocations WHERE pid = {pid}
             GROUP BY 1),
           own AS (SELECT window_start, sum(energy_uj)::DOUBLE AS uj FROM threads WHERE pid = {pid}
             AND (thread_name LIKE 'G1 Refine%' OR thread_name LIKE 'G1 Service%' OR thread_name LIKE 'G1 Young RemSet%')
             GROUP BY 1)
         SELECT gc_uj::DOUBLE - coalesce(own.uj, 0) AS gc, coalesce(charged.uj, 0) AS charged, coalesce(bytes, 0) AS bytes
         FROM jvms LEFT JOIN charged USING (window_start) LEFT JOIN allocated USING (window_start)
           LEFT JOIN own USING (window_start) WHERE pid = {pid}"
    ))?;
    let mut all = 0.0;
    for window in &windows {
        let [gc, charged, bytes] = ["gc", "charged", "bytes"].map(|name| float(window, name));
        let (gc, charged, bytes) = (gc?, charged?, bytes?);
        ensure!(charged == 0.0 || charged == gc, "{of}: {charged} of {gc} µJ are charged");
        ensure!(bytes == 0.0 || charged == gc, "{of}: {bytes} bytes were allocated, {charged} of {gc} µJ are charged");
        all += charged;
    }
    ensure!(all > 0.0, "{of}: nothing is charged");
    let of_methods = format!("SELECT sum(gc_charged_uj)::DOUBLE AS n FROM methods WHERE pid = {pid}");
    ensure!(data.number(&of_methods)? == all, "{of}: methods are charged otherwise");
    Ok(())
}
