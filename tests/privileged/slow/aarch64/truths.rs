//! Compares what programs say of themselves with what was recorded of them in an emulated machine.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::DataSet,
    notes,
    truths::{allocations, collections, io, split},
};
use serde_json::Value;

use super::guest::Said;

/// Samples of two methods that are enough to tell their shares.
const SPLIT_SAMPLES: f64 = 500.0;

/// What a program said last.
fn last(said: &Said, name: &str) -> Result<Value> {
    said.records(name)?.pop().with_context(|| format!("{name} said nothing"))
}

pub fn check_allocations(said: &Said, data: &DataSet, name: &str, release: u32) -> Result<()> {
    let of = format!("{}: allocations", said.of(release));
    allocations::check(data, said.pid(name)?, &[last(said, name)?], &of)
}

pub fn check_collections(said: &Said, data: &DataSet, name: &str, release: u32) -> Result<()> {
    let of = format!("{}: collections", said.of(release));
    collections::check(data, said.pid(name)?, &last(said, name)?, &of)
}

pub fn check_split(said: &Said, data: &DataSet, name: &str, release: u32) -> Result<()> {
    split::check(data, &said.records(name)?, SPLIT_SAMPLES, &said.of(release))
}

/// What the program was told at last: to write, and to read.
pub fn check_io(said: &Said, data: &DataSet, name: &str, release: u32) -> Result<()> {
    let (of, pid) = (format!("{}: bytes", said.of(release)), said.pid(name)?);
    let records = said.records(name)?;
    let mut told = BTreeMap::<String, u64>::new();
    for record in records.iter().rev().take(2) {
        let figures: BTreeMap<String, u64> = serde_json::from_value(record.clone())?;
        figures.into_iter().for_each(|(name, bytes)| *told.entry(name).or_default() += bytes);
    }
    let found = io::recorded(data, pid, "mover")?;
    notes::figure(&format!("{of}: {found:?}, the program says {told:?}"));
    let expected = [
        ("sent", 0),
        ("received", 0),
        ("local_received", 0),
        ("local_sent", told["sent"]),
        ("written", told["written"]),
    ];
    for (column, bytes) in expected {
        ensure!(found[column] == bytes, "{of}: {column} {}, not {bytes}: {found:?}", found[column]);
    }
    // The JVM may still load a class.
    ensure!((told["read"]..told["read"] + (1 << 20)).contains(&found["read"]), "{of}: {found:?}, not {told:?}");
    io::check_methods(data, pid, &told, &of)
}
