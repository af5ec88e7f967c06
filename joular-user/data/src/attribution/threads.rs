//! Turns thread times by place into one row per thread of a target, and finds for every slice of
//! time the claimant it counts for.

use std::collections::{BTreeMap, HashMap};

use joular_ebpf::abi::{Place as KeyPlace, ThreadKey};

use super::{
    category::category,
    window_report::{ProcessRef, ThreadRow},
    work::ProcessKey,
    work::{Claimant, Place, Slice},
};
use crate::{
    events::{ProcessInfo, SampleCount, ThreadCounts, ThreadTime, Window, decode::comm_text},
    model::{
        target_text::TargetText,
        units::{MicroJoules, Pid, Tid},
    },
};

/// A window's threads joined with the processes they belong to.
#[derive(Debug, Default)]
pub(super) struct ThreadJoin {
    pub(super) processes: Vec<ProcessRef>,
    pub(super) threads: Vec<ThreadRow>,
    pub(super) slices: Slices,
    /// Parallel to `processes`.
    keys: Vec<ProcessKey>,
    process_positions: HashMap<ProcessKey, usize>,
    kernel_threads: Vec<bool>,
    positions: HashMap<u64, usize>,
    claimants: HashMap<(Pid, Tid, u64), Claimant>,
    /// Groups of threads that belong to no target, by the identity in their keys.
    groups: HashMap<u64, Claimant>,
}

/// CPU time by who and where, in order.
pub(super) type Slices = BTreeMap<(Claimant, Place), Slice>;

impl ThreadJoin {
    /// Joins them; the order in which the kernel gave the threads does not matter.
    /// `name` says what a thread is called.
    pub(super) fn of(
        window: &Window,
        processes: &BTreeMap<ProcessKey, ProcessInfo>,
        profiler: Pid,
        mut name: impl FnMut(&ThreadTime) -> TargetText,
    ) -> Self {
        let mut times: Vec<&ThreadTime> = window.threads.iter().collect();
        times.sort_by_key(|time| (time.pid, time.tid, time.start_boottime_ns, time.socket, time.core));
        let mut join = Self::default();
        for time in times {
            let claimant = match process_of(processes, time) {
                Some(process) if process.is_target => Claimant::Thread(join.add(process, time, &mut name)),
                Some(process) if process.is_helper => Claimant::Profiler,
                _ if time.pid == profiler => Claimant::Profiler,
                _ if time.is_kernel => Claimant::Kernel,
                _ => Claimant::OtherProcesses,
            };
            join.claimants.insert((time.pid, time.tid, time.start_boottime_ns), claimant);
            if !matches!(claimant, Claimant::Thread(_)) {
                join.groups.insert(identity(time), claimant);
            }
            let place = Place { socket: time.socket, core: time.core };
            join.slices.entry((claimant, place)).or_default().add(slice(time));
        }
        join.add_cpus(window);
        join
    }

    /// Adds the CPUs' time that belongs to no thread.
    fn add_cpus(&mut self, window: &Window) {
        for cpu in &window.cpus {
            let place = Place { socket: cpu.socket, core: cpu.core };
            for (claimant, cpu_ns) in [(Claimant::Unslotted, cpu.unslotted_ns), (Claimant::Idle, cpu.idle_ns)] {
                if cpu_ns > 0 {
                    self.slices.entry((claimant, place)).or_default().add(Slice { cpu_ns, ..Slice::default() });
                }
            }
        }
    }

    fn add(&mut self, process: &ProcessInfo, time: &ThreadTime, name: impl FnOnce(&ThreadTime) -> TargetText) -> usize {
        let identity = identity(time);
        if let Some(position) = self.positions.get(&identity) {
            let row = &mut self.threads[*position];
            row.cpu_ns = row.cpu_ns.saturating_add(time.cpu_ns);
            row.samples = row.samples.saturating_add(time.samples.into());
            return *position;
        }
        // By the name that the JVM gave the kernel: programs may call their threads anything.
        let category = category(comm_text(&time.comm).raw(), Some(&process.runtime), time.is_kernel);
        let process_position = self.process_position(process);
        self.threads.push(ThreadRow {
            process: process_position,
            tid: time.tid,
            start_boottime_ns: time.start_boottime_ns,
            category,
            name: name(time),
            cpu_ns: time.cpu_ns,
            samples: u64::from(time.samples),
            energy: MicroJoules(0),
            by_bytes: MicroJoules(0),
        });
        self.kernel_threads.push(time.is_kernel);
        let position = self.threads.len() - 1;
        self.positions.insert(identity, position);
        position
    }

    fn process_position(&mut self, process: &ProcessInfo) -> usize {
        let key = (process.pid, process.start_boottime_ns);
        if let Some(position) = self.process_positions.get(&key) {
            return *position;
        }
        self.process_positions.insert(key, self.keys.len());
        self.keys.push(key);
        self.processes.push(ProcessRef {
            pid: process.pid,
            start_boottime_ns: process.start_boottime_ns,
            comm: process.comm.clone(),
        });
        self.keys.len() - 1
    }

    /// Who the counts of a thread are for: the same as its time. Counts of thread 0 are of nobody that is known.
    pub(super) fn claimant_of(&self, thread: &ThreadCounts) -> Claimant {
        if thread.tid == Tid(0) {
            return Claimant::Unslotted;
        }
        let key = (thread.pid, thread.tid, thread.start_boottime_ns);
        let group = if thread.is_kernel { Claimant::Kernel } else { Claimant::OtherProcesses };
        self.claimants.get(&key).copied().unwrap_or(group)
    }

    /// Row and process of the thread that a sample hit; `None` if it is not a target's.
    pub(super) fn position_of(&self, sample: &SampleCount) -> Option<(usize, ProcessKey)> {
        self.position_of_key(sample.thread_key)
    }

