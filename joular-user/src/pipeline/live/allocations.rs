//! Follows what threads of JVMs allocate: puts probes into JVMs as they become known, and finds out at the end of each
//! window what each thread has allocated since the last one.
//!
//! The kernel's programs say what a thread had allocated when it last took a buffer, and the JVM's memory what it has
//! by now. A thread that has ended is in the former only.

use std::collections::{BTreeMap, HashMap};

use joular_data::{
    events::{Event, ThreadAllocation, ThreadTime, WindowAllocations, WindowCollections},
    model::units::{MonotonicNs, Pid, Tid},
};
use joular_ebpf::abi::{Place, ThreadKey};

use super::{LiveError, Run, gap::Gap};
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

#[derive(Debug)]
struct Jvm {
    key: ProcessKey,
    /// False: it has ended, or runs another program. Its threads are told of until the end of the window.
    is_followed: bool,
    /// When it was first looked at, in nanoseconds since boot.
    opened_boottime_ns: u64,
    /// What threads had allocated then.
    before: HashMap<Tid, u64>,
    /// What was reported of each thread so far, by the identity in its key.
    reported: HashMap<u64, u64>,
}

/// What is known of a thread at the end of a window.
#[derive(Clone, Copy, Debug)]
struct Seen {
    key: ThreadKey,
    start_boottime_ns: u64,
    bytes: u64,
    objects: u64,
}

impl Jvm {
    /// What each thread has allocated since it was last reported.
    fn news(&mut self, seen: impl Iterator<Item = Seen>) -> Vec<ThreadAllocation> {
        let mut news = Vec::new();
        for Seen { key, start_boottime_ns, bytes, objects } in seen {
            let tid = Tid(key.tid());
            let before = || match start_boottime_ns < self.opened_boottime_ns {
                // One that was not listed then has nothing to be compared with.
                true => self.before.get(&tid).copied().unwrap_or(bytes),
                false => 0,
            };
            let reported = self.reported.get(&key.identity()).copied().unwrap_or_else(before);
            self.reported.insert(key.identity(), bytes.max(reported));
            let bytes = bytes.saturating_sub(reported);
            if bytes > 0 {
                news.push(ThreadAllocation { tid, pid: self.key.0, thread_key: key.0, bytes, objects });
            }
        }
        news
    }
}

/// Why probes could not be opened. Of a process that has ended meanwhile nothing is said.
fn unless_ended(error: &KernelError) -> Result<(), String> {
    if error.is_of_ended_process() { Ok(()) } else { Err(error.to_string()) }
}

