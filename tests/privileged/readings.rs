//! Reads what a data set says of one domain, window by window, and checks it against the counter
//! that it was read from.

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::{DataSet, integer},
    powercap::{Log, Measured},
    profiler::{END, Run},
};
use serde_json::Value;

/// A domain in a window.
#[derive(Debug)]
pub struct Row {
    pub start_us: i64,
    pub end_us: i64,
    pub measured_uj: u64,
    pub merged: i64,
    pub read_failed: bool,
    pub ambiguous: bool,
    pub fault: Option<String>,
}

impl Row {
    /// Whether it has no fault and holds no other window's energy.
    pub fn is_plain(&self) -> bool {
        self.merged == 0 && !self.read_failed && !self.ambiguous && self.fault.is_none()
    }
}

/// All windows of a domain, in order.
pub fn of(data: &DataSet, domain: &str, socket: usize) -> Result<Vec<Row>> {
    let rows = data.rows(&format!(
        "SELECT epoch_us(window_start) AS start_us, epoch_us(window_start) + window_ns // 1000 AS end_us,
                measured_uj, merged, read_failed, ambiguous, fault
         FROM windows WHERE domain = '{domain}' AND socket = {socket} ORDER BY window_start"
    ))?;
    ensure!(!rows.is_empty(), "no window has {domain} of socket {socket}");
    rows.iter().map(row).collect()
}

fn row(row: &Value) -> Result<Row> {
    let flag = |column: &str| row[column].as_bool().with_context(|| format!("no {column} in {row}"));
    Ok(Row {
        start_us: integer(row, "start_us")?,
        end_us: integer(row, "end_us")?,
        measured_uj: integer(row, "measured_uj")? as u64,
        merged: integer(row, "merged")?,
        read_failed: flag("read_failed")?,
        ambiguous: flag("ambiguous")?,
        fault: row["fault"].as_str().map(str::to_owned),
    })
}

/// Fails unless every row is, to the microjoule, what the counter advanced
/// between two readings. After a jump, and after more time than a wrap may take,
/// there is a new starting point.
pub fn expect_explained(log: &Log, rows: &[Row]) -> Result<()> {
    let is_unknown = |row: &Row| matches!(row.fault.as_deref(), Some("jumped" | "may_have_wrapped"));
    for rows in rows.split_inclusive(is_unknown) {
        let energy_uj = |row: &Row| (!row.read_failed).then_some(row.measured_uj);
        let known = rows.iter().filter(|row| !is_unknown(row));
        let measured: Vec<_> = known.map(|row| Measured { end_us: row.end_us, energy_uj: energy_uj(row) }).collect();
        log.explain(rows[0].start_us, &measured)?;
    }
    Ok(())
}

/// Fails unless `joular-bpf audit` finds every figure where it belongs.
pub fn expect_audited(data: &DataSet) -> Result<()> {
    let finished = Run::new().argument("audit").argument(data.dir()).finish(END)?;
    ensure!(finished.code() == Some(0), "{finished:?}");
    ensure!(finished.stdout.contains("every microjoule is accounted for"), "{finished:?}");
    Ok(())
}
