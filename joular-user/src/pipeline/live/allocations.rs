//! Follows what threads of JVMs allocate: puts probes into JVMs as they become known, and finds out at the end of each
//! window what each thread has allocated since the last one.
//!
//! The kernel's programs say what a thread had allocated when it last took a buffer, and the JVM's memory what it has
//! by now. A thread that has ended is in the former only.

use std::collections::HashMap;

use joular_data::{
    events::{Event, ThreadAllocation, ThreadTime, WindowAllocations, WindowCollections},
    model::units::{MonotonicNs, Pid, Tid},
};
use joular_ebpf::abi::{Place, ThreadKey};

use super::{
    LiveError, Run,
    allocating::{Jvm, Known, seen},
    collections::Told,
    gap::Gap,
};
use crate::{
    clock,
    kernel::{
        KernelError,
        allocations::{Drained, FIRST_GAP_BYTES},
        probes::ProbeOffsets,
    },
    symbols::{ProcessKey, allocation::Sites},
};

/// JVMs whose allocations are followed.
#[derive(Debug)]
pub(super) struct Allocations {
    jvms: HashMap<Pid, Jvm>,
    /// Those that have not said yet where their allocations can be seen.
    late: Vec<ProcessKey>,
    gap: Gap,
}

impl Default for Allocations {
    fn default() -> Self {
        Self { jvms: HashMap::new(), late: Vec::new(), gap: Gap::new(FIRST_GAP_BYTES) }
    }
}

/// Why probes could not be opened. Of a process that has ended meanwhile nothing is said.
fn unless_ended(error: &KernelError) -> Result<(), String> {
    if error.is_of_ended_process() { Ok(()) } else { Err(error.to_string()) }
}