impl Run<'_> {
    /// Puts probes into a JVM if that is asked for and it has none. One that cannot have any is followed without: the
    /// bytes of its threads are known then, samples of CPU time tell paths, and nothing tells a class.
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
                "process {pid}: {why}: samples of CPU time tell where it allocates, and nothing tells of which classes"
            ));
            let (pid, start_boottime_ns) = process;
            self.consumer.take(&Event::AllocationsUnsampled { pid, start_boottime_ns })?;
        }
        if let Err(why) = self.open_collection_probes(process) {
            (self.live.notify)(&format!("process {pid}: {why}: its collections are not known"));
        }
        let opened_boottime_ns = clock::monotonic_now().0.saturating_add(clock::boottime_offset_ns());
        let before = self.allocated_by_thread(process).into_iter().collect();
        let jvm = Jvm { key: process, is_followed: true, opened_boottime_ns, before, reported: HashMap::new() };
        self.allocations.jvms.insert(pid, jvm);
        Ok(())
    }

    fn open_probes(&mut self, process: ProcessKey, sites: Sites) -> Result<(), String> {
        let Sites::At(sites, library) = sites else {
            return Err("the functions that tell of allocations are not found in its library".to_owned());
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

    /// A process has ended, or is no target any more. What it allocated in the running window is told with that.
    pub(super) fn forget_allocator(&mut self, pid: Pid) {
        self.live.banks.remove_allocator(pid);
        self.live.programs.close_probes(pid);
        self.collections.forget(pid);
        if let Some(jvm) = self.allocations.jvms.get_mut(&pid) {
            jvm.is_followed = false;
        }
    }

    /// What threads of a JVM have allocated by now.
    fn allocated_by_thread(&mut self, process: ProcessKey) -> BTreeMap<Tid, u64> {
        let is_namespaced = self.live.registry.target(process.0).is_some_and(|info| info.namespace_pid != process.0.0);
        let by_number = self.live.symbolizer.allocated_bytes(process);
        if !is_namespaced {
            return by_number.into_iter().map(|(number, bytes)| (Tid(number), bytes)).collect();
        }
        let threads = self.live.registry.numbered_threads(process.0);
        threads.into_iter().filter_map(|(tid, number)| Some((tid, *by_number.get(&number)?))).collect()
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
        let allocations = self.allocated(drained, times, end.since(self.start))?;
        self.consumer.take(&Event::Allocations(Box::new(allocations)))?;
        let (collections, lost) = self.collections.until(end);
        let collections = WindowCollections { collections, fates };
        if lost > 0 {
            self.lost("collection_dropped", lost);
        }
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
            let now = self.allocated_by_thread(jvm.key);
            threads.extend(jvm.news(seen(&times, &noted, &now).into_values()));
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

/// The threads of a process that ran, and what is known of what they have allocated, by identity.
fn seen(
    times: &[&ThreadTime],
    noted: &HashMap<u64, &ThreadAllocation>,
    now: &BTreeMap<Tid, u64>,
) -> BTreeMap<u64, Seen> {
    let mut latest: HashMap<Tid, u64> = HashMap::new();
    for time in times {
        let start = latest.entry(time.tid).or_default();
        *start = time.start_boottime_ns.max(*start);
    }
    let mut seen = BTreeMap::new();
    for time in times {
        let key = ThreadKey::new(time.tid.0, time.start_boottime_ns, Place(0));
        let noted = noted.get(&key.identity());
        // The memory has the last thread of a number.
        let is_last = latest.get(&time.tid) == Some(&time.start_boottime_ns);
        let by_now = now.get(&time.tid).filter(|_| is_last).copied();
        // Later than what was noted, and of the program that runs now.
        let Some(bytes) = by_now.or(noted.map(|thread| thread.bytes)) else { continue };
        let objects = noted.map_or(0, |thread| thread.objects);
        seen.insert(key.identity(), Seen { key, start_boottime_ns: time.start_boottime_ns, bytes, objects });
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENED: u64 = 10_000_000_000;

    fn time(tid: u32, start_boottime_ns: u64) -> ThreadTime {
        ThreadTime { pid: Pid(7), tid: Tid(tid), start_boottime_ns, ..ThreadTime::default() }
    }

    fn noted(tid: u32, start_boottime_ns: u64, bytes: u64) -> ThreadAllocation {
        let thread_key = ThreadKey::new(tid, start_boottime_ns, Place(3)).0;
        ThreadAllocation { tid: Tid(tid), pid: Pid(7), thread_key, bytes, objects: 1 }
    }

    fn news(jvm: &mut Jvm, times: &[ThreadTime], noted: &[ThreadAllocation], now: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let noted = noted.iter().map(|thread| (ThreadKey(thread.thread_key).identity(), thread)).collect();
        let now = now.iter().map(|(tid, bytes)| (Tid(*tid), *bytes)).collect();
        let seen = seen(&times.iter().collect::<Vec<_>>(), &noted, &now);
        jvm.news(seen.into_values()).iter().map(|thread| (thread.tid.0, thread.bytes)).collect()
    }

    fn jvm(before: &[(u32, u64)]) -> Jvm {
        let before = before.iter().map(|(tid, bytes)| (Tid(*tid), *bytes)).collect();
        Jvm { key: (Pid(7), 1), is_followed: true, opened_boottime_ns: OPENED, before, reported: HashMap::new() }
    }

    #[test]
    fn threads_are_reported_what_they_allocated_since_the_probes_came_and_nothing_twice() {
        let mut jvm = jvm(&[(1, 1_000)]);
        let (old, new) = (time(1, OPENED - 1), time(2, OPENED + 1));
        let times = [old.clone(), new.clone()];
        assert_eq!(news(&mut jvm, &times, &[], &[(1, 1_500), (2, 300)]), [(1, 500), (2, 300)]);
        // What was noted is older than what the memory has by now.
        let seen = [noted(1, OPENED - 1, 1_600)];
        assert_eq!(news(&mut jvm, &times, &seen, &[(1, 1_700), (2, 300)]), [(1, 200)]);
        // A thread that has ended is in no list.
        assert_eq!(news(&mut jvm, &[new], &[noted(2, OPENED + 1, 350)], &[(1, 1_700)]), [(2, 50)]);
        // One that did not run cannot have allocated.
        assert_eq!(news(&mut jvm, &[], &[], &[(1, 1_800)]), []);
    }

    #[test]
    fn a_thread_that_was_not_listed_when_the_probes_came_has_nothing_to_be_compared_with() {
        let mut jvm = jvm(&[]);
        let times = [time(1, OPENED - 1)];
        assert_eq!(news(&mut jvm, &times, &[], &[(1, 9_000)]), []);
        assert_eq!(news(&mut jvm, &times, &[], &[(1, 9_100)]), [(1, 100)]);
    }

    #[test]
    fn two_threads_that_had_one_number_are_told_apart() {
        let mut jvm = jvm(&[]);
        let (first, second) = (OPENED + 1_000_000_000, OPENED + 2_000_000_000);
        assert_eq!(news(&mut jvm, &[time(1, first)], &[], &[(1, 700)]), [(1, 700)]);
        let times = [time(1, first), time(1, second)];
        let mut found = news(&mut jvm, &times, &[noted(1, first, 900)], &[(1, 40)]);
        found.sort_unstable();
        assert_eq!(found, [(1, 40), (1, 200)]);
    }
}
