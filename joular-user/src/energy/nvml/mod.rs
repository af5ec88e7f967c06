//! Reads the energy counters of NVIDIA GPUs by NVML, the library of NVIDIA's driver.
//!
//! `nvmlDeviceGetTotalEnergyConsumption` gives what a GPU has drawn since the driver was loaded, in
//! mJ; Volta (2017) or newer has it. Drivers update it every 20 to 100 ms. The library comes with
//! the driver and is loaded when this source is opened, not before, so that nothing depends on it.
//!
//! CPU time does not tell who uses a GPU, so its energy goes to nobody.

mod library;

use joular_data::model::domain::{Domain, FaultCause, Label, Meter, Reading, Role};

use self::library::Library;
use super::{Adds, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind};

/// Name of this source in `--energy` and in data sets.
const NAME: &str = "nvml";

/// What [`super::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "energy counters of NVIDIA GPUs",
    permission: "to use /dev/nvidiactl",
    adds: Adds::ToAuto,
    open: |_: &EnergyOptions| open(Library::load(library::NAME).map_err(unusable)?),
};

/// One GPU of 2026 draws up to 1.4 kW.
const GPU_MAX_WATTS: u32 = 3_000;

const UJ_PER_MJ: u64 = 1_000;

/// The questions to the library; a trait because tests have no GPU.
trait Gpus: Send {
    /// How many there are; they are numbered from 0.
    fn count(&self) -> u32;
    /// Energy since the driver was loaded, mJ.
    fn energy_mj(&self, gpu: u32) -> Result<u64, NvmlError>;
}

/// Why the library did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NvmlError {
    #[error("loading {library}: not there: this machine has no NVIDIA driver")]
    NoLibrary { library: String },
    #[error("loading {library}: {cause}: install the library of the NVIDIA driver that runs")]
    BadLibrary { library: String, cause: String },
    #[error("calling {function}: {}", meaning(*code))]
    Call { function: &'static str, code: i32 },
}

/// `nvmlReturn_t` of nvml.h, those that a call here may return.
mod code {
    pub const NOT_SUPPORTED: i32 = 3;
    pub const NO_PERMISSION: i32 = 4;
    pub const NOT_FOUND: i32 = 6;
    pub const DRIVER_NOT_LOADED: i32 = 9;
    pub const GPU_IS_LOST: i32 = 15;
    pub const VERSION_MISMATCH: i32 = 18;
}

fn meaning(code: i32) -> String {
    let text = match code {
        code::NOT_SUPPORTED => "not supported: GPUs before Volta have no energy counter",
        code::NO_PERMISSION => "permission denied: run as a user that may use /dev/nvidiactl",
        code::NOT_FOUND => "no such GPU",
        code::DRIVER_NOT_LOADED => "the NVIDIA driver is not loaded",
        code::GPU_IS_LOST => "the GPU is lost: it fell off the bus or needs a reset",
        code::VERSION_MISMATCH => "library and driver are of different versions: reboot or load the new driver",
        _ => return format!("NVML error {code}: see nvmlReturn_t in NVIDIA's documentation"),
    };
    text.to_owned()
}

fn unusable(error: NvmlError) -> Unusable {
    let kind = match error {
        NvmlError::NoLibrary { .. }
        | NvmlError::Call { code: code::DRIVER_NOT_LOADED | code::NOT_FOUND | code::NOT_SUPPORTED, .. } => {
            UnusableKind::Absent
        }
        NvmlError::Call { code: code::NO_PERMISSION, .. } => UnusableKind::Denied,
        NvmlError::BadLibrary { .. } | NvmlError::Call { .. } => UnusableKind::Broken,
    };
    Unusable::new(kind, error.to_string())
}

fn fault(error: &NvmlError) -> Reading {
    let cause = match error {
        NvmlError::Call { code: code::GPU_IS_LOST | code::NOT_FOUND | code::DRIVER_NOT_LOADED, .. } => FaultCause::Gone,
        NvmlError::Call { code: code::NO_PERMISSION, .. } => FaultCause::Denied,
        _ => FaultCause::Unreadable,
    };
    Reading::failed(cause, error.to_string())
}

/// A domain per GPU that has a counter, under the GPU's own number.
fn open(gpus: impl Gpus + 'static) -> Result<Opened, Unusable> {
    let (mut numbers, mut refused) = (Vec::new(), None);
    for gpu in 0..gpus.count() {
        match gpus.energy_mj(gpu) {
            Ok(_) => numbers.push(gpu),
            Err(error) => refused = Some(error),
        }
    }
    if numbers.is_empty() {
        let none = || Unusable::new(UnusableKind::Absent, "asking NVML for GPUs: there are none");
        return Err(refused.map_or_else(none, unusable));
    }
    let basis = format!("hardware counters of {} of {} NVIDIA GPUs", numbers.len(), gpus.count());
    let domains = numbers.iter().map(|gpu| domain(*gpu)).collect();
    Ok(Opened::new(Nvml { gpus, numbers, domains }, basis, "1 mJ, every 20 to 100 ms"))
}

fn domain(gpu: u32) -> Domain {
    // 64 bits of mJ last for ever.
    let meter = Meter::Counter { range_uj: 0, unit_uj: UJ_PER_MJ, max_watts: GPU_MAX_WATTS };
    Domain { role: Role::Unshared, ..Domain::new(&format!("gpu-nvidia{gpu}"), None, NAME, Label::Measured, meter) }
}

struct Nvml<G> {
    gpus: G,
    numbers: Vec<u32>,
    domains: Vec<Domain>,
}

impl<G: Gpus> EnergySource for Nvml<G> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        let read = |gpu: &u32| match self.gpus.energy_mj(*gpu).map(|mj| mj.checked_mul(UJ_PER_MJ)) {
            Ok(Some(uj)) => Reading::CounterUj(uj),
            Ok(None) => {
                let text = format!("reading the energy of gpu{gpu}: more than 2^64 µJ: is the driver broken?");
                Reading::failed(FaultCause::Malformed, text)
            }
            Err(error) => fault(&error),
        };
        self.numbers.iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests;
