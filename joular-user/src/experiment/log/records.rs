//! What the log says of variants and runs.

use joular_data::experiment::replicates::Replicate;
use serde::{Deserialize, Serialize};

use super::super::{
    plan::{Place, Variant},
    trial::Outcome,
};

/// A variant, as it was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantRecord {
    pub name: String,
    /// Its data set, within the experiment's directory.
    pub folder: String,
    pub command: Vec<String>,
    pub values: Vec<(String, String)>,
}

impl From<&Variant> for VariantRecord {
    fn from(variant: &Variant) -> Self {
        Self {
            name: variant.name.clone(),
            folder: variant.folder(),
            command: variant.shown(),
            values: variant.values.clone(),
        }
    }
}

/// A run that has ended as it should.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    #[serde(flatten)]
    pub place: Place,
    /// When it ran, counted over all runs, from 0.
    pub order: u32,
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl RunRecord {
    #[allow(clippy::cast_precision_loss, reason = "figures for people")]
    /// Its figures, for statistics.
    pub(super) fn replicate(&self) -> Replicate {
        let outcome = &self.outcome;
        Replicate {
            order: self.order,
            joules: outcome.energy_uj as f64 / 1e6,
            seconds: outcome.duration_ns as f64 / 1e9,
            cpu_seconds: outcome.cpu_ns as f64 / 1e9,
            work: outcome.work,
            temperature_celsius: outcome.temperature_celsius,
            frequency_mhz: outcome.frequency_mhz,
        }
    }
}

/// A run that was measured and does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Of a warm-up, rounds are counted by themselves.
    #[serde(flatten)]
    pub place: Place,
    /// For people.
    pub why: String,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How many runs were asked for. An experiment that goes on may be asked for more.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// Of each variant, at most.
    pub repeat: u32,
    pub warmup: u32,
    /// When fewer are enough.
    pub until: Option<Until>,
}

/// Until when runs go on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// How far the 95 % interval of each variant's mean reaches to either side at most, in percent of the mean.
    pub percent: f64,
    /// Runs of each variant, at least.
    pub min_runs: u32,
}
