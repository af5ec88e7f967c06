//! Reads Linux powercap: the RAPL counters of Intel and AMD processors.
//!
//! `energy_uj` of a zone is a 32-bit register × unit, in µJ. It advances about every millisecond
//! and restarts at 0 after `max_energy_range_uj`. Since 2020 (PLATYPUS, CVE-2020-8694) only root
//! may read it. [`zones`] and [`super::rapl`] decide which zones make disjoint domains; this module
//! opens and reads them.

pub(super) mod counter_file;
mod zones;

use std::path::Path;

use joular_data::model::domain::{Domain, FaultCause, Reading};
use thiserror::Error;

use self::{counter_file::CounterFile, zones::Zone};
use super::{
    Adds, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind, cpuinfo,
    rapl::{self, Register},
};

/// Name of this source in `--energy` and in data sets.
pub const NAME: &str = "powercap";

/// Where Linux keeps the zones.
pub const DEFAULT_ROOT: &str = "/sys/class/powercap";

/// What [`super::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "RAPL energy counters of packages, memory and platform, as powercap shows them",
    permission: "root or CAP_DAC_READ_SEARCH",
    adds: Adds::Never,
    open,
};

fn open(options: &EnergyOptions) -> Result<Opened, Unusable> {
    let is_intel = cpuinfo::is_intel(&options.proc_root);
    let mut source = Powercap::open(&options.powercap_root, is_intel)
        .map_err(|error| Unusable::new(error.kind(), error.to_string()))?;
    let basis = rapl::label(&mut source.domains, options);
    let unit = source.domains().iter().filter_map(Domain::unit_uj).max().unwrap_or(1);
    Ok(Opened::new(source, basis, format!("{unit} µJ, about every 1 ms")))
}

/// Why powercap cannot be used.
#[derive(Debug, Error)]
pub enum PowercapError {
    #[error("listing {path}: {cause}: this kernel or virtual machine offers no energy counters; use --energy model")]
    NoRoot { path: String, cause: std::io::Error },
    #[error(
        "looking for energy zones in {path}: no package or psys zone: load the intel_rapl_msr module or use --energy model"
    )]
    NoZones { path: String },
    /// One counter could not be read; says which, why and what to do.
    #[error("{text}")]
    Unreadable { is_denied: bool, text: String },
}

impl PowercapError {
    const fn kind(&self) -> UnusableKind {
        match self {
            Self::NoRoot { .. } | Self::NoZones { .. } => UnusableKind::Absent,
            Self::Unreadable { is_denied: true, .. } => UnusableKind::Denied,
            Self::Unreadable { is_denied: false, .. } => UnusableKind::Broken,
        }
    }
}

/// The counters of a machine's packages, memory and platform.
#[derive(Debug)]
pub struct Powercap {
    domains: Vec<Domain>,
    counters: Vec<CounterFile>,
}

impl Powercap {
    /// Finds the zones below `root` and reads each once. What zones within a
    /// package and its dies mean depends on the vendor: hence `is_intel`.
    ///
    /// # Errors
    /// If there is no zone to use, if permission to read any is missing, or if
    /// none can be read. A zone that fails otherwise stays: its failed reads
    /// are reported window by window, and it may come back.
    pub fn open(root: &Path, is_intel: bool) -> Result<Self, PowercapError> {
        let zones = zones::discover(root, is_intel)
            .map_err(|cause| PowercapError::NoRoot { path: root.display().to_string(), cause })?;
        if zones.is_empty() {
            return Err(PowercapError::NoZones { path: root.display().to_string() });
        }
        let mut counters: Vec<CounterFile> = zones.iter().map(Zone::counter).collect();
        let failures: Vec<_> = counters.iter_mut().filter_map(|counter| counter.read().err()).collect();
        let denied = failures.iter().find(|failure| failure.is_permission_denied());
        let hopeless = (failures.len() == counters.len()).then(|| failures.first()).flatten();
        if let Some(failure) = denied.or(hopeless) {
            return Err(PowercapError::Unreadable { is_denied: denied.is_some(), text: failure.to_string() });
        }
        let registers: Vec<Register> = zones.iter().map(Zone::register).collect();
        Ok(Self { domains: rapl::domains(NAME, &registers), counters })
    }
}

impl EnergySource for Powercap {
    fn name(&self) -> &'static str {
        NAME
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        let read = |counter: &mut CounterFile| match counter.read() {
            Ok(value) => Reading::CounterUj(value),
            Err(failure) => Reading::failed(FaultCause::of(&failure.cause), failure.to_string()),
        };
        self.counters.iter_mut().map(read).collect()
    }

    fn totals_uj(&mut self) -> Vec<Option<u64>> {
        self.counters.iter_mut().map(|counter| counter.read().ok()).collect()
    }
}

#[cfg(test)]
pub mod fake_tree;
#[cfg(test)]
mod tests;
