//! Reads what JMH writes with `-rf json`: an array with an object for each benchmark, its parameters and its mode.
//!
//! Fields as in `org.openjdk.jmh.results.format.JSONResultFormat`; scores of single forks and iterations are in
//! `primaryMetric.rawData`.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use thiserror::Error;

/// More than any result has.
const MAX_BYTES: u64 = 256 << 20;
/// The package of the code that JMH generates, and what its class names end in.
const GENERATED: &str = "jmh_generated";
const TEST: &str = "jmhTest";

#[derive(Debug, Error)]
pub enum ResultError {
    #[error("reading {path}: {cause}")]
    Open { path: PathBuf, cause: io::Error },
    #[error("reading {path}: {cause}: name the file that JMH wrote with -rf json")]
    Parse { path: PathBuf, cause: serde_json::Error },
    #[error("reading {path}: it has no benchmark: name the file that JMH wrote with -rf json")]
    Empty { path: PathBuf },
}

/// One object of the array. Others of its fields are not needed.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Benchmark {
    #[serde(rename = "benchmark")]
    pub name: String,
    pub mode: String,
    pub threads: u32,
    pub forks: usize,
    measurement_iterations: u32,
    measurement_time: String,
    #[serde(default)]
    params: BTreeMap<String, String>,
    primary_metric: Metric,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metric {
    score: f64,
    score_unit: String,
    /// A list for each fork, with a score for each iteration. Where times of single calls are sampled, there is none.
    #[serde(default)]
    raw_data: Vec<Vec<f64>>,
}

/// # Errors
/// If it cannot be read, or is not a result of JMH.
pub fn read(path: &Path) -> Result<Vec<Benchmark>, ResultError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    read.map_err(|cause| ResultError::Open { path: path.into(), cause })?;
    let found: Vec<Benchmark> =
        serde_json::from_str(&text).map_err(|cause| ResultError::Parse { path: path.into(), cause })?;
    if found.is_empty() { Err(ResultError::Empty { path: path.into() }) } else { Ok(found) }
}

impl Benchmark {
    /// The method of the generated code that all its operations run in: class, a point, and the method without what
    /// stands for the mode's stub. `acme.Sums.sum` in mode `thrpt` is `acme.jmh_generated.Sums_sum_jmhTest.sum_thrpt_`.
    pub fn stub(&self) -> String {
        let (class, method) = self.name.rsplit_once('.').unwrap_or(("", &self.name));
        let (package, class) = class.rsplit_once('.').map_or((None, class), |(package, class)| (Some(package), class));
        let package = package.map_or(String::new(), |package| format!("{package}."));
        format!("{package}{GENERATED}.{class}_{method}_{TEST}.{method}_{}_", self.mode)
    }

    /// `n=1000, type=LIST`
    pub fn parameters(&self) -> String {
        self.params.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    }

    /// Operations per second of each fork, all threads together.
    ///
    /// # Errors
    /// If its score is neither a rate nor a time of an operation.
    #[allow(clippy::cast_precision_loss, reason = "numbers of iterations")]
    pub fn rates(&self) -> Result<Vec<f64>, String> {
        let metric = &self.primary_metric;
        let unknown = || format!("its score is in {}: joules need ops/s or s/op", metric.score_unit);
        let (above, below) = metric.score_unit.split_once('/').ok_or_else(unknown)?;
        let of_score = |score: f64| match (seconds(above), seconds(below)) {
            (None, Some(seconds)) if above == "ops" => Some(score / seconds),
            // A thread's operation takes so long.
            (Some(seconds), None) if below == "op" => Some(f64::from(self.threads) / (score * seconds)),
            _ => None,
        };
        // Iterations last equally long, so a fork's rate is the mean of their rates, and not that of their mean time.
        let mean_rate = |scores: &Vec<f64>| {
            let rates = scores.iter().map(|score| of_score(*score)).collect::<Option<Vec<f64>>>()?;
            Some(rates.iter().sum::<f64>() / rates.len().max(1) as f64)
        };
        let rates: Vec<Option<f64>> = if metric.raw_data.is_empty() {
            vec![of_score(metric.score); self.forks]
        } else {
            metric.raw_data.iter().map(mean_rate).collect()
        };
        if self.mode == "ss" {
            return Err(
                "it runs once (mode ss): its energy is that of the fork, which `report --by process` has".into()
            );
        }
        if rates.len() != self.forks {
            return Err(format!("the result has scores of {} forks, not of {}", rates.len(), self.forks));
        }
        let rates: Option<Vec<f64>> = rates.into_iter().collect();
        let is_rate = |rate: &f64| rate.is_finite() && *rate > 0.0;
        rates.filter(|rates| rates.iter().all(is_rate)).ok_or_else(unknown)
    }

