//! Defines how energy is divided: everything that a user may choose, and may choose differently
//! afterwards. docs/energy.md explains each choice.

use serde::{Deserialize, Serialize};

/// What two hyper-threads of a core draw together, in thousandths of what one
/// draws alone: the middle of the 1.1 to 1.15 that is published for CPUs with
/// two threads per core (docs/energy.md).
pub const DEFAULT_SMT_PERMILLE: u32 = 1_125;

/// The choices of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub idle: IdlePolicy,
    /// Idle power of one socket as the user knows it, mW; 0 if not given.
    pub idle_milliwatts: u64,
    /// Two busy hyper-threads of a core relative to one alone, in thousandths:
    /// 1000 (the second is free) to 2000 (each counts in full).
    pub smt_permille: u32,
    /// What weights are counted in.
    pub weight_unit: WeightUnit,
    /// What a calibration of this machine found.
    pub calibration: Option<Calibrated>,
    /// The groups of threads whose watts were fitted to measured energy and count beside CPU time, as `--by` has them;
    /// `None` if CPU time counts alike for all. They are learnt from a data set, so a recording has none.
    #[serde(skip)]
    pub watts_by: Option<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            idle: IdlePolicy::default(),
            idle_milliwatts: 0,
            smt_permille: DEFAULT_SMT_PERMILLE,
            weight_unit: WeightUnit::default(),
            calibration: None,
            watts_by: None,
        }
    }
}

impl Policy {
    /// What energy is divided by, in words: `time`, `cycles and fitted watts by service`.
    pub fn weights(&self) -> String {
        let watts = self.watts_by.as_ref().map_or_else(String::new, |by| format!(" and fitted watts by {by}"));
        format!("{}{watts}", self.weight_unit.name())
    }
}

/// What a user chose, which replaces a policy's own choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyChoices {
    pub idle: Option<IdlePolicy>,
    pub idle_milliwatts: Option<u64>,
    pub smt_permille: Option<u32>,
    /// `Some(None)`: do without a calibration.
    pub calibration: Option<Option<Calibrated>>,
}

impl PolicyChoices {
    pub fn over(self, policy: Policy) -> Policy {
        Policy {
            idle: self.idle.unwrap_or(policy.idle),
            idle_milliwatts: self.idle_milliwatts.unwrap_or(policy.idle_milliwatts),
            smt_permille: self.smt_permille.unwrap_or(policy.smt_permille),
            weight_unit: policy.weight_unit,
            calibration: self.calibration.unwrap_or(policy.calibration),
            watts_by: policy.watts_by,
        }
    }
}

/// What becomes of the energy that does not depend on load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdlePolicy {
    /// The baseline is set apart, the rest is divided.
    #[default]
    Separate,
    /// Everything is divided among who ran, as JoularJX does.
    Spread,
    /// The share of time in which the CPUs were idle is set apart, as Kepler does.
    Active,
}

impl IdlePolicy {
    pub const ALL: [Self; 3] = [Self::Separate, Self::Spread, Self::Active];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Spread => "spread",
            Self::Active => "active",
        }
    }
}

impl std::str::FromStr for IdlePolicy {
    type Err = UnknownIdlePolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|policy| policy.name() == text).ok_or(UnknownIdlePolicy)
    }
}

/// A text that names no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such policy: use separate, spread or active")]
pub struct UnknownIdlePolicy;

/// What a thread's weight is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WeightUnit {
    /// On-CPU nanoseconds.
    #[default]
    Time,
    /// Unhalted cycles.
    Cycles,
}

impl WeightUnit {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Cycles => "cycles",
        }
    }
}

/// What attribution takes from a calibration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Idle power of the domains it measured.
    pub baselines: Vec<Baseline>,
    pub costs: InstrumentCosts,
}

/// Idle power of one domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    pub domain: String,
    pub socket: Option<u32>,
    pub core: Option<u32>,
    pub milliwatts: u64,
}

/// What joular-bpf's programs at least take of the time of whatever they interrupt: this much is
/// certainly not the thread's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstrumentCosts {
    pub sample_ns: u64,
    pub switch_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::domain::{FaultCause, Label};

    #[test]
    fn the_document_explains_every_choice_label_and_fault() {
        let document = include_str!("../../../../docs/energy.md");
        let labels = Label::ALL.map(Label::name);
        let named = FaultCause::ALL.map(FaultCause::name).into_iter().chain(IdlePolicy::ALL.map(IdlePolicy::name));
        for name in named.chain(labels) {
            assert!(document.contains(&format!("`{name}`")), "{name}");
        }
    }
}
