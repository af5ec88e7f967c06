//! Reads the kernel's energy events: PMUs `power` and `power_core` of perf.
//!
//! They are the same registers as powercap's, and preferred to it. The kernel extends them to 64
//! bits, so no wrap is ever missed. It knows the unit of each, dram's too, and on AMD it counts
//! every core by itself. Each event is opened for all processes on one CPU that its PMU names per
//! register (one per die on Intel, per package on AMD, per core for `power_core`). E = count ×
//! scale, with the scale that sysfs gives ([`scale`]). [`super::rapl`] says what the registers make
//! together.

pub(crate) mod counters;
mod events;
mod scale;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
};

use joular_data::model::domain::{Domain, FaultCause, Reading};
use thiserror::Error;

use self::{
    counters::{EventOnCpu, KernelEvents, PerfCounter, PerfEvents},
    events::{EnergyEvent, EventError, PMU_ROOT},
    scale::Scale,
};
use super::{
    Adds, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind, cpuinfo,
    rapl::{self, RaplKind, Register},
    topology::{CpuPlace, place_of},
};

/// Name of this source in `--energy` and in data sets.
pub const NAME: &str = "perf";

/// What [`super::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "RAPL energy counters of packages, memory and, on AMD, of single cores, as perf counts them",
    permission: "root or CAP_PERFMON",
    adds: Adds::Never,
    open: |options| open(options, &KernelEvents),
};

fn open(options: &EnergyOptions, events: &dyn PerfEvents) -> Result<Opened, Unusable> {
    let is_intel = cpuinfo::is_intel(&options.proc_root);
    let mut source = PerfPmu::open(&options.sys_root, is_intel, events)
        .map_err(|error| Unusable::new(error.kind(), error.to_string()))?;
    let basis = rapl::label(&mut source.domains, options);
    Ok(Opened::new(source, basis, "the register's step (often 61 µJ), about every 1 ms"))
}

/// Why energy events cannot be used.
#[derive(Debug, Error)]
pub enum PerfPmuError {
    #[error("looking for PMU power in {path}: there is none: this kernel or virtual machine offers no energy events")]
    NoPmu { path: String },
    #[error("looking for event energy-pkg in {path}/power: there is none: use --energy powercap")]
    NoPackage { path: String },
    #[error(transparent)]
    Event(#[from] EventError),
    #[error("opening event {name} on CPU {cpu}: permission denied: run as root or grant CAP_PERFMON")]
    Denied { name: &'static str, cpu: u32 },
    #[error("opening event {name} on CPU {cpu}: {cause}: use --energy powercap")]
    Open { name: &'static str, cpu: u32, cause: io::Error },
    #[error(
        "reading core_id of CPU {cpu}: there is none, so its energy cannot be separated from that of other cores: use --energy powercap"
    )]
    NoCore { cpu: u32 },
}

impl PerfPmuError {
    const fn kind(&self) -> UnusableKind {
        match self {
            Self::NoPmu { .. } | Self::NoPackage { .. } => UnusableKind::Absent,
            Self::Denied { .. } => UnusableKind::Denied,
            Self::Event(_) | Self::Open { .. } | Self::NoCore { .. } => UnusableKind::Broken,
        }
    }
}

/// Energy events of a machine, counting.
pub struct PerfPmu {
    domains: Vec<Domain>,
    meters: Vec<OpenEvent>,
}

/// One register's event on the CPUs that may read it: one, but for the platform.
struct OpenEvent {
    name: &'static str,
    scale: Scale,
    counters: Vec<(u32, Box<dyn PerfCounter>)>,
}

impl OpenEvent {
    fn read(&mut self) -> Reading {
        let mut sum = 0_u64;
        for (cpu, counter) in &mut self.counters {
            match counter.count() {
                Ok(count) => sum = sum.wrapping_add(count),
                Err(cause) => {
                    let text = format!("reading event {} on CPU {cpu}: {cause}", self.name);
                    return Reading::failed(FaultCause::of(&cause), text);
                }
            }
        }
        Reading::CounterUj(self.scale.microjoules(sum))
    }
}

impl PerfPmu {
    /// Opens every energy event below `sys_root` and starts it.
    ///
    /// # Errors
    /// If there is no event of packages, or if any event cannot be understood
    /// or opened: with one missing, the others would not be what they seem.
    fn open(sys_root: &Path, is_intel: bool, events: &dyn PerfEvents) -> Result<Self, PerfPmuError> {
        let mut found = events::discover(sys_root)?;
        // Then threads are known by their socket only, and packages are whole.
        let cores_fit = |event: &EnergyEvent| event.cpus.iter().all(|cpu| place_of(sys_root, *cpu).core_fits());
        found.retain(|event| event.kind != RaplKind::Core || cores_fit(event));
        let path = || sys_root.join(PMU_ROOT).display().to_string();
        if found.is_empty() {
            return Err(PerfPmuError::NoPmu { path: path() });
        }
        let mut places = place_registers(sys_root, is_intel, &found)?;
        if !places.iter().any(|(register, ..)| register.kind == RaplKind::Package) {
            return Err(PerfPmuError::NoPackage { path: path() });
        }
        // By socket, the machine's last; within it as events are listed.
        places.sort_by_key(|(register, ..)| (register.socket.is_none(), register.socket, register.die));
        let meters = places.iter().map(|(_, event, cpus)| open_event(event, cpus, events)).collect::<Result<_, _>>()?;
        let registers: Vec<Register> = places.iter().map(|(register, ..)| *register).collect();
        Ok(Self { domains: rapl::domains(NAME, &registers), meters })
    }
}

/// A register, its event and the CPUs to count it on.
type Placed<'a> = (Register, &'a EnergyEvent, Vec<u32>);

