//! Computes joules per operation of JMH benchmarks, from JMH's result and a data set of the same run.
//!
//! JMH runs each benchmark in JVMs of their own, its forks, and writes how fast each fork was (`-rf json`). A data set that
//! was recorded meanwhile says what power each fork's process had. So
//!
//! > joules per operation = power while it was measured ÷ operations per second
//!
//! No benchmark needs to change, and clocks need not agree. [`result`] reads JMH's file, [`forks`] finds the forks and
//! their windows, and [`Benchmarks`] puts both together: each fork is a replicate.

mod forks;
mod render;
mod result;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::Path};

use serde::Serialize;
use thiserror::Error;

pub use self::result::ResultError;
use self::{
    forks::{Fork, Measured},
    result::Benchmark,
};
use super::replicates::stats::Stats;
use crate::{
    dataset::error::DataSetError,
    model::target_text::TargetText,
    report::profile::{DataSet, Filter},
};

#[derive(Debug, Error)]
pub enum JmhError {
    #[error(transparent)]
    Result(#[from] ResultError),
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error(
        "{path} has no fork of a JMH benchmark: record the whole run, with stacks, and let JMH fork (-f 1 or more): \
         `joular-bpf run --interval 100ms --output DIR -- java -jar benchmarks.jar -rf json`"
    )]
    NoFork { path: String },
}

/// What a benchmark needs for an operation. Figures are over its forks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    pub joules: Stats,
    pub watts: Stats,
    /// Operations per second.
    pub rate: Stats,
    /// Share of the energy that threads of the JVM itself had, such as collectors and compilers.
    pub vm_share: f64,
    /// Length of the windows that count, of all forks, s.
    pub measured_s: f64,
}

/// A benchmark with its parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchmarkRow {
    pub benchmark: TargetText,
    /// `n=1000, type=LIST`
    pub parameters: TargetText,
    /// As JMH calls it: `thrpt`, `avgt`.
    pub mode: TargetText,
    pub forks: usize,
    /// `None`: see `why_not`.
    pub operation: Option<Operation>,
    pub why_not: Option<String>,
}

/// All benchmarks of a result, in its order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Benchmarks {
    pub rows: Vec<BenchmarkRow>,
    /// How the energy came about: the weakest label of all runs.
    pub energy_label: Option<String>,
}

impl Benchmarks {
    /// Reads JMH's result and the data set in the directory `root`.
    ///
    /// # Errors
    /// If one of them cannot be read, or the data set has no fork of any benchmark.
    pub fn read(result: &Path, root: &Path) -> Result<Self, JmhError> {
        let benchmarks = result::read(result)?;
        let filter = Filter::default();
        let mut data = DataSet::open(root, &filter)?;
        let label = data.overview(&filter)?.label;
        let forks = forks::find(&mut data)?;
        if forks.is_empty() {
            return Err(JmhError::NoFork { path: root.display().to_string() });
        }
        let energy_label = label.map(|label| label.name().to_owned());
        Ok(Self { rows: rows(&benchmarks, forks), energy_label })
    }
}

/// Gives each benchmark its forks. Those of one method run one after the other, in the order of the result.
fn rows(benchmarks: &[Benchmark], forks: Vec<Fork>) -> Vec<BenchmarkRow> {
    let mut expected: BTreeMap<String, usize> = BTreeMap::new();
    for benchmark in benchmarks {
        *expected.entry(benchmark.stub()).or_default() += benchmark.forks;
    }
    let mut found: BTreeMap<String, Vec<Fork>> = BTreeMap::new();
    for fork in forks {
        found.entry(fork.stub.clone()).or_default().push(fork);
    }
    // Which fork is whose cannot be told if there are others.
    found.retain(|stub, forks| expected.get(stub) == Some(&forks.len()));
    let of_benchmark = |benchmark: &Benchmark| {
        let (stub, forks) = (benchmark.stub(), benchmark.forks);
        let Some(waiting) = found.get_mut(&stub).filter(|waiting| waiting.len() >= forks) else {
            let expected = expected.get(&stub).copied().unwrap_or_default();
            return row(
                benchmark,
                Err(format!(
                    "JMH measured {expected} forks of this method, and the data set has another number of them: record the \
                     whole run, and nothing else that JMH runs; leave out warmup forks (-wf 0)"
                )),
            );
        };
        let own: Vec<Fork> = waiting.drain(..forks).collect();
        row(benchmark, operation(benchmark, &own))
    };
    benchmarks.iter().map(of_benchmark).collect()
}

fn row(benchmark: &Benchmark, operation: Result<Operation, String>) -> BenchmarkRow {
    let (operation, why_not) = match operation {
        Ok(operation) => (Some(operation), None),
        Err(why) => (None, Some(why)),
    };
    BenchmarkRow {
        benchmark: benchmark.name.as_str().into(),
        parameters: benchmark.parameters().into(),
        mode: benchmark.mode.as_str().into(),
        forks: benchmark.forks,
        operation,
        why_not,
    }
}

#[allow(clippy::cast_precision_loss, reason = "figures of physics")]
fn operation(benchmark: &Benchmark, forks: &[Fork]) -> Result<Operation, String> {
    let rates = benchmark.rates()?;
    let length_ns = benchmark.measured_ns()?;
    let (mut joules, mut watts, mut used, mut whole) = (Vec::new(), Vec::new(), Vec::new(), Measured::default());
    for (fork, rate) in forks.iter().zip(rates) {
        let measured = fork.measured(length_ns);
        if measured.length_ns == 0 {
            return Err("no window is within the time that JMH measured: record with a shorter --interval".to_owned());
        }
        let power = measured.energy.joules() / (measured.length_ns as f64 / 1e9);
        joules.push(power / rate);
        watts.push(power);
        used.push(rate);
        whole.plus(&measured);
    }
    Ok(Operation {
        joules: Stats::of(&joules),
        watts: Stats::of(&watts),
        rate: Stats::of(&used),
        vm_share: whole.vm.joules() / whole.energy.joules().max(f64::MIN_POSITIVE),
        measured_s: whole.length_ns as f64 / 1e9,
    })
}
