//! Fakes a machine with energy events in a temporary directory: what sysfs says of them, and
//! counters that a test advances.

use std::{
    collections::HashMap,
    fs, io,
    path::Path,
    sync::{Arc, Mutex},
};

use super::{
    PerfPmu, PerfPmuError,
    counters::{EventOnCpu, PerfCounter, PerfEvents},
};
use crate::energy::SourceKind;

/// As the kernel writes it: 2⁻³².
pub const SCALE: &str = "2.3283064365386962890625e-10";

/// `type` of PMU `power` and of `power_core`.
pub const POWER: u32 = 33;
pub const POWER_CORE: u32 = 34;

/// A PMU with these events (name, config), which these CPUs count.
pub fn pmu(sys_root: &Path, name: &str, pmu_type: u32, cpumask: &str, events: &[(&str, u8)]) {
    let directory = sys_root.join("bus/event_source/devices").join(name);
    fs::create_dir_all(directory.join("events")).unwrap();
    let write = |file: &str, text: &str| fs::write(directory.join(file), format!("{text}\n")).unwrap();
    write("type", &pmu_type.to_string());
    write("cpumask", cpumask);
    for (event, config) in events {
        write(&format!("events/{event}"), &format!("event={config:#04x}"));
        write(&format!("events/{event}.scale"), SCALE);
        write(&format!("events/{event}.unit"), "Joules");
    }
}

/// Gives an event another scale.
pub fn scale(sys_root: &Path, pmu: &str, event: &str, text: &str) {
    fs::write(sys_root.join(format!("bus/event_source/devices/{pmu}/events/{event}.scale")), text).unwrap();
}

/// [`PerfPmu::open`] with these events.
pub fn open(sys_root: &Path, is_intel: bool, events: &FakeEvents) -> Result<PerfPmu, PerfPmuError> {
    PerfPmu::open(sys_root, is_intel, events)
}

/// Places CPUs: (CPU, socket, core).
pub fn cpus(sys_root: &Path, places: impl IntoIterator<Item = (u32, u32, u32)>) {
    for (cpu, socket, core) in places {
        let topology = sys_root.join(format!("devices/system/cpu/cpu{cpu}/topology"));
        fs::create_dir_all(&topology).unwrap();
        fs::write(topology.join("physical_package_id"), format!("{socket}\n")).unwrap();
        fs::write(topology.join("core_id"), format!("{core}\n")).unwrap();
    }
}

/// Puts CPUs that are placed already on dies: (CPU, die).
pub fn dies(sys_root: &Path, dies: impl IntoIterator<Item = (u32, u32)>) {
    for (cpu, die) in dies {
        fs::write(sys_root.join(format!("devices/system/cpu/cpu{cpu}/topology/die_id")), format!("{die}\n")).unwrap();
    }
}

/// The counts of all events, shared with whoever has them open; `Err` is the
/// number of the error that opening or reading gives.
#[derive(Clone, Default)]
pub struct FakeEvents(Arc<Mutex<HashMap<EventOnCpu, Result<u64, i32>>>>);

impl FakeEvents {
    pub fn set(&self, pmu_type: u32, config: u64, cpu: u32, count: Result<u64, i32>) {
        self.0.lock().unwrap().insert(EventOnCpu { pmu_type, config, cpu }, count);
    }

    fn count(&self, event: EventOnCpu) -> io::Result<u64> {
        let counts = self.0.lock().unwrap();
        counts.get(&event).copied().unwrap_or(Ok(0)).map_err(io::Error::from_raw_os_error)
    }
}

struct FakeCounter(FakeEvents, EventOnCpu);

impl PerfEvents for FakeEvents {
    fn open(&self, event: EventOnCpu) -> io::Result<Box<dyn PerfCounter>> {
        self.count(event)?;
        Ok(Box::new(FakeCounter(self.clone(), event)))
    }
}

impl PerfCounter for FakeCounter {
    fn count(&mut self) -> io::Result<u64> {
        self.0.count(self.1)
    }
}

/// [`super::KIND`] of a machine that may count, and of a user who may not.
pub const ALLOWED: SourceKind =
    SourceKind { open: |options| super::open(options, &FakeEvents::default()), ..super::KIND };
pub const DENIED: SourceKind = SourceKind { open: |options| super::open(options, &Refusing), ..super::KIND };

struct Refusing;

impl PerfEvents for Refusing {
    fn open(&self, _event: EventOnCpu) -> io::Result<Box<dyn PerfCounter>> {
        Err(io::Error::from_raw_os_error(libc::EACCES))
    }
}
