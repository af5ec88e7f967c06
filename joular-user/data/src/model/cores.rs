//! Defines the types of cores of a hybrid processor, and what their time counts for when a counter's
//! energy is divided.

use serde::{Deserialize, Serialize};

/// A coefficient of 1, in thousandths.
pub const ONE_PERMILLE: u32 = 1_000;

/// Where a coefficient comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreBasis {
    /// Nothing is known: all types count the same.
    #[default]
    Assumed,
    /// `joular-bpf calibrate` loaded cores of each type.
    Calibrated,
}

/// Cores of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreType {
    /// `performance`, `efficiency`, `low_power`, or `capacity-N` by Arm's relative capacity.
    pub name: String,
    /// CPUs online at the run's start.
    pub cpus: Vec<u32>,
    /// Socket and core, as table `weights` has them.
    pub places: Vec<(u32, u32)>,
    /// Power that one more busy CPU of this type draws, relative to one of the first type, in thousandths.
    pub time_permille: u32,
    /// The same per cycle.
    pub cycles_permille: u32,
    pub basis: CoreBasis,
}

/// What a reader of the figures must know of a run's core types; `None` if there is nothing.
pub fn warning(types: &[CoreType]) -> Option<String> {
    if types.len() < 2 || types.iter().all(|of| of.basis == CoreBasis::Calibrated) {
        return None;
    }
    let names: Vec<String> = types.iter().map(|of| format!("{} {}", of.cpus.len(), of.name)).collect();
    Some(format!(
        "this processor is hybrid ({} CPUs), and how much a CPU of each type draws is not calibrated: their time counts \
         the same, which gives efficient cores too much: run `joular-bpf calibrate`",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hybrid_processor_that_was_not_calibrated_is_warned_about() {
        let of = |name: &str, basis| CoreType { name: name.into(), cpus: vec![0, 1], basis, ..CoreType::default() };
        let (assumed, calibrated) = (CoreBasis::Assumed, CoreBasis::Calibrated);
        let text = warning(&[of("performance", assumed), of("efficiency", assumed)]).unwrap();
        assert!(text.contains("2 performance, 2 efficiency CPUs") && text.contains("joular-bpf calibrate"), "{text}");
        assert_eq!(warning(&[of("performance", calibrated), of("efficiency", calibrated)]), None);
        assert_eq!(warning(&[of("performance", assumed)]), None);
        assert_eq!(warning(&[]), None);
    }
}
