//! Finds and reads the sources of energy.
//!
//! A source ([`EnergySource`]) says which [`joular_data::model::domain`]s it knows, and reads their
//! meters. [`joular_data::attribution::counter`] turns readings into energy per window, live and
//! replayed alike. [`select()`] chooses sources, [`combined`] makes them one. A new source is one
//! file, and one line in [`SOURCES`].

pub mod board;
pub mod choice;
pub mod combined;
pub mod cpuinfo;
pub mod devices;
pub mod filtering;
pub mod hwmon;
mod meter_files;
pub mod model;
pub mod nvml;
pub mod perf_pmu;
pub mod powercap;
pub mod rapl;
pub mod replay;
pub mod scmi;
pub mod select;
pub mod shared_file;
pub(crate) mod sysfs;
pub mod tdp;
pub mod topology;
pub mod watch;
pub mod watts;

use std::path::PathBuf;

use joular_data::model::{
    domain::{Domain, Reading},
    units::MonotonicNs,
};
use thiserror::Error;

pub use self::{
    choice::EnergyChoice,
    select::{EnergyError, Selected, select},
};
use self::{
    devices::{DiskFigures, NicFigures},
    model::VcpuPower,
    tdp::TdpOptions,
};

/// A source that can be asked for the energy or power of this machine. It is a trait because
/// sources differ in origin yet are read in the same way.
pub trait EnergySource: Send {
    /// As in `--energy` and in data sets; names with commas between them where
    /// several are combined.
    fn name(&self) -> &str;
    /// What it measures, disjoint but for parts and checks; fixed for its lifetime.
    fn domains(&self) -> &[Domain];
    /// All meters now, one reading per domain, in that order. A meter that
    /// cannot be read is [`Reading::Failed`], this time.
    fn read(&mut self) -> Vec<Reading>;
    /// Completes readings of an earlier moment by what is known now, and returns whether they are complete. It is called
    /// again until they are: energy that someone else reports is known later than it was used.
    fn complete(&mut self, _read_at: MonotonicNs, _readings: &mut [Reading]) -> bool {
        true
    }
    /// Where a window that is to end at `wanted` best ends, at most `within_ns` from there: reports may be of windows of
    /// someone else's.
    fn boundary_near(&self, wanted: MonotonicNs, _within_ns: u64) -> MonotonicNs {
        wanted
    }
    /// Running totals of hardware counters, to be read again and again while [`watch`] looks at when they
    /// advance: one entry per domain, `None` for any other meter. A source without such counters has no
    /// entries.
    fn totals_uj(&mut self) -> Vec<Option<u64>> {
        Vec::new()
    }
}

/// A kind of source: what `joular-bpf sources` says of it anywhere, and how it
/// is opened here.
#[derive(Clone, Copy)]
pub struct SourceKind {
    pub name: &'static str,
    /// What its figures measure.
    pub measures: &'static str,
    /// The permission it needs.
    pub permission: &'static str,
    /// Whether it is added to the sources that are chosen, if nothing there measures the same yet: for
    /// devices beside the processor.
    pub adds: Adds,
    open: fn(&EnergyOptions) -> Result<Opened, Unusable>,
}

/// When a source is added to those that are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    Never,
    /// To what `auto` chose.
    ToAuto,
    /// To whatever is chosen, if its own flag is given.
    IfAsked,
}

impl SourceKind {
    /// Opens it here.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(&self, options: &EnergyOptions) -> Result<Opened, Unusable> {
        (self.open)(options)
    }
}

/// All kinds, in the order in which `auto` tries them: measured before reported before modelled.
/// Those after the model measure no processor, or are only for users who ask for them.
pub const SOURCES: &[SourceKind] = &[
    perf_pmu::KIND,
    powercap::KIND,
    hwmon::KIND,
    scmi::KIND,
    shared_file::MICROJOULES,
    shared_file::POWERJOULAR,
    shared_file::WATTS,
    board::KIND,
    model::KIND,
    tdp::KIND,
    hwmon::GPU_KIND,
    nvml::KIND,
    devices::NIC_KIND,
    devices::DISK_KIND,
    replay::KIND,
];

/// A source that works here.
pub struct Opened {
    pub source: Box<dyn EnergySource>,
    /// What its figures are based on, in a few words for people.
    pub basis: String,
    /// Smallest step and how often it advances.
    pub resolution: String,
}

/// Why a source cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct Unusable {
    pub kind: UnusableKind,
    /// Operation, object, cause, and what to do.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableKind {
    /// It needs something that was not given, such as a file to read.
    NotAsked,
    /// This machine does not have it.
    Absent,
    /// It is there and may not be read.
    Denied,
    /// It is there and does not work.
    Broken,
}

impl Unusable {
    pub fn new(kind: UnusableKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// Which source, and where to look for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnergyOptions {
    pub choice: EnergyChoice,
    /// Usually `/sys`.
    pub sys_root: PathBuf,
    /// Usually `/proc`.
    pub proc_root: PathBuf,
    /// Usually `/dev`.
    pub dev_root: PathBuf,
    /// Usually [`powercap::DEFAULT_ROOT`].
    pub powercap_root: PathBuf,
    /// For `watts`, `powerjoular` and `replay`.
    pub file: Option<PathBuf>,
    /// For `board`, models that come before those that are built in.
    pub board_models: Option<PathBuf>,
    /// For `model`, instead of the published coefficients.
    pub model_watts: Option<VcpuPower>,
    /// For `tdp`, what the user knows of the processor.
    pub tdp: Option<TdpOptions>,
    /// For `network`, if its energy is asked for: what the user knows of a card.
    pub nic: Option<NicFigures>,
    /// For `disk`, the same.
    pub disk: Option<DiskFigures>,
}

impl EnergyOptions {
    /// Whether energy is asked for that a model makes of bytes which threads move.
    pub const fn needs_bytes(&self) -> bool {
        self.nic.is_some() || self.disk.is_some()
    }
}

impl Opened {
    pub fn new(source: impl EnergySource + 'static, basis: impl Into<String>, resolution: impl Into<String>) -> Self {
        Self { source: Box::new(source), basis: basis.into(), resolution: resolution.into() }
    }
}

#[cfg(test)]
mod regressions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_explains_every_source() {
        let document = include_str!("../../../docs/energy.md");
        let (_, sources) = document.split_once("| source |").unwrap();
        let sources = sources.split("\n\n").next().unwrap();
        for kind in SOURCES {
            assert!(sources.contains(kind.name), "{}", kind.name);
        }
    }
}
