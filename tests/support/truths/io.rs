//! Compares bytes with those that `Io.java` moved.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::{dataset::DataSet, notes};

/// Methods that move bytes of one kind, so that samples can tell them apart, and the column of that.
pub const METHODS: [(&str, &str); 4] = [
    ("sendSmall", "local_sent_bytes"),
    ("sendLarge", "local_sent_bytes"),
    ("writeStream", "written_bytes"),
    ("writeGathered", "written_bytes"),
];

/// Sums of the columns of bytes, of a process's thread of this name.
pub fn recorded(data: &DataSet, pid: u32, thread: &str) -> Result<BTreeMap<String, u64>> {
    let rows = data.rows(&format!(
        "SELECT sum(sent_bytes)::BIGINT AS sent, sum(received_bytes)::BIGINT AS received,
           sum(local_sent_bytes)::BIGINT AS local_sent, sum(local_received_bytes)::BIGINT AS local_received,
           sum(read_bytes)::BIGINT AS read, sum(written_bytes)::BIGINT AS written,
           sum(device_read_bytes)::BIGINT AS device_read, sum(device_written_bytes)::BIGINT AS device_written
         FROM io WHERE pid = {pid} AND thread_name = '{thread}'"
    ))?;
    let row = rows.into_iter().next().context("a row")?;
    serde_json::from_value(row).with_context(|| format!("sums of {thread}"))
}

/// Bytes of a method that stands anywhere in a path, and samples of them.
fn by_method(data: &DataSet, pid: u32, method: &str, column: &str) -> Result<(f64, f64)> {
    let rows = data.rows(&format!(
        "SELECT coalesce(sum({column}), 0)::DOUBLE AS bytes, coalesce(sum(samples), 0)::DOUBLE AS samples
         FROM io JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames FROM stacks) s USING (stack_id)
         WHERE pid = {pid} AND thread_name = 'mover' AND {column} > 0
           AND len(list_filter(s.frames, frame -> frame.class = 'Io' AND frame.method = '{method}')) > 0"
    ))?;
    let figure = |name: &str| rows.first().and_then(|row: &Value| row[name].as_f64()).context("a figure");
    Ok((figure("bytes")?, figure("samples")?))
}

/// Compares the shares of methods in the bytes that a program moved with what it says.
pub fn check_methods(data: &DataSet, pid: u32, told: &BTreeMap<String, u64>, of: &str) -> Result<()> {
    for (method, column) in METHODS {
        let (bytes, samples) = by_method(data, pid, method, column)?;
        let all = if column == "written_bytes" { told["written"] } else { told["sendSmall"] + told["sendLarge"] };
        let (found, expected) = (bytes / all as f64, told[method] as f64 / all as f64);
        // Each window has samples enough; together as many as there are of the smaller part.
        let deviation = (expected * (1.0 - expected) / samples).sqrt();
        notes::figure(&format!(
            "{of}: {method} {found:.4} of bytes, the program says {expected:.4}; {samples} samples"
        ));
        ensure!(
            (found - expected).abs() <= 5.0 * deviation,
            "{of}: {method} {found:.4}, not {expected:.4} ± {deviation:.4}"
        );
    }
    Ok(())
}
