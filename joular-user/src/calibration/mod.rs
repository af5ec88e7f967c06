//! Measures what this machine draws when idle, and what joular-bpf itself costs on it.
//!
//! `joular-bpf calibrate` runs the real programs: on a machine left alone for its idle power
//! ([`baseline`]), then under loads that each provoke one category of cost ([`trainer`],
//! [`costs`]). Both are measured in many short batches after a warm-up. To the cost of a program
//! whatever else runs can only add, so its least batch is nearest to the truth. Idle power wavers both
//! ways, and is what windows have at no busy time ([`at_rest`]). The result is kept in a [`mod@file`] with a
//! [`fingerprint`] of everything it depends on, and a recording on anything else refuses it. The
//! idea is that of IBM's JPROF, which calibrated its entry and exit hooks this way.

pub mod at_rest;
pub mod baseline;
pub mod cores;
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
    cores::{CorePower, SmtRatio},
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
    /// When it was made.
    pub made: UnixMicros,
    pub fingerprint: Fingerprint,
    /// Empty where energy is modelled.
    pub baselines: Vec<IdlePower>,
    pub costs: Vec<Cost>,
    /// Of a hybrid processor; empty otherwise, and where energy is modelled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core_powers: Vec<CorePower>,
    /// Of a processor with hyper-threads, if it could be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smt: Option<SmtRatio>,
}

impl Calibration {
    /// What attribution takes from it: what domains draw at rest, and of the programs' costs the least, which everybody
    /// paid.
    pub fn calibrated(&self) -> Calibrated {
        let baseline = |power: &IdlePower| Baseline {
            domain: power.domain.clone(),
            socket: power.socket,
            core: power.core,
            milliwatts: power.at_rest.microwatts / 1000,
        };
        Calibrated { baselines: self.baselines.iter().map(baseline).collect(), costs: instrument_costs(&self.costs) }
    }
}

/// An older calibration may be of a machine that has changed in what no fingerprint has: its
/// firmware, its fans, the temperature of its room.
const OLD_DAYS: u64 = 30;

impl Calibration {
    /// Why it should be made again, though it holds. `now` is the machine now, if it is known, and
    /// `moment` the time of what it is used for.
    pub fn doubts(&self, now: Option<&Fingerprint>, moment: UnixMicros) -> Vec<String> {
        let mut doubts = Vec::new();
        let days = moment.0.abs_diff(self.made.0) / MICROS_PER_DAY;
        if days > OLD_DAYS {
            let is_later = moment < self.made;
            doubts.push(if is_later {
                format!("it was made {days} days later")
            } else {
                format!("it is {days} days old")
            });
        }
        if let Some(now) = now {
            let differences = self.fingerprint.doubts(now);
            let told = differences.iter().map(|differs| format!("{differs}, which may change idle power and costs"));
            doubts.extend(told);
            if self.fingerprint.settings.is_none() {
                doubts.push("it does not say under which governor, turbo and idle states it was made".to_owned());
            }
        }
        doubts
    }
}

const MICROS_PER_DAY: u64 = 24 * 3600 * 1_000_000;

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
    fn attribution_takes_power_at_rest_and_the_least_cost() {
        let baseline =
            |domain: &str, milliwatts| Baseline { domain: domain.to_owned(), socket: Some(0), core: None, milliwatts };
        let expected = Calibrated {
            baselines: vec![baseline("package", 20_000), baseline("dram", 2_000)],
            costs: InstrumentCosts { sample_ns: 770, switch_ns: 170 },
        };
        assert_eq!(fixture::calibration().calibrated(), expected);
    }

    #[test]
    fn a_calibration_ages() {
        let calibration = fixture::calibration();
        let day = i64::try_from(MICROS_PER_DAY).unwrap();
        let doubts =
            |days: i64| calibration.doubts(Some(&calibration.fingerprint), UnixMicros(calibration.made.0 + days * day));
        assert_eq!([doubts(0), doubts(30), doubts(-30)], [(); 3].map(|()| Vec::<String>::new()));
        assert_eq!(doubts(45), ["it is 45 days old"]);
        assert_eq!(doubts(-45), ["it was made 45 days later"]);
        assert_eq!(calibration.doubts(None, UnixMicros(i64::MIN)).len(), 1, "no clock panics");
    }

    #[test]
    fn a_calibration_tells_what_may_have_changed_and_what_it_does_not_know() {
        let calibration = fixture::calibration();
        let mut now = calibration.fingerprint.clone();
        now.settings.as_mut().unwrap().governor = Some("performance".into());
        let told = r#"frequency governor was "powersave" and is "performance", which may change idle power and costs"#;
        assert_eq!(calibration.doubts(Some(&now), calibration.made), [told]);
        let fingerprint = Fingerprint { settings: None, ..calibration.fingerprint.clone() };
        let older = Calibration { fingerprint, ..calibration.clone() };
        let told = "it does not say under which governor, turbo and idle states it was made";
        assert_eq!(older.doubts(Some(&now), calibration.made), [told]);
        assert_eq!(older.doubts(None, calibration.made), [""; 0]);
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
