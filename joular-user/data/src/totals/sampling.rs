//! Keeps what the error of sampling of a run's methods needs, by thread, so that the terminal shows
//! the intervals that a report of the data set shows.
//!
//! Memory is bounded. Threads of a process that has ended are closed: of their methods, sums over all such threads are kept.
//! Where there are too many threads or methods of threads, all threads so far are closed, and what follows counts as of
//! other threads. That changes nothing but the few samples
//! that are added to each thread ([`crate::sampling`]), once more for each time.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::methods::MethodKey;
use crate::{
    attribution::window_report::{BranchRow, ThreadRow, WindowReport},
    model::units::{MicroJoules, Pid, Tid},
    sampling::{Group, Interval, Sampled, Threads},
    stacks::{FrameId, StackTable},
};

/// Methods of threads before all are closed, about 10 MB.
const MAX_PARTS: usize = 131_072;
/// The same for threads.
const MAX_THREADS: usize = 65_536;
/// Methods of closed threads before those are forgotten whose figures are not known any more.
const MAX_CLOSED: usize = 2 * super::MAX_ENTRIES;

/// A process and a thread, each with its start.
type ThreadKey = (Pid, u64, Tid, u64);

/// A method by the hash of what identifies it, which takes less space than names.
type MethodId = u64;

/// The samples of a run by method and thread.
#[derive(Debug)]
pub struct MethodSampling {
    numbers: HashMap<ThreadKey, u32>,
    threads: Vec<Sampled>,
    /// Numbers that threads had which are closed.
    free: Vec<u32>,
    parts: BTreeMap<(MethodId, u32), Sampled>,
    closed_threads: Threads,
    closed: HashMap<MethodId, (Group, MicroJoules)>,
    limits: (usize, usize),
}

impl Default for MethodSampling {
    fn default() -> Self {
        Self::with_limits(MAX_THREADS, MAX_PARTS)
    }
}

impl MethodSampling {
    fn with_limits(threads: usize, parts: usize) -> Self {
        Self {
            numbers: HashMap::new(),
            threads: Vec::new(),
            free: Vec::new(),
            parts: BTreeMap::new(),
            closed_threads: Threads::default(),
            closed: HashMap::new(),
            limits: (threads, parts),
        }
    }

    /// Adds a window's samples. `kept` gives the methods whose figures are still known.
    pub(super) fn window(
        &mut self,
        report: &WindowReport,
        stacks: &StackTable,
        kept: impl FnOnce() -> HashSet<MethodId>,
    ) {
        let mut ids: HashMap<FrameId, MethodId> = HashMap::new();
        let mut numbers: Vec<Option<u32>> = vec![None; report.threads.len()];
        for branch in report.branches.iter().filter(|branch| branch.samples > 0) {
            let (Some(leaf), Some(number)) =
                (stacks.leaf_method(branch.branch), self.number(report, branch, &mut numbers))
            else {
                continue;
            };
            let id = *ids.entry(leaf).or_insert_with(|| id_of(&MethodKey::of(stacks.frame(leaf))));
            let sampled = Sampled::of(branch.by_samples(), branch.samples);
            self.parts.entry((id, number)).or_default().plus(&sampled);
            if let Some(thread) = self.threads.get_mut(number as usize) {
                thread.plus(&sampled);
            }
        }
        let is_full = self.is_full();
        if is_full {
            self.close();
        }
        if is_full || self.closed.len() > MAX_CLOSED {
            let kept = kept();
            self.closed.retain(|id, _| kept.contains(id));
        }
    }

    /// Closes the threads of processes that have ended.
    pub(super) fn processes_ended(&mut self, processes: &HashSet<(Pid, u64)>) {
        let mut ended = HashSet::new();
        self.numbers.retain(|(pid, start, ..), number| {
            let has_ended = processes.contains(&(*pid, *start));
            if has_ended {
                ended.insert(*number);
            }
            !has_ended
        });
        let (threads, closed) = (&self.threads, &mut self.closed);
        self.parts.retain(|(id, number), part| {
            let ends = ended.contains(number);
            if ends && let Some(thread) = threads.get(*number as usize) {
                see(closed, *id, thread, part);
            }
            !ends
        });
        for number in ended {
            if let Some(thread) = self.threads.get_mut(number as usize) {
                self.closed_threads.add(&std::mem::take(thread));
                self.free.push(number);
            }
        }
    }