fn place_registers<'a>(
    sys_root: &Path,
    is_intel: bool,
    events: &'a [EnergyEvent],
) -> Result<Vec<Placed<'a>>, PerfPmuError> {
    let has_cores = events.iter().any(|event| event.kind == RaplKind::Core);
    // No processor has both; if one had, the platform would hold what is the rest
    // of packages already.
    let used = events.iter().filter(|event| !(has_cores && event.kind == RaplKind::Platform));
    let mut placed = Vec::new();
    for event in used {
        let places: Vec<(u32, CpuPlace)> = event.cpus.iter().map(|cpu| (*cpu, place_of(sys_root, *cpu))).collect();
        let registers = registers_of(event, &places, is_intel)?;
        placed.extend(registers.into_iter().map(|(register, cpus)| (register, event, cpus)));
    }
    Ok(placed)
}

/// Socket, die and core that have a register of their own.
type Unit = (u32, Option<u32>, Option<u32>);

/// The registers that these CPUs can count, each by the first of them. A PMU may
/// list more than one CPU for a register: AMD's, of one per package, a CPU of each die
/// (kernels before 6.11), Intel's, on newer kernels, all CPUs of the package.
fn registers_of(
    event: &EnergyEvent,
    places: &[(u32, CpuPlace)],
    is_intel: bool,
) -> Result<Vec<(Register, Vec<u32>)>, PerfPmuError> {
    let dies: BTreeSet<_> = places.iter().map(|(_, place)| (place.socket, place.die)).collect();
    // One CPU of each die: that is how the registers of dies are listed.
    let has_dies = is_intel && dies.len() == places.len();
    let mut units: BTreeMap<Unit, u32> = BTreeMap::new();
    for (cpu, place) in places {
        let unit = match event.kind {
            RaplKind::Core => (place.socket, place.die, Some(place.core.ok_or(PerfPmuError::NoCore { cpu: *cpu })?)),
            RaplKind::Platform => (place.socket, None, None),
            _ => (place.socket, place.die.filter(|_| has_dies), None),
        };
        units.entry(unit).or_insert(*cpu);
    }
    let meter = event.scale.meter(event.kind.max_watts());
    let register = |(socket, die, core): Unit| Register {
        kind: event.kind,
        socket: Some(socket),
        // Cores belong to their package, whichever die they are on.
        die: die.filter(|_| core.is_none()),
        core,
        meter,
    };
    if event.kind == RaplKind::Platform {
        // Only one package knows the platform's, and it need not be the first;
        // in the others the register stays at 0. So their sum is the platform.
        let platform = Register { kind: event.kind, socket: None, die: None, core: None, meter };
        return Ok(vec![(platform, units.into_values().collect())]);
    }
    Ok(units.into_iter().map(|(unit, cpu)| (register(unit), vec![cpu])).collect())
}

fn open_event(event: &EnergyEvent, cpus: &[u32], events: &dyn PerfEvents) -> Result<OpenEvent, PerfPmuError> {
    let EnergyEvent { name, pmu_type, config, scale, .. } = *event;
    let open = |cpu: &u32| match events.open(EventOnCpu { pmu_type, config, cpu: *cpu }) {
        Ok(counter) => Ok((*cpu, counter)),
        // EACCES, or EPERM: which one depends on kernel.perf_event_paranoid.
        Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => Err(PerfPmuError::Denied { name, cpu: *cpu }),
        Err(cause) => Err(PerfPmuError::Open { name, cpu: *cpu, cause }),
    };
    Ok(OpenEvent { name, scale, counters: cpus.iter().map(open).collect::<Result<_, _>>()? })
}

impl EnergySource for PerfPmu {
    fn name(&self) -> &str {
        NAME
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        self.meters.iter_mut().map(OpenEvent::read).collect()
    }

    fn totals_uj(&mut self) -> Vec<Option<u64>> {
        let total = |event: &mut OpenEvent| match event.read() {
            Reading::CounterUj(total) => Some(total),
            _ => None,
        };
        self.meters.iter_mut().map(total).collect()
    }
}

#[cfg(test)]
pub mod fake;
#[cfg(test)]
mod tests;
