//! Measures what this machine draws when idle, and what joular-bpf itself costs on it.
//!
//! `joular-bpf calibrate` runs the real programs: on a machine left alone for its idle power
//! ([`baseline`]), then under loads that each provoke one category of cost ([`trainer`],
//! [`costs`]). Both are measured in many short batches after a warm-up. Whatever else runs can only
//! add, so the least batch is nearest to the truth. The result is kept in a [`mod@file`] with a
//! [`fingerprint`] of everything it depends on, and a recording on anything else refuses it. The
//! idea is that of IBM's JPROF, which calibrated its entry and exit hooks this way.

pub mod baseline;
pub mod costs;
pub mod file;
pub mod fingerprint;
#[cfg(test)]
pub mod fixture;
pub mod instrument;
pub mod measure;
pub mod show;
pub mod statistics;
pub mod trainer;

use std::{io, path::PathBuf};

use joular_data::model::{
    policy::{Baseline, Calibrated},
    units::UnixMicros,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::{
    baseline::{BaselineError, IdlePower},
    costs::{Cost, instrument_costs},
    file::FileError,
    fingerprint::{Difference, Fingerprint},
};
use crate::kernel::KernelError;

/// All that a calibration found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// [`file::FORMAT_VERSION`].
    pub format_version: u32,
    /// When it was made, for people only.
    pub made: UnixMicros,
    pub fingerprint: Fingerprint,
    /// Empty where energy is modelled.
    pub baselines: Vec<IdlePower>,
    pub costs: Vec<Cost>,
}

impl Calibration {
    /// What attribution takes from it: the least of everything, so that nothing that was somebody's
    /// is ever subtracted.
    pub fn calibrated(&self) -> Calibrated {
        let baseline = |power: &IdlePower| Baseline {
            domain: power.domain.clone(),
            socket: power.socket,
            core: power.core,
            milliwatts: power.microwatts.least / 1000,
        };
        Calibrated { baselines: self.baselines.iter().map(baseline).collect(), costs: instrument_costs(&self.costs) }
    }
}

/// Why there is no calibration, or why it cannot be used.
#[derive(Debug, Error)]
pub enum CalibrationError {
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Baseline(#[from] BaselineError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "enabling the kernel's run statistics of eBPF programs: refused: \
         calibrate as root (it takes CAP_SYS_ADMIN, which a recording does not)"
    )]
    Statistics,
    #[error("{operation} the load that is measured: {source}: is the machine out of processes or memory?")]
    Trainer { operation: &'static str, source: io::Error },
    #[error("writing the calibration to standard output: {0}: the file is complete")]
    Show(io::Error),
    #[error(
        "calibration {path} does not hold here: {}: run `joular-bpf calibrate` again, or use --calibration none",
        listed(differences)
    )]
    Mismatch { path: PathBuf, differences: Vec<Difference> },
}

fn listed(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use joular_data::model::policy::InstrumentCosts;

    use super::*;

    #[test]
    fn attribution_takes_the_least_of_everything() {
        let baseline =
            |domain: &str, milliwatts| Baseline { domain: domain.to_owned(), socket: Some(0), core: None, milliwatts };
        let expected = Calibrated {
            baselines: vec![baseline("package", 20_000), baseline("dram", 2_000)],
            costs: InstrumentCosts { sample_ns: 770, switch_ns: 170 },
        };
        assert_eq!(fixture::calibration().calibrated(), expected);
    }

    #[test]
    fn a_refusal_names_every_difference() {
        let difference =
            |what, stored: &str, now: &str| Difference { what, stored: stored.to_owned(), now: now.to_owned() };
        let differences = vec![difference("kernel", "6.1", "6.2"), difference("SMT", "on", "off")];
        let message = CalibrationError::Mismatch { path: "c.json".into(), differences }.to_string();
        assert!(message.contains(r#"kernel was "6.1" and is "6.2"; SMT was "on" and is "off""#), "{message}");
    }
}