impl Run<'_> {
    /// Puts probes into a JVM if that is asked for and it has none. One that cannot have any is followed without: the
    /// bytes of its threads are known then, samples of CPU time show paths, and nothing shows a class.
    pub(super) fn see_allocations(&mut self, process: ProcessKey) -> Result<(), LiveError> {
        let pid = process.0;
        let is_known = self.allocations.jvms.get(&pid).is_some_and(|jvm| jvm.key == process && jvm.is_followed);
        let is_wanted = self.live.programs.sees_allocations() && self.live.registry.target(pid).is_some();
        if !is_wanted || is_known {
            return Ok(());
        }
        let sites = self.live.symbolizer.allocation_sites(process);
        match sites {
            Sites::Gone => return Ok(()),
            Sites::Late => {
                self.allocations.late.push(process);
                return Ok(());
            }
            Sites::At(..) | Sites::Unknown => {}
        }
        if let Err(why) = self.open_probes(process, sites) {
            (self.live.notify)(&format!(
                "process {pid}: {why}: where it allocates is inferred from samples of CPU time, and classes are unknown"
            ));
            let (pid, start_boottime_ns) = process;
            self.consumer.take(&Event::AllocationsUnsampled { pid, start_boottime_ns })?;
        }
        if let Err(why) = self.open_collection_probes(process) {
            (self.live.notify)(&format!("process {pid}: {why}: its collections are not known"));
        }
        let opened_boottime_ns = clock::monotonic_now().0.saturating_add(clock::boottime_offset_ns());
        let is_namespaced = self.live.registry.target(pid).is_some_and(|info| info.namespace_pid != pid.0);
        let threads = self.threads_now(process, is_namespaced);
        let jvm = Jvm { key: process, is_followed: true, is_namespaced, is_read: false, opened_boottime_ns, threads };
        self.allocations.jvms.insert(pid, jvm);
        Ok(())
    }

    fn open_probes(&mut self, process: ProcessKey, sites: Sites) -> Result<(), String> {
        let Sites::At(sites, library) = sites else {
            return Err("the functions that report allocations were not found in its library".to_owned());
        };
        let at = sites.functions;
        let offsets = ProbeOffsets::Allocation([at.in_new_buffer, at.outside_buffer, at.thread_ended]);
        let opened = self.live.banks.add_allocator(process.0, sites.fields);
        let opened = opened.and_then(|()| self.live.programs.open_probes(process.0, &library, offsets));
        opened.or_else(|error| {
            self.live.banks.remove_allocator(process.0);
            unless_ended(&error)
        })
    }

    fn open_collection_probes(&mut self, process: ProcessKey) -> Result<(), String> {
        let Some((sites, library)) = self.live.symbolizer.collection_sites(process) else {
            return Err("its library has no static probes".to_owned());
        };
        let offsets = ProbeOffsets::Collection([sites.begin_offset, sites.end_offset]);
        let opened = self.live.banks.add_collector(process.0, sites.jvm);
        let opened = opened.and_then(|()| self.live.programs.open_probes(process.0, &library, offsets));
        opened.or_else(|error| unless_ended(&error))
    }

    /// A process has ended, or is not a target any more. What it allocated in the running window is told with that.
    pub(super) fn forget_allocator(&mut self, pid: Pid) {
        self.live.banks.remove_allocator(pid);
        self.live.programs.close_probes(pid);
        self.collections.forget(pid);
        if let Some(jvm) = self.allocations.jvms.get_mut(&pid) {
            jvm.is_followed = false;
        }
    }

    /// The threads of a JVM, and what they have allocated by now.
    fn threads_now(&mut self, process: ProcessKey, is_namespaced: bool) -> HashMap<Tid, Known> {
        let by_number = self.live.symbolizer.allocated_bytes(process, None).unwrap_or_default();
        let numbers = match is_namespaced {
            true => self.live.registry.numbered_threads(process.0),
            false => by_number.keys().map(|number| (Tid(*number), *number)).collect(),
        };
        let known = |(tid, number)| {
            let bytes = Some(*by_number.get(&number)?);
            Some((tid, Known { identity: None, number, bytes }))
        };
        numbers.into_iter().filter_map(known).collect()
    }

    /// Sees to it that the numbers of threads that ran are known, each of which is asked for once, and returns them.
    /// `None`: there are new threads.
    fn number_threads(&self, jvm: &mut Jvm, times: &[&ThreadTime]) -> Option<Vec<u32>> {
        let (mut numbers, mut is_any_new) = (Vec::with_capacity(times.len()), false);
        for time in times {
            if let Some(known) = jvm.known(time) {
                numbers.push(known.number);
                continue;
            }
            is_any_new = true;
            let number = match jvm.is_namespaced {
                // One that has ended is in no list.
                true => self.live.registry.thread_number(time.pid, time.tid),
                false => Some(time.tid.0),
            };
            if let Some(number) = number {
                let identity = ThreadKey::new(time.tid.0, time.start_boottime_ns, Place(0)).identity();
                jvm.threads.insert(time.tid, Known { identity: Some(identity), number, bytes: None });
            }
        }
        (!is_any_new).then_some(numbers)
    }

    /// Hands on what was allocated in the window that ends, and its collections.
    pub(super) fn hand_on_allocations(
        &mut self,
        drained: Drained,
        times: &[ThreadTime],
        end: MonotonicNs,
    ) -> Result<(), LiveError> {
        for process in std::mem::take(&mut self.allocations.late) {
            self.see_allocations(process)?;
        }
        let fates = drained.fates.clone();
        if !drained.ends.is_empty() {
            self.consumer.take(&Event::BufferEnds(drained.ends.clone()))?;
        }
        let allocations = self.allocated(drained, times, end.since(self.start))?;
        self.consumer.take(&Event::Allocations(Box::new(allocations)))?;
        let Told { collections, lost, greedy } = self.collections.until(end);
        let collections = WindowCollections { collections, fates };
        if lost > 0 {
            self.lost("collection_dropped", lost);
        }
        self.name_greedy(greedy);
        Ok(self.consumer.take(&Event::Collections(Box::new(collections)))?)
    }

    /// What was allocated in the window that has ended, of which these are the threads.
    fn allocated(
        &mut self,
        drained: Drained,
        times: &[ThreadTime],
        window_ns: u64,
    ) -> Result<WindowAllocations, LiveError> {
        let mut by_process: HashMap<Pid, Vec<&ThreadTime>> = HashMap::new();
        for time in times.iter().filter(|time| self.allocations.jvms.contains_key(&time.pid)) {
            by_process.entry(time.pid).or_default().push(time);
        }
        let noted: HashMap<u64, &ThreadAllocation> =
            drained.threads.iter().map(|thread| (ThreadKey(thread.thread_key).identity(), thread)).collect();
        let mut threads = Vec::new();
        for (pid, times) in by_process {
            let Some(mut jvm) = self.allocations.jvms.remove(&pid) else { continue };
            let ran = self.number_threads(&mut jvm, &times).filter(|_| jvm.is_read);
            let by_number = self.live.symbolizer.allocated_bytes(jvm.key, ran);
            jvm.is_read = by_number.is_some();
            let now = by_number.as_ref().map(|by_number| jvm.of_threads(&times, by_number)).unwrap_or_default();
            threads.extend(jvm.news(seen(&times, &noted, &now).into_values()));
            if let Some(by_number) = by_number {
                jvm.forget_ended(&times, &by_number, |tid| self.live.registry.has_thread(pid, tid));
            }
            self.allocations.jvms.insert(pid, jvm);
        }
        threads.sort_by_key(|thread| (thread.pid, thread.tid, thread.thread_key));
        self.adapt_gap(&drained, window_ns)?;
        self.allocations.jvms.retain(|_, jvm| jvm.is_followed);
        Ok(WindowAllocations { threads, samples: drained.samples })
    }

    /// Makes samples stand for more when there are many, and for less when there are few.
    fn adapt_gap(&mut self, drained: &Drained, window_ns: u64) -> Result<(), LiveError> {
        let samples = drained.samples.iter().map(|sample| sample.samples).sum();
        if let Some(bytes) = self.allocations.gap.after(samples, window_ns) {
            self.live.banks.set_allocation_gap(bytes)?;
        }
        Ok(())
    }
}
