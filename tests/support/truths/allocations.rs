//! Compares bytes and classes with what `Allocations.java` allocated.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::said;
use crate::{dataset::DataSet, notes};

/// Methods of the program, and what they allocate.
pub const METHODS: [(&str, &str, &str); 3] = [
    ("nodes", "Allocations.nodes", "Allocations$Node"),
    ("bytes", "Allocations.bytes", "byte[]"),
    ("strings", "Allocations.strings", "java.lang.String[]"),
];

/// What the data set says of a process's thread: bytes and samples by the method that allocated, and the class.
pub fn recorded(data: &DataSet, pid: u32) -> Result<BTreeMap<(String, String), (f64, f64)>> {
    let rows = data.rows(&format!(
        "SELECT coalesce(s.frames[-1].class || '.' || s.frames[-1].method, '') AS method, coalesce(class, '') AS class,
           sum(allocated_bytes)::DOUBLE AS bytes, sum(samples)::DOUBLE AS samples
         FROM allocations a JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames FROM stacks) s USING (stack_id)
         WHERE pid = {pid} AND thread_name = 'allocator' GROUP BY 1, 2"
    ))?;
    let row = |row: &Value| {
        let text = |name: &str| Some(row[name].as_str()?.to_owned());
        Some(((text("method")?, text("class")?), (row["bytes"].as_f64()?, row["samples"].as_f64()?)))
    };
    rows.iter().map(|found| row(found).with_context(|| format!("{found}"))).collect()
}

/// Compares one program's account with what was recorded of it.
pub fn check(data: &DataSet, pid: u32, told: &[Value], of: &str) -> Result<()> {
    let found = recorded(data, pid)?;
    let all: f64 = found.values().map(|(bytes, _)| bytes).sum();
    let samples: f64 = found.values().map(|(_, samples)| samples).sum();
    let expected = said(told, "all")?;
    notes::figure(&format!("{of}: {all} bytes of {expected}, {samples} samples"));
    // It allocates a little to listen, and to say what it did.
    ensure!((expected..expected * 1.001).contains(&all), "{of}: {all} bytes, the program says {expected}");
    ensure!(samples >= 100.0, "{of}: {samples} samples");
    for (name, method, class) in METHODS {
        let (bytes, _) = found
            .get(&(method.to_owned(), class.to_owned()))
            .with_context(|| format!("{of}: no {method} of {class} in {found:?}"))?;
        let (share, expected) = (bytes / all, said(told, name)? / expected);
        // Samples of about equal weight.
        let deviation = (expected * (1.0 - expected) / samples).sqrt();
        ensure!(
            (share - expected).abs() <= 5.0 * deviation,
            "{of}: {method} allocated {share:.4} of all bytes, the program says {expected:.4} ± {deviation:.4}: {found:?}"
        );
    }
    Ok(())
}