    /// Notes that a thread's light windows were divided anew: what a method gets, and had before, and by how much its squares
    /// grow. Samples stand for more or less then, and do not become more.
    pub(super) fn divided(
        &mut self,
        thread: ThreadKey,
        method: &MethodKey,
        (gets, had): (MicroJoules, MicroJoules),
        squares: f64,
    ) {
        let Some(number) = self.number_of(thread) else { return };
        let change = |sum: &mut Sampled| {
            sum.energy = MicroJoules(sum.energy.saturating_add(gets).0.saturating_sub(had.0));
            sum.squares = (sum.squares + squares).max(0.0);
        };
        change(self.parts.entry((id_of(method), number)).or_default());
        self.threads.get_mut(number as usize).into_iter().for_each(change);
    }

    fn is_full(&self) -> bool {
        self.threads.len() - self.free.len() > self.limits.0 || self.parts.len() > self.limits.1
    }

    /// The number of a branch's thread, which `known` has if the window had it before.
    fn number(&mut self, report: &WindowReport, branch: &BranchRow, known: &mut [Option<u32>]) -> Option<u32> {
        if known.get(branch.thread)?.is_none() {
            let ThreadRow { process, tid, start_boottime_ns, .. } = report.threads.get(branch.thread)?;
            let process = report.processes.get(*process)?;
            let key = (process.pid, process.start_boottime_ns, *tid, *start_boottime_ns);
            *known.get_mut(branch.thread)? = self.number_of(key);
        }
        known.get(branch.thread).copied().flatten()
    }

    fn number_of(&mut self, key: ThreadKey) -> Option<u32> {
        if let Some(known) = self.numbers.get(&key) {
            return Some(*known);
        }
        let number = match self.free.pop() {
            Some(free) => free,
            None => {
                let next = u32::try_from(self.threads.len()).ok()?;
                self.threads.push(Sampled::default());
                next
            }
        };
        self.numbers.insert(key, number);
        Some(number)
    }

    fn close(&mut self) {
        for ((id, number), part) in std::mem::take(&mut self.parts) {
            if let Some(thread) = self.threads.get(number as usize) {
                see(&mut self.closed, id, thread, &part);
            }
        }
        self.threads.drain(..).for_each(|thread| self.closed_threads.add(&thread));
        self.numbers.clear();
        self.free.clear();
    }

    /// Intervals of the run so far.
    pub fn intervals(&self) -> MethodIntervals<'_> {
        let mut threads = self.closed_threads;
        self.threads.iter().for_each(|thread| threads.add(thread));
        MethodIntervals { sampling: self, threads }
    }
}

/// Adds what a method has of a thread that is closed.
fn see(closed: &mut HashMap<MethodId, (Group, MicroJoules)>, id: MethodId, thread: &Sampled, part: &Sampled) {
    let (group, energy) = closed.entry(id).or_default();
    group.see(thread, part);
    *energy = energy.saturating_add(part.energy);
}

/// The 95 % intervals of methods.
pub struct MethodIntervals<'a> {
    sampling: &'a MethodSampling,
    threads: Threads,
}

impl MethodIntervals<'_> {
    /// That of a method with this self energy.
    pub fn of(&self, method: &MethodKey, energy: MicroJoules) -> Interval {
        let id = id_of(method);
        let (mut group, mut sampled) = self.sampling.closed.get(&id).copied().unwrap_or_default();
        for ((_, number), part) in self.sampling.parts.range((id, 0)..=(id, u32::MAX)) {
            if let Some(thread) = self.sampling.threads.get(*number as usize) {
                group.see(thread, part);
                sampled = sampled.saturating_add(part.energy);
            }
        }
        self.threads.interval(&group, energy, sampled)
    }
}

