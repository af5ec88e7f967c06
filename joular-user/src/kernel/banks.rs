//! Keeps the two banks of counts, and the boundary between windows.
//!
//! A boundary is published before its time. When it has passed and every CPU has been made
//! to account ([`super::Programs::pass_boundary`]), no program writes to the bank of the ended
//! window any more. That bank is then drained while the other one fills.

use std::collections::{BTreeMap, HashMap as StdMap};

use aya::{
    Ebpf,
    maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray},
};
use joular_data::{
    events::{CpuTimes, LossCount, SampleCount, ThreadTime, WindowCounters},
    model::units::{MonotonicNs, Pid, Tid},
};
use joular_ebpf::abi::{
    BankTimes, Boundary, CpuState, JvmAllocation, JvmCollections, Loss, RingShare, SampleKey, SampleKind, SampleSlot,
    ThreadKey, ThreadSlot, thread_flags,
};

use super::{
    allocations::{Allocations, Drained},
    bank_maps::BankMaps,
    counters::Counts,
    cpus::Cpu,
    error::KernelError,
    io::{self, Io},
    map_sizes::MapSizes,
    programs::LoadOptions,
};

/// Cause of a loss: samples of a kind that user space does not know.
const UNKNOWN_SAMPLE_KIND: &str = "unknown_sample_kind";

/// Cause of a loss: counts of threads that found no slot for their time.
const UNKNOWN_COUNTER_THREAD: &str = "unknown_counter_thread";

/// What a drained bank held.
#[derive(Debug, Default)]
pub struct BankContents {
    pub threads: Vec<ThreadTime>,
    /// `None` if nothing was asked for.
    pub counters: Option<WindowCounters>,
    /// The same.
    pub allocations: Option<Drained>,
    /// The same.
    pub io: Option<io::Drained>,
    pub samples: Vec<SampleCount>,
    pub cpus: Vec<CpuTimes>,
    /// What threads ran on CPUs that are no longer online: it is in `threads`, and not in `cpus`.
    pub gone_busy_ns: u64,
    pub losses: Vec<LossCount>,
}

impl BankContents {
    /// Processes and stacks of samples that stand for bytes.
    pub fn sampled_bytes(&self) -> Vec<(Pid, u64)> {
        let allocated = self.allocations.iter().flat_map(|drained| &drained.samples).map(|of| (of.pid, of.stack));
        let judged = self.allocations.iter().flat_map(|drained| &drained.fates).map(|of| (of.pid, of.stack));
        let moved = self.io.iter().flat_map(|drained| &drained.samples).map(|of| (of.pid, of.stack));
        allocated.chain(judged).chain(moved).collect()
    }
}

/// Handles to the maps that user space reads and writes during a run.
#[allow(missing_debug_implementations, reason = "aya's map types have none")]
pub struct Banks {
    boundary: Array<MapData, u64>,
    /// Bank of the window that is filling.
    bank: u32,
    threads: BankMaps<u64, ThreadSlot>,
    samples: BankMaps<SampleKey, SampleSlot>,
    counts: Option<Counts>,
    allocations: Option<Allocations>,
    io: Option<Io>,
    cpu: PerCpuArray<MapData, CpuState>,
    losses: PerCpuArray<MapData, u64>,
    targets: HashMap<MapData, u32, u32>,
    known_stacks: HashMap<MapData, u64, u8>,
    ring_shares: HashMap<MapData, u32, RingShare>,
    /// The kernel's counters only grow: their values when last read.
    earlier_times: [Vec<BankTimes>; 2],
    earlier_losses: BTreeMap<&'static str, u64>,
    /// CPUs that passed the boundary before: their times are whole.
    counted: Vec<u32>,
}

impl Banks {
    pub(super) fn take(ebpf: &mut Ebpf, sizes: &MapSizes, options: &LoadOptions) -> Result<Self, KernelError> {
        let (threads, samples) = (sizes.threads, sizes.samples);
        Ok(Self {
            boundary: take(ebpf, "BOUNDARY")?,
            bank: 0,
            threads: BankMaps::new(ebpf, "THREADS", threads)?,
            samples: BankMaps::new(ebpf, "SAMPLES", samples)?,
            counts: Counts::take(ebpf, &options.counters, threads)?,
            allocations: options.allocations.then(|| Allocations::take(ebpf, sizes.allocating_threads)).transpose()?,
            io: options.io.then(|| Io::take(ebpf, sizes.io_threads)).transpose()?,
            cpu: take(ebpf, "CPU")?,
            losses: take(ebpf, "LOSSES")?,
            targets: take(ebpf, "TARGETS")?,
            known_stacks: take(ebpf, "KNOWN_STACKS")?,
            ring_shares: take(ebpf, "RING_SHARES")?,
            earlier_times: [Vec::new(), Vec::new()],
            earlier_losses: BTreeMap::new(),
            counted: Vec::new(),
        })
    }

