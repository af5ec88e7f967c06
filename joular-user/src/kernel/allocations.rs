//! Puts probes on the functions of JVMs that see allocations, and takes what they counted.
//!
//! A probe replaces an instruction of the JVM's code in memory by one that enters the kernel. It is the kernel that does
//! so, in a copy of that page which is the process's own, and that puts the instruction back when the probe is
//! closed or whoever opened it ends, however that comes.

use std::{collections::HashMap, num::NonZeroU32, path::Path};

use aya::{
    Ebpf,
    maps::{Array, HashMap as BpfMap, MapData},
    programs::{
        ProgramError, UProbe,
        uprobe::{UProbeAttachLocation, UProbeLinkId, UProbeScope},
    },
};
use joular_data::{
    events::{AllocationSample, Fate, ThreadAllocation},
    model::units::{Pid, Tid},
};
use joular_ebpf::abi::{AllocationKey, AllocationSlot, JvmAllocation, JvmCollections, ThreadKey};

use super::{
    bank_maps::{BankMaps, Capacity},
    banks::{map_error, take},
    error::KernelError,
    programs::typed,
};

/// Programs of a JVM's probes, by what they see.
const ALLOCATION_PROGRAMS: [&str; 3] = ["allocation_in_new_tlab", "allocation_outside_tlab", "allocating_thread_ended"];
const COLLECTION_PROGRAMS: [&str; 2] = ["collection_begins", "collection_ends"];
/// Bytes that a sample stands for at least, to begin with.
pub const FIRST_GAP_BYTES: u32 = 512 << 10;
/// Threads that allocate at about the same time.
pub(super) const MOST_THREADS: u32 = 1 << 16;
/// Objects whose fate is waited for, in all JVMs: those of the last seconds.
pub(super) const MOST_OBJECTS: u32 = 1 << 14;
const CAPACITY: Capacity = Capacity { first: 1 << 13, most: 1 << 18 };

/// Loads the programs.
pub(super) fn load(ebpf: &mut Ebpf) -> Result<(), KernelError> {
    for program in ALLOCATION_PROGRAMS.into_iter().chain(COLLECTION_PROGRAMS) {
        let failed = |source| KernelError::Program { operation: "loading", program, source: Box::new(source) };
        typed::<UProbe>(ebpf, program)?.load().map_err(failed)?;
    }
    Ok(())
}

/// Where probes go: offsets in a library's file.
#[derive(Clone, Copy, Debug)]
pub enum ProbeOffsets {
    /// In a new buffer, outside of one, the end of a thread.
    Allocation([u64; 3]),
    /// Begin and end.
    Collection([u64; 2]),
}

impl ProbeOffsets {
    fn programs(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let (programs, offsets) = match self {
            Self::Allocation(offsets) => (&ALLOCATION_PROGRAMS[..], &offsets[..]),
            Self::Collection(offsets) => (&COLLECTION_PROGRAMS[..], &offsets[..]),
        };
        programs.iter().copied().zip(offsets.iter().copied())
    }
}