    /// The same by the thread's key.
    pub(super) fn position_of_key(&self, thread_key: u64) -> Option<(usize, ProcessKey)> {
        let position = *self.positions.get(&ThreadKey(thread_key).identity())?;
        Some((position, self.keys[self.threads[position].process]))
    }

    /// Who a thread counts for, by its key. One that had no time in the window belongs to no target.
    pub(super) fn claimant_of_key(&self, thread_key: u64) -> Claimant {
        let identity = ThreadKey(thread_key).identity();
        match self.positions.get(&identity) {
            Some(position) => Claimant::Thread(*position),
            None => self.groups.get(&identity).copied().unwrap_or(Claimant::OtherProcesses),
        }
    }

    pub(super) fn is_kernel_thread(&self, position: usize) -> bool {
        self.kernel_threads[position]
    }
}

/// Identity in the key of a thread.
fn identity(time: &ThreadTime) -> u64 {
    ThreadKey::new(time.tid.0, time.start_boottime_ns, KeyPlace::default()).identity()
}

fn slice(time: &ThreadTime) -> Slice {
    let corun_ns = time.corun_ns.min(time.cpu_ns);
    let corun_cycles = u128::from(time.cycles) * u128::from(corun_ns) / u128::from(time.cpu_ns.max(1));
    Slice {
        cpu_ns: time.cpu_ns,
        corun_ns,
        cycles: time.cycles,
        // No more than all of them, which is a u64.
        corun_cycles: u64::try_from(corun_cycles).unwrap_or(time.cycles),
        samples: time.samples.into(),
        switches: time.switches.into(),
    }
}

/// The process with this pid that was alive when the thread started: the last one that started no
/// later (to the 10 ms that /proc gives).
fn process_of<'a>(processes: &'a BTreeMap<ProcessKey, ProcessInfo>, time: &ThreadTime) -> Option<&'a ProcessInfo> {
    processes.range((time.pid, 0)..=(time.pid, time.start_boottime_ns)).next_back().map(|(_, process)| process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::CpuTimes;

    fn process(pid: u32, start: u64, is_target: bool) -> (ProcessKey, ProcessInfo) {
        let info = ProcessInfo { pid: Pid(pid), start_boottime_ns: start, is_target, ..ProcessInfo::default() };
        ((Pid(pid), start), info)
    }

    fn time(pid: u32, tid: u32, start: u64, socket: u32, cpu_ns: u64) -> ThreadTime {
        ThreadTime { tid: Tid(tid), pid: Pid(pid), socket, start_boottime_ns: start, cpu_ns, ..ThreadTime::default() }
    }

    fn joined(window: &Window, processes: &BTreeMap<ProcessKey, ProcessInfo>) -> ThreadJoin {
        ThreadJoin::of(window, processes, Pid(99), |time| comm_text(&time.comm))
    }

    /// Who had which CPU time, whatever the place.
    fn times(join: &ThreadJoin) -> Vec<(Claimant, u64)> {
        join.slices.iter().map(|((claimant, _), slice)| (*claimant, slice.cpu_ns)).collect()
    }

    #[test]
    fn a_thread_on_two_sockets_is_one_row_and_two_slices() {
        let processes = BTreeMap::from([process(1, 0, true)]);
        let window = Window { threads: vec![time(1, 5, 50, 1, 7), time(1, 5, 50, 0, 10)], ..Window::default() };
        let join = joined(&window, &processes);
        assert_eq!(join.threads.iter().map(|row| row.cpu_ns).collect::<Vec<_>>(), [17]);
        assert_eq!(times(&join), [(Claimant::Thread(0), 10), (Claimant::Thread(0), 7)]);
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let processes = BTreeMap::from([process(1, 0, true), process(1, 1_000, false)]);
        let window = Window { threads: vec![time(1, 1, 5, 0, 10), time(1, 1, 2_000, 0, 20)], ..Window::default() };
        let join = joined(&window, &processes);
        assert_eq!(times(&join), [(Claimant::Thread(0), 10), (Claimant::OtherProcesses, 20)]);
    }

    #[test]
    fn what_the_profiler_starts_for_itself_is_the_profiler_and_its_other_children_are_not() {
        let child = |pid: u32, is_target: bool, is_helper: bool| {
            let (key, info) = process(pid, 0, is_target);
            (key, ProcessInfo { parent: Pid(99), is_helper, ..info })
        };
        let processes = BTreeMap::from([
            child(5, false, true),
            child(6, true, false),
            child(7, false, false),
            process(8, 0, false),
        ]);
        let threads = [(5, 1), (6, 2), (7, 4), (8, 8)].map(|(pid, cpu_ns)| time(pid, pid, 1, 0, cpu_ns)).to_vec();
        let join = joined(&Window { threads, ..Window::default() }, &processes);
        let expected = [(Claimant::Thread(0), 2), (Claimant::OtherProcesses, 12), (Claimant::Profiler, 1)];
        assert_eq!(times(&join), expected);
    }

    #[test]
    fn every_other_time_is_claimed_by_its_group() {
        let cpu = CpuTimes { unslotted_ns: 8, idle_ns: 16, ..CpuTimes::default() };
        let window = Window {
            threads: vec![
                time(99, 99, 0, 0, 1),
                ThreadTime { is_kernel: true, ..time(2, 2, 0, 0, 2) },
                time(3, 3, 0, 0, 4),
            ],
            cpus: vec![cpu],
            ..Window::default()
        };
        let join = joined(&window, &BTreeMap::new());
        let found: Vec<u64> =
            Claimant::GROUPS.iter().map(|group| join.slices[&(*group, Place::default())].cpu_ns).collect();
        assert_eq!(found, [4, 2, 1, 8, 16]);
    }
}