    /// Announces that the next window starts at `start`, which must still be
    /// ahead, and makes its bank the filling one.
    pub(super) fn publish_boundary(&mut self, start: MonotonicNs) -> Result<(), KernelError> {
        self.bank ^= 1;
        self.move_boundary(start)
    }

    /// Announces another start of the next window, while both are still ahead.
    pub(super) fn move_boundary(&mut self, start: MonotonicNs) -> Result<(), KernelError> {
        self.boundary
            .set(0, Boundary::new(start.0, self.bank).0, 0)
            .map_err(|source| map_error("writing", "BOUNDARY", source))
    }

    /// Empties the bank of the window that ended. Call it only after every CPU has passed the
    /// boundary. A CPU that came online during the window did not see its start, and one that went
    /// did not see its end: both are left out of the CPU times.
    pub fn drain_ended(&mut self, online: &[Cpu]) -> Result<BankContents, KernelError> {
        let ended = self.bank ^ 1;
        let mut contents = BankContents::default();
        let mut by_key = self.counts.is_some().then(StdMap::new);
        self.threads.drain(ended, |key, slot| {
            let time = thread_time(key, &slot);
            if let Some(by_key) = &mut by_key {
                by_key.insert(key, time.clone());
            }
            contents.threads.push(time);
        })?;
        let mut unknown = 0_u64;
        self.samples.drain(ended, |key, slot| match sample_count(&key, &slot) {
            Some(sample) => contents.samples.push(sample),
            None => unknown += u64::from(slot.count),
        })?;
        // Hash order is arbitrary: recordings and outputs want a fixed one.
        contents.threads.sort_unstable_by_key(|thread| {
            (thread.pid, thread.tid, thread.start_boottime_ns, thread.socket, thread.core)
        });
        contents
            .samples
            .sort_unstable_by_key(|sample| (sample.thread_key, sample.kind, sample.user_stack, sample.kernel_stack));
        (contents.cpus, contents.gone_busy_ns) = self.cpu_times(ended, online)?;
        contents.losses = self.new_losses()?;
        if let (Some(counts), Some(threads)) = (&mut self.counts, by_key) {
            let (counters, unknown) = counts.drain(ended, &threads)?;
            contents.counters = Some(counters);
            if unknown > 0 {
                contents.losses.push(LossCount { cause: UNKNOWN_COUNTER_THREAD.to_owned(), count: unknown });
            }
        }
        contents.allocations = self.allocations.as_mut().map(|allocations| allocations.drain(ended)).transpose()?;
        contents.io = self.io.as_mut().map(|io| io.drain(ended)).transpose()?;
        if unknown > 0 {
            contents.losses.push(LossCount { cause: UNKNOWN_SAMPLE_KIND.to_owned(), count: unknown });
        }
        Ok(contents)
    }

    /// Times of CPUs that are online, and the busy time of those that are not.
    fn cpu_times(&mut self, bank: u32, online: &[Cpu]) -> Result<(Vec<CpuTimes>, u64), KernelError> {
        let values = self.cpu.get(&0, 0).map_err(|source| map_error("reading", "CPU", source))?;
        let bank = bank as usize;
        let earlier = &mut self.earlier_times[bank];
        earlier.resize(values.len(), BankTimes::default());
        let mut cpus = Vec::with_capacity(online.len());
        for cpu in online {
            let at = cpu.id as usize;
            let (Some(now), Some(before)) = (values.get(at).map(|state| state.times[bank]), earlier.get(at)) else {
                continue;
            };
            if self.counted.contains(&cpu.id) {
                cpus.push(CpuTimes {
                    cpu: cpu.id,
                    socket: cpu.socket,
                    core: cpu.core,
                    busy_ns: now.busy_ns.saturating_sub(before.busy_ns),
                    idle_ns: now.idle_ns.saturating_sub(before.idle_ns),
                    unslotted_ns: now.unslotted_ns.saturating_sub(before.unslotted_ns),
                    switches: now.switches.saturating_sub(before.switches),
                });
            }
        }
        let mut gone_busy_ns = 0;
        for (id, (before, now)) in (0_u32..).zip(earlier.iter_mut().zip(values.iter())) {
            let now = now.times[bank];
            if online.iter().all(|cpu| cpu.id != id) {
                gone_busy_ns += now.busy_ns.saturating_sub(before.busy_ns);
            }
            *before = now;
        }
        self.counted = online.iter().map(|cpu| cpu.id).collect();
        Ok((cpus, gone_busy_ns))
    }

    fn new_losses(&mut self) -> Result<Vec<LossCount>, KernelError> {
        let mut losses = Vec::new();
        for loss in Loss::ALL {
            let values = self.losses.get(&(loss as u32), 0).map_err(|source| map_error("reading", "LOSSES", source))?;
            let now: u64 = values.iter().fold(0, |sum, count| sum.wrapping_add(*count));
            let before = self.earlier_losses.insert(loss.name(), now).unwrap_or(0);
            if now > before {
                losses.push(LossCount { cause: loss.name().to_owned(), count: now - before });
            }
        }
        Ok(losses)
    }