/// Probes of all JVMs.
#[derive(Debug, Default)]
pub(super) struct Probes(HashMap<Pid, Vec<(&'static str, UProbeLinkId)>>);

impl Probes {
    /// Opens probes of a process, at offsets in its library's file. If one cannot be opened, it has none of them.
    pub(super) fn open(
        &mut self,
        ebpf: &mut Ebpf,
        pid: Pid,
        library: &Path,
        offsets: ProbeOffsets,
    ) -> Result<(), KernelError> {
        let scope = NonZeroU32::new(pid.0).map_or(UProbeScope::CallingProcess, UProbeScope::OneProcess);
        let mut opened = Vec::new();
        for (program, offset) in offsets.programs() {
            let probe: &mut UProbe = typed(ebpf, program)?;
            let link = probe.attach(UProbeAttachLocation::AbsoluteOffset(offset), library, scope);
            match link {
                Ok(link) => opened.push((program, link)),
                Err(source) => {
                    detach(ebpf, opened);
                    return Err(KernelError::Program { operation: "attaching", program, source: Box::new(source) });
                }
            }
        }
        self.0.entry(pid).or_default().append(&mut opened);
        Ok(())
    }

    /// Closes the probes of a process, if it has any.
    pub(super) fn close(&mut self, ebpf: &mut Ebpf, pid: Pid) {
        detach(ebpf, self.0.remove(&pid).unwrap_or_default());
    }
}

fn detach(ebpf: &mut Ebpf, links: Vec<(&'static str, UProbeLinkId)>) {
    for (program, link) in links {
        // It is closed already, or cannot be: there is nothing to do about it.
        let _: Result<(), ProgramError> = match typed::<UProbe>(ebpf, program) {
            Ok(probe) => probe.detach(link),
            Err(_) => Ok(()),
        };
    }
}

/// The maps of the probes' programs.
pub(super) struct Allocations {
    maps: BankMaps<AllocationKey, AllocationSlot>,
    jvms: BpfMap<MapData, u32, JvmAllocation>,
    collectors: BpfMap<MapData, u32, JvmCollections>,
    object_counts: BpfMap<MapData, u32, u32>,
    gap: Array<MapData, u32>,
}

impl Allocations {
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, KernelError> {
        let maps = BankMaps::new(ebpf, "ALLOCATED", CAPACITY)?;
        let mut taken = Self {
            maps,
            jvms: take(ebpf, "ALLOCATORS")?,
            collectors: take(ebpf, "COLLECTORS")?,
            object_counts: take(ebpf, "OBJECT_COUNTS")?,
            gap: take(ebpf, "ALLOCATION_GAP")?,
        };
        taken.set_gap(FIRST_GAP_BYTES)?;
        Ok(taken)
    }

    pub(super) fn set_gap(&mut self, bytes: u32) -> Result<(), KernelError> {
        self.gap.set(0, bytes, 0).map_err(|source| map_error("writing", "ALLOCATION_GAP", source))
    }

    pub(super) fn add_jvm(&mut self, pid: Pid, fields: JvmAllocation) -> Result<(), KernelError> {
        self.jvms.insert(pid.0, fields, 0).map_err(|source| map_error("writing", "ALLOCATORS", source))
    }

    pub(super) fn add_collector(&mut self, pid: Pid, jvm: JvmCollections) -> Result<(), KernelError> {
        self.collectors.insert(pid.0, jvm, 0).map_err(|source| map_error("writing", "COLLECTORS", source))
    }

    pub(super) fn remove_jvm(&mut self, pid: Pid) {
        let _ = self.jvms.remove(&pid.0);
        let _ = self.collectors.remove(&pid.0);
        let _ = self.object_counts.remove(&pid.0);
    }

    /// Takes what was counted in a bank that no program is meant to write to any more.
    pub(super) fn drain(&mut self, bank: u32) -> Result<Drained, KernelError> {
        let mut drained = Drained::default();
        self.maps.drain(bank, |key, slot| {
            let (tid, pid) = (Tid(ThreadKey(key.thread).tid()), Pid(slot.tgid));
            match key.stack {
                0 => drained.threads.push(ThreadAllocation {
                    tid,
                    pid,
                    thread_key: key.thread,
                    bytes: slot.bytes,
                    objects: slot.count.into(),
                }),
                stack => drained.take_samples((tid, pid), stack, key.thread, slot),
            }
        })?;
        drained.threads.sort_unstable_by_key(|thread| (thread.pid, thread.tid, thread.thread_key));
        drained.samples.sort_unstable_by_key(|sample| (sample.pid, sample.thread_key, sample.stack));
        drained.fates.sort_unstable_by_key(|fate| (fate.pid, fate.thread_key, fate.stack));
        Ok(drained)
    }
}

/// What probes counted in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// All that threads had ever allocated when they were last seen.
    pub threads: Vec<ThreadAllocation>,
    pub samples: Vec<AllocationSample>,
    /// What collections showed of samples of this window and of earlier ones.
    pub fates: Vec<Fate>,
}

impl Drained {
    fn take_samples(&mut self, (tid, pid): (Tid, Pid), stack: u64, thread_key: u64, slot: AllocationSlot) {
        let AllocationSlot { bytes, count, judged_bytes, survived_bytes, .. } = slot;
        if count > 0 {
            self.samples.push(AllocationSample { tid, pid, thread_key, stack, bytes, samples: count.into() });
        }
        if judged_bytes > 0 {
            self.fates.push(Fate { tid, pid, thread_key, stack, judged_bytes, survived_bytes });
        }
    }
}
