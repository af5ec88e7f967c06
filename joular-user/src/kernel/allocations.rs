//! Takes what probes in JVMs counted of their allocations and collections.

use aya::{
    Ebpf,
    maps::{Array, HashMap as BpfMap, MapData},
};
use joular_data::{
    events::{AllocationSample, BufferEnds, Fate, ThreadAllocation},
    model::units::{Pid, Tid},
};
use joular_ebpf::abi::{AllocatingThread, AllocationKey, AllocationSlot, JvmAllocation, JvmCollections, ThreadKey};

use super::{
    bank_maps::{BankMaps, Capacity},
    banks::{map_error, take},
    error::KernelError,
};

/// Bytes that a sample stands for at least, to begin with.
pub const FIRST_GAP_BYTES: u32 = 512 << 10;
/// Objects whose fate is waited for, in all JVMs: those of the last seconds.
pub(super) const MOST_OBJECTS: u32 = 1 << 14;
/// Of samples.
const CAPACITY: Capacity = Capacity { first: 1 << 13, most: 1 << 18 };

/// The maps of the probes' programs.
pub(super) struct Allocations {
    /// What threads allocated: they have their places, however many samples there are.
    threads: BankMaps<u64, AllocatingThread>,
    samples: BankMaps<AllocationKey, AllocationSlot>,
    jvms: BpfMap<MapData, u32, JvmAllocation>,
    collectors: BpfMap<MapData, u32, JvmCollections>,
    object_counts: BpfMap<MapData, u32, u32>,
    gap: Array<MapData, u32>,
}

impl Allocations {
    pub(super) fn take(ebpf: &mut Ebpf, threads: Capacity) -> Result<Self, KernelError> {
        let mut taken = Self {
            threads: BankMaps::new(ebpf, "ALLOCATING_THREADS", threads)?,
            samples: BankMaps::new(ebpf, "ALLOCATED", CAPACITY)?,
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
        self.threads.drain(bank, |key, slot| drained.take_thread(key, slot))?;
        self.samples.drain(bank, |key, slot| drained.take_samples(key, slot))?;
        drained.threads.sort_unstable_by_key(|thread| (thread.pid, thread.tid, thread.thread_key));
        drained.ends.sort_unstable_by_key(|ends| (ends.pid, ends.thread_key));
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
    pub ends: Vec<BufferEnds>,
    pub samples: Vec<AllocationSample>,
    /// What collections showed of samples of this window and of earlier ones.
    pub fates: Vec<Fate>,
}

impl Drained {
    fn take_thread(&mut self, thread_key: u64, AllocatingThread { bytes, tgid, objects, ends }: AllocatingThread) {
        let (tid, pid) = (Tid(ThreadKey(thread_key).tid()), Pid(tgid));
        self.threads.push(ThreadAllocation { tid, pid, thread_key, bytes, objects: objects.into() });
        if ends.seen > 0 {
            let (seen, foreseen, by_chance) = (ends.seen.into(), ends.foreseen.into(), ends.by_chance);
            self.ends.push(BufferEnds { pid, thread_key, seen, foreseen, by_chance });
        }
    }

    fn take_samples(&mut self, AllocationKey { thread: thread_key, stack }: AllocationKey, slot: AllocationSlot) {
        let AllocationSlot { bytes, samples, tgid, judged_bytes, survived_bytes } = slot;
        let (tid, pid) = (Tid(ThreadKey(thread_key).tid()), Pid(tgid));
        if samples > 0 {
            self.samples.push(AllocationSample { tid, pid, thread_key, stack, bytes, samples: samples.into() });
        }
        if judged_bytes > 0 {
            self.fates.push(Fate { tid, pid, thread_key, stack, judged_bytes, survived_bytes });
        }
    }
}