pub(super) fn id_of(method: &MethodKey) -> MethodId {
    let mut hasher = DefaultHasher::new();
    method.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{self, SMALL};

    /// Intervals of all methods after some windows, with threads closed after one of them.
    fn intervals(windows: u64, closed_after: Option<u64>) -> Vec<(MicroJoules, Interval)> {
        let (mut sampling, mut stacks) = (MethodSampling::default(), StackTable::default());
        let mut energies: BTreeMap<MethodKey, MicroJoules> = BTreeMap::new();
        for index in 0..windows {
            let report = fixture::window(SMALL, &mut stacks, index);
            sampling.window(&report, &stacks, HashSet::new);
            for row in &report.methods {
                let energy = energies.entry(MethodKey::of(stacks.frame(row.method))).or_default();
                *energy = energy.saturating_add(row.own.energy);
            }
            if closed_after == Some(index) {
                sampling.close();
            }
        }
        let of_run = sampling.intervals();
        energies.iter().map(|(key, energy)| (*energy, of_run.of(key, *energy))).collect()
    }

    #[test]
    fn threads_that_were_closed_count_as_before() {
        let (whole, closed) = (intervals(40, None), intervals(40, Some(19)));
        assert!(whole.iter().filter(|(_, interval)| !interval.is_exact()).count() > 3, "{whole:?}");
        for ((energy, whole), (_, closed)) in whole.iter().zip(&closed) {
            let ratio = closed.deviation() / whole.deviation();
            assert!((0.9..1.1).contains(&ratio), "{energy:?}: {whole:?} {closed:?}");
        }
    }

    #[test]
    fn threads_of_a_process_that_has_ended_count_as_before_and_take_no_room() {
        let (mut whole, mut ended) = (MethodSampling::default(), MethodSampling::default());
        let mut stacks = StackTable::default();
        let mut methods: Vec<MethodKey> = Vec::new();
        let mut processes: HashSet<(Pid, u64)> = HashSet::new();
        for index in 0..20 {
            let report = fixture::window(SMALL, &mut stacks, index);
            whole.window(&report, &stacks, HashSet::new);
            ended.window(&report, &stacks, HashSet::new);
            methods.extend(report.methods.iter().map(|row| MethodKey::of(stacks.frame(row.method))));
            processes.extend(report.processes.iter().map(|process| (process.pid, process.start_boottime_ns)));
        }
        ended.processes_ended(&processes);
        assert!(ended.parts.is_empty() && ended.numbers.is_empty() && ended.free.len() == whole.threads.len());
        let (whole_run, ended_run) = (whole.intervals(), ended.intervals());
        for method in &methods {
            let energy = MicroJoules(1_000_000);
            let [one, other] = [&whole_run, &ended_run].map(|run| run.of(method, energy));
            assert!(one.low.0.abs_diff(other.low.0) <= 1 && one.high.0.abs_diff(other.high.0) <= 1, "{method:?}");
        }
        // Its numbers are used again.
        let report = fixture::window(SMALL, &mut stacks, 20);
        ended.window(&report, &stacks, HashSet::new);
        assert!(ended.threads.len() == whole.threads.len() && ended.free.len() < whole.threads.len());
    }

    #[test]
    fn threads_without_end_take_no_more_room() {
        let (mut sampling, mut stacks) = (MethodSampling::with_limits(4, 8), StackTable::default());
        for index in 0..20 {
            let report = fixture::window(SMALL, &mut stacks, index);
            let ids = report.methods.iter().map(|row| id_of(&MethodKey::of(stacks.frame(row.method))));
            let one: HashSet<MethodId> = ids.take(1).collect();
            sampling.window(&report, &stacks, || one.clone());
            assert!(sampling.threads.len() <= 4 && sampling.parts.len() <= 8, "{index}");
            assert!(sampling.closed.len() <= 1, "methods that are not known any more are forgotten");
        }
        assert_eq!(sampling.closed.len(), 1);
    }
}
