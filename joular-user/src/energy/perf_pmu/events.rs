//! Reads the energy events of a PMU, as sysfs describes them (Linux,
//! Documentation/ABI/testing/sysfs-bus-event_source-devices-events).

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use super::scale::Scale;
use crate::energy::{rapl::RaplKind, sysfs::read_value, topology::parse_cpu_list};

/// Below the root of sysfs.
pub const PMU_ROOT: &str = "bus/event_source/devices";

/// The PMUs and their events; what `arch/x86/events/rapl.c` registers.
const POWER: &[(&str, RaplKind)] = &[
    ("energy-pkg", RaplKind::Package),
    ("energy-cores", RaplKind::Cores),
    ("energy-gpu", RaplKind::Graphics),
    ("energy-ram", RaplKind::Dram),
    ("energy-psys", RaplKind::Platform),
];
const POWER_CORE: &[(&str, RaplKind)] = &[("energy-core", RaplKind::Core)];

/// An event, and the CPUs that may count it: one per die, package or core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnergyEvent {
    pub kind: RaplKind,
    /// As in sysfs.
    pub name: &'static str,
    /// `type` and `config` of `perf_event_open`.
    pub pmu_type: u32,
    pub config: u64,
    pub scale: Scale,
    pub cpus: Vec<u32>,
}

/// What is wrong with a PMU that is there.
#[derive(Debug, Error)]
pub enum EventError {
    #[error("reading {path}: {cause}: this kernel describes its energy events differently; use --energy powercap")]
    Io { path: PathBuf, cause: io::Error },
    #[error(
        "reading {path}: \"{text}\" is not {expected}: this kernel describes its energy events differently; use --energy powercap"
    )]
    Malformed { path: PathBuf, text: String, expected: &'static str },
}

/// The events of PMU `power`, of packages and what is beside them, and those of
/// `power_core`, of single cores. Empty if there is none.
///
/// # Errors
/// If a PMU is there and what it says is not understood.
pub fn discover(sys_root: &Path) -> Result<Vec<EnergyEvent>, EventError> {
    let pmus = sys_root.join(PMU_ROOT);
    let mut events = events_of(&pmus.join("power"), POWER)?;
    events.extend(events_of(&pmus.join("power_core"), POWER_CORE)?);
    Ok(events)
}

fn events_of(pmu: &Path, known: &[(&'static str, RaplKind)]) -> Result<Vec<EnergyEvent>, EventError> {
    if !pmu.exists() {
        return Ok(Vec::new());
    }
    let pmu_type = parse(&pmu.join("type"), "the number of a PMU", |text| text.parse().ok())?;
    let cpumask = Some(pmu.join("cpumask")).filter(|path| path.exists()).unwrap_or_else(|| pmu.join("cpus"));
    let cpus = parse(&cpumask, "a list of CPUs", parse_cpu_list)?;
    let path_of = |name: &str| pmu.join("events").join(name);
    let known = known.iter().filter(|(name, _)| path_of(name).exists());
    known
        .map(|(name, kind)| {
            parse(&path_of(&format!("{name}.unit")), "Joules", |unit| (unit == "Joules").then_some(()))?;
            let (name, kind) = (*name, *kind);
            let config = parse(&path_of(name), "event=NUMBER", parse_config)?;
            let scale = parse(&path_of(&format!("{name}.scale")), "a decimal number above 0", Scale::parse)?;
            Ok(EnergyEvent { kind, name, pmu_type, config, scale, cpus: cpus.clone() })
        })
        .collect()
}

fn parse<T>(path: &Path, expected: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, EventError> {
    let text = read_value(path).map_err(|cause| EventError::Io { path: path.to_owned(), cause })?;
    parse(&text).ok_or_else(|| {
        let shown = text.chars().take(40).flat_map(char::escape_debug).collect();
        EventError::Malformed { path: path.to_owned(), text: shown, expected }
    })
}

/// `event=0x02`: the PMU's only term, its low byte (`format/event` is `config:0-7`).
fn parse_config(text: &str) -> Option<u64> {
    let number = text.strip_prefix("event=")?;
    let config = match number.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => number.parse(),
    };
    config.ok().map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_byte() {
        for (text, expected) in [
            ("event=0x02", Some(2)),
            ("event=5", Some(5)),
            ("event=0x100", None),
            ("event=0x02,umask=1", None),
            ("event=", None),
            ("config=1", None),
            ("", None),
        ] {
            assert_eq!(parse_config(text), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_event_panics(text in "event=(0x)?[0-9a-f]{0,20}|.{0,20}") {
            proptest::prop_assert!(parse_config(&text).unwrap_or(0) <= 0xff);
        }
    }
}
