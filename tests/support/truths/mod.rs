//! Compares what programs of `tests/fixtures/java` say that they did with what was recorded of them: allocations,
//! collections, bytes moved, and CPU time.

pub mod allocations;
pub mod collections;
pub mod io;
pub mod split;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// A figure that a program said each time it was told to go, summed.
fn said(told: &[Value], name: &str) -> Result<f64> {
    let figures = told.iter().map(|told| told[name].as_f64());
    figures.sum::<Option<f64>>().with_context(|| format!("{name} in {told:?}"))
}