    /// Makes a process a target.
    pub fn add_target(&mut self, pid: Pid) -> Result<(), KernelError> {
        self.targets.insert(pid.0, 1, 0).map_err(|source| map_error("writing", "TARGETS", source))
    }

    /// Ends a process's being a target; a process that is not there is no error.
    pub fn remove_target(&mut self, pid: Pid) {
        let _ = self.targets.remove(&pid.0);
    }

    /// Has allocations of a JVM sampled, once there are probes.
    pub fn add_allocator(&mut self, pid: Pid, fields: JvmAllocation) -> Result<(), KernelError> {
        self.allocations.as_mut().map_or(Ok(()), |allocations| allocations.add_jvm(pid, fields))
    }

    /// Has collections of a JVM told of, once there are probes.
    pub fn add_collector(&mut self, pid: Pid, jvm: JvmCollections) -> Result<(), KernelError> {
        self.allocations.as_mut().map_or(Ok(()), |allocations| allocations.add_collector(pid, jvm))
    }

    /// Says for how many bytes a sample of allocation stands at least.
    pub fn set_allocation_gap(&mut self, bytes: u32) -> Result<(), KernelError> {
        self.allocations.as_mut().map_or(Ok(()), |allocations| allocations.set_gap(bytes))
    }

    /// Says for how many bytes a sample of moved bytes stands at least.
    pub fn set_io_gap(&mut self, bytes: u32) -> Result<(), KernelError> {
        self.io.as_mut().map_or(Ok(()), |io| io.set_gap(bytes))
    }

    /// Ends all that; a process that is not there is no error.
    pub fn remove_allocator(&mut self, pid: Pid) {
        if let Some(allocations) = &mut self.allocations {
            allocations.remove_jvm(pid);
        }
    }

    /// Processes that have used up their shares of the ring, as far as the kernel remembers them, and how many records
    /// of each were not sent.
    pub fn refused_records(&self) -> Vec<(Pid, u32)> {
        let shares = self.ring_shares.iter().flatten();
        shares.filter(|(_, share)| share.refused > 0).map(|(tgid, share)| (Pid(tgid), share.refused)).collect()
    }

    /// Makes the kernel send a stack's addresses again when it next occurs.
    pub fn forget_stack(&mut self, id: u64) {
        let _ = self.known_stacks.remove(&id);
    }
}

fn thread_time(key: u64, slot: &ThreadSlot) -> ThreadTime {
    let key = ThreadKey(key);
    ThreadTime {
        tid: Tid(key.tid()),
        pid: Pid(slot.tgid),
        socket: key.place().socket(),
        core: key.place().core(),
        start_boottime_ns: slot.start_boottime_ns,
        is_kernel: slot.flags & thread_flags::KERNEL_THREAD != 0,
        comm: slot.comm,
        cpu_ns: slot.cpu_ns,
        corun_ns: slot.corun_ns,
        cycles: slot.cycles,
        samples: slot.samples,
        switches: slot.switches,
    }
}

/// `None` if it is not known what was counted.
fn sample_count(key: &SampleKey, slot: &SampleSlot) -> Option<SampleCount> {
    Some(SampleCount {
        kind: SampleKind::decode(key.kind)?,
        tid: Tid(ThreadKey(key.thread).tid()),
        pid: Pid(slot.tgid),
        thread_key: key.thread,
        user_stack: key.user,
        kernel_stack: key.kernel,
        count: slot.count,
    })
}

pub(super) fn take<M: TryFrom<Map, Error = MapError>>(ebpf: &mut Ebpf, name: &'static str) -> Result<M, KernelError> {
    let map = ebpf.take_map(name).ok_or(KernelError::Missing { kind: "map", name })?;
    M::try_from(map).map_err(|source| map_error("opening", name, source))
}

pub(super) fn map_error(operation: &'static str, map: &'static str, source: MapError) -> KernelError {
    KernelError::Map { operation, map, source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use joular_ebpf::abi::{Place, StackId};

    use super::*;

    #[test]
    fn a_sample_is_of_the_kind_that_its_key_says() {
        let thread = ThreadKey::new(8, 0, Place::default());
        let slot = SampleSlot { count: 3, tgid: 7 };
        for kind in SampleKind::ALL {
            let key = SampleKey::new(kind, thread, StackId(5), StackId(6));
            let expected = SampleCount {
                kind,
                tid: Tid(8),
                pid: Pid(7),
                thread_key: thread.0,
                user_stack: 5,
                kernel_stack: 6,
                count: 3,
            };
            assert_eq!(sample_count(&key, &slot), Some(expected));
        }
        assert_eq!(sample_count(&SampleKey { kind: 99, ..SampleKey::default() }, &slot), None);
    }
}