    /// Length of what a fork measured, without warmup.
    ///
    /// # Errors
    /// If the length of an iteration is not a time.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of benchmarks")]
    pub fn measured_ns(&self) -> Result<u64, String> {
        let text = &self.measurement_time;
        let length = text.split_once(' ').and_then(|(count, unit)| Some(count.parse::<f64>().ok()? * seconds(unit)?));
        let length = length.filter(|length| length.is_finite() && *length > 0.0);
        let length = length.ok_or_else(|| format!("its iterations last {text}, which is not a time"))?;
        Ok((length * 1e9 * f64::from(self.measurement_iterations)) as u64)
    }
}

/// Seconds of a unit of time, by the names that JMH has for them.
fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "hr" => 3_600.0,
        "day" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
pub(super) fn made_up(name: &str, mode: &str, unit: &str, raw_data: &[&[f64]]) -> Benchmark {
    Benchmark {
        name: name.to_owned(),
        mode: mode.to_owned(),
        threads: 2,
        forks: raw_data.len(),
        measurement_iterations: 3,
        measurement_time: "500 ms".to_owned(),
        params: BTreeMap::new(),
        primary_metric: Metric {
            score: 1.0,
            score_unit: unit.to_owned(),
            raw_data: raw_data.iter().map(|scores| scores.to_vec()).collect(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_a_rate_whatever_its_unit() {
        for (unit, scores, expected) in [
            ("ops/s", &[90.0, 110.0][..], 100.0),
            ("ops/us", &[2.0], 2e6),
            ("ops/min", &[120.0], 2.0),
            // Two threads.
            ("us/op", &[4.0], 5e5),
            ("s/op", &[0.5], 4.0),
            // Half of the time at 4 operations a second, half of it at 1.
            ("s/op", &[0.5, 2.0], 2.5),
        ] {
            let rates = made_up("a.B.c", "thrpt", unit, &[scores]).rates().unwrap();
            assert!((rates[0] / expected - 1.0).abs() < 1e-12, "{unit}: {rates:?}");
        }
    }

    #[test]
    fn a_score_that_is_no_rate_is_told() {
        for (mode, unit, score, expected) in [
            ("thrpt", "#", 1.0, "its score is in #"),
            ("thrpt", "ops/op", 1.0, "its score is in ops/op"),
            ("thrpt", "ops/s", 0.0, "its score is in ops/s"),
            ("avgt", "us/op", f64::NAN, "its score is in us/op"),
            ("ss", "ms/op", 1.0, "it runs once"),
        ] {
            let error = made_up("a.B.c", mode, unit, &[&[score]]).rates().unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_code_of_a_benchmark_is_in_its_generated_class() {
        let stub = |name: &str| made_up(name, "avgt", "s/op", &[]).stub();
        assert_eq!(stub("acme.fast.Sums.sum"), "acme.fast.jmh_generated.Sums_sum_jmhTest.sum_avgt_");
        assert_eq!(stub("Sums.sum"), "jmh_generated.Sums_sum_jmhTest.sum_avgt_");
    }

    #[test]
    fn a_measurement_lasts_as_long_as_its_iterations() {
        assert_eq!(made_up("a.B.c", "avgt", "s/op", &[]).measured_ns(), Ok(1_500_000_000));
        let wrong = Benchmark { measurement_time: "single-shot".into(), ..made_up("a.B.c", "ss", "s/op", &[]) };
        assert!(wrong.measured_ns().unwrap_err().contains("not a time"));
    }
}
