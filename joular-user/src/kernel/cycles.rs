//! Opens the counters that the programs read cycles from: one event per CPU, its descriptor in the
//! map `CYCLES`.
//!
//! They are pinned to the hardware: a counter that took turns with others would count part of the
//! time only. Where there is no room for one, the programs cannot read it, and count each slice
//! without cycles as a loss.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd},
};

use aya::{
    Ebpf,
    maps::{Map, MapData},
};
use perf_event::{
    Builder, Counter,
    events::{Event, Hardware, Software},
};

use super::{
    cpus::{Cpu, Life},
    error::KernelError,
};

/// What is counted in addition to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleEvent {
    /// Unhalted cycles of the hardware.
    Cycles,
    /// Nanoseconds of the kernel's clock, which every machine has: for tests.
    Clock,
}

const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;

/// The members of `union bpf_attr` for one element (include/uapi/linux/bpf.h).
#[repr(C)]
#[derive(Debug, Default)]
struct ElementAttr {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Open counters, by their CPU.
pub(super) struct CycleCounters {
    event: CycleEvent,
    /// The kernel takes the events out of the map when this is closed.
    map: MapData,
    counters: Vec<(Life, Counter)>,
}

impl CycleCounters {
    /// No counter is open yet.
    pub(super) fn new(ebpf: &mut Ebpf, event: CycleEvent) -> Result<Self, KernelError> {
        let Some(Map::PerfEventArray(map)) = ebpf.take_map("CYCLES") else {
            return Err(KernelError::Missing { kind: "map", name: "CYCLES" });
        };
        Ok(Self { event, map, counters: Vec::new() })
    }

    /// Opens counters of CPUs that came online, closes those of others. The
    /// programs read a counter from now on.
    pub(super) fn follow(&mut self, lives: &[Life]) -> Result<(), KernelError> {
        self.counters.retain(|(life, _)| lives.contains(life));
        for life in lives {
            if self.counters.iter().any(|(known, _)| known == life) {
                continue;
            }
            let cpu = life.cpu;
            match open(self.event, cpu) {
                Ok(counter) => {
                    put(self.map.fd().as_fd(), cpu, &counter)
                        .map_err(|source| KernelError::CycleCounter { cpu, source })?;
                    self.counters.push((*life, counter));
                }
                // Gone again, or never there.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {}
                Err(source) => return Err(KernelError::CycleCounter { cpu, source }),
            }
        }
        Ok(())
    }
}

/// Whether every one of these CPUs has a counter of cycles to spare. The CPUs of hybrid processors
/// need not be alike.
pub fn can_count(online: &[Cpu]) -> bool {
    online.iter().all(|cpu| open(CycleEvent::Cycles, cpu.id).is_ok())
}

fn open(event: CycleEvent, cpu: u32) -> io::Result<Counter> {
    match event {
        CycleEvent::Cycles => open_event(Hardware::CPU_CYCLES, cpu),
        CycleEvent::Clock => open_event(Software::CPU_CLOCK, cpu),
    }
}

/// Counts what runs on a CPU in user and kernel mode; a hypervisor's own cycles
/// are nobody's here.
pub(super) fn open_event(event: impl Event, cpu: u32) -> io::Result<Counter> {
    let mut builder = Builder::new(event);
    builder.any_pid().one_cpu(cpu as usize).include_kernel().exclude_hv(true).pinned(true).enabled(true);
    builder.build()
}

pub(super) fn put(map: BorrowedFd<'_>, index: u32, counter: &Counter) -> io::Result<()> {
    let event = counter.as_raw_fd();
    let mut attr = ElementAttr {
        map_fd: u32::try_from(map.as_raw_fd()).unwrap_or(u32::MAX),
        key: (&raw const index) as u64,
        value: (&raw const event) as u64,
        ..ElementAttr::default()
    };
    // SAFETY: key and value point to live integers of the map's sizes, 4 bytes
    // each, and the attribute is as large as said.
    let result = unsafe { libc::syscall(libc::SYS_bpf, BPF_MAP_UPDATE_ELEM, &raw mut attr, size_of::<ElementAttr>()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
