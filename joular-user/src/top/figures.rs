//! Takes out of a window what the view shows: what each thread spent on each call path. Names are shared and outlive the
//! recorder's tables, so that another thread can keep them.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use joular_data::{
    attribution::window_report::{BranchRow, Category, ProcessRef, ThreadRow, WindowReport},
    events::{ProcessInfo, Runtime},
    model::{
        frame::{Frame, FrameKind},
        target_text::TargetText,
        units::{MicroJoules, Pid, Tid},
    },
    stacks::{BranchIndex, FrameId, StackTable},
    totals::{EVICTED, MethodKey, RunSums},
};

/// Names that are kept of each kind; beyond that all are forgotten and made anew as they are needed.
const MAX_NAMES: usize = 16_384;
/// Longest main class that is kept.
const MAX_TITLE_BYTES: usize = 4096;

/// A process: its id and the start of its first thread.
pub type ProcessId = (Pid, u64);
/// A thread of a process.
pub type ThreadId = (ProcessId, Tid, u64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub id: ProcessId,
    /// Main class of a JVM, comm of anything else.
    pub title: TargetText,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub process: Arc<Process>,
    pub id: ThreadId,
    pub name: TargetText,
    pub category: Category,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Equal for equal methods of a run of this program.
    pub id: u64,
    pub key: MethodKey,
}

/// A call path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Equal for paths of equal methods; 0 for what was folded.
    pub id: i64,
    /// Root → leaf.
    pub methods: Box<[Arc<Method>]>,
    /// The same, each once.
    pub distinct: Box<[Arc<Method>]>,
}

/// What a thread spent on a path in a window.
#[derive(Clone, Debug)]
pub struct Spent {
    pub thread: Arc<Thread>,
    pub path: Arc<Path>,
    pub energy: MicroJoules,
    pub cpu_ns: u64,
}

/// A window as the view shows it.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub length_ns: u64,
    /// Of this window.
    pub now: RunSums,
    /// Of the run up to here.
    pub sums: RunSums,
    /// Energy by the names of domains, all sockets and cores together.
    pub domains: Vec<(String, MicroJoules)>,
    pub spent: Vec<Spent>,
}

/// Makes [`Figures`] of a run's windows.
pub struct Condenser {
    hasher: RandomState,
    sums: RunSums,
    titles: HashMap<ProcessId, TargetText>,
    methods: HashMap<FrameId, Arc<Method>>,
    paths: HashMap<BranchIndex, Arc<Path>>,
    /// Of frames, of branches: what these mean changes with them.
    generations: (u64, u64),
}

impl Default for Condenser {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            sums: RunSums::default(),
            titles: HashMap::new(),
            methods: HashMap::new(),
            paths: HashMap::new(),
            generations: (0, 0),
        }
    }
}

impl Condenser {
    /// Takes what is known of a process.
    pub fn process(&mut self, info: &ProcessInfo) {
        if let Runtime::Jvm { main_class: Some(main_class), .. } = &info.runtime
            && self.titles.len() < MAX_NAMES
            && main_class.raw().len() <= MAX_TITLE_BYTES
        {
            self.titles.insert((info.pid, info.start_boottime_ns), main_class.clone());
        }
    }

    pub fn process_ended(&mut self, id: ProcessId) {
        self.titles.remove(&id);
    }

    pub fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Figures {
        self.forget(stacks);
        self.sums.add(report);
        let threads = self.threads(report);
        let spent = |row: &BranchRow| {
            let thread = Arc::clone(threads.get(row.thread)?.as_ref()?);
            Some(Spent { thread, path: self.path(row.branch, stacks), energy: row.energy, cpu_ns: row.cpu_ns })
        };
        let spent = report.branches.iter().filter_map(spent).collect();
        Figures {
            length_ns: report.length_ns,
            now: RunSums::of(report),
            sums: self.sums.clone(),
            domains: domains(report),
            spent,
        }
    }

    /// Drops names that mean something else now, or are too many.
    fn forget(&mut self, stacks: &StackTable) {
        let generations = (stacks.frames_generation(), stacks.generation());
        if generations.0 != self.generations.0 || self.methods.len() > MAX_NAMES {
            self.methods.clear();
        }
        if generations != self.generations || self.paths.len() > MAX_NAMES {
            self.paths.clear();
        }
        self.generations = generations;
    }

    fn threads(&self, report: &WindowReport) -> Vec<Option<Arc<Thread>>> {
        let title = |process: &ProcessRef| {
            let id = (process.pid, process.start_boottime_ns);
            Arc::new(Process { id, title: self.titles.get(&id).unwrap_or(&process.comm).clone() })
        };
        let processes: Vec<Arc<Process>> = report.processes.iter().map(title).collect();
        let thread = |row: &ThreadRow| {
            let process = Arc::clone(processes.get(row.process)?);
            let id = (process.id, row.tid, row.start_boottime_ns);
            Some(Arc::new(Thread { process, id, name: row.name.clone(), category: row.category }))
        };
        report.threads.iter().map(thread).collect()
    }

    fn path(&mut self, branch: BranchIndex, stacks: &StackTable) -> Arc<Path> {
        if let Some(known) = self.paths.get(&branch) {
            return Arc::clone(known);
        }
        let methods: Box<[Arc<Method>]> = stacks.methods(branch).map(|frame| self.method(frame, stacks)).collect();
        let mut seen = HashSet::new();
        let distinct = methods.iter().filter(|method| seen.insert(method.id)).cloned().collect();
        let path = Arc::new(Path { id: stacks.branch_id(branch), methods, distinct });
        self.paths.insert(branch, Arc::clone(&path));
        path
    }

    fn method(&mut self, frame: FrameId, stacks: &StackTable) -> Arc<Method> {
        let hasher = &self.hasher;
        let make = || {
            let key = MethodKey::of(stacks.frame(frame));
            Arc::new(Method { id: hasher.hash_one(&key), key })
        };
        Arc::clone(self.methods.entry(frame).or_insert_with(make))
    }
}

/// Energy by the names of domains, in their order.
fn domains(report: &WindowReport) -> Vec<(String, MicroJoules)> {
    let mut domains: Vec<(String, MicroJoules)> = Vec::new();
    for audit in &report.domains {
        match domains.iter_mut().find(|(name, _)| *name == audit.domain) {
            Some((_, energy)) => *energy = energy.saturating_add(audit.measured),
            None => domains.push((audit.domain.clone(), audit.measured)),
        }
    }
    domains
}

/// What stands for paths, threads and processes that were folded.
pub mod folded {
    use super::{Arc, Category, EVICTED, Frame, FrameKind, Method, MethodKey, Path, Pid, Process, Thread, Tid};

    pub fn path() -> Arc<Path> {
        let key = MethodKey::of(&Frame::new(FrameKind::Marker, EVICTED));
        let methods: Box<[Arc<Method>]> = [Arc::new(Method { id: 0, key })].into();
        Arc::new(Path { id: 0, distinct: methods.clone(), methods })
    }

    pub fn thread(process: &Arc<Process>) -> Arc<Thread> {
        let id = (process.id, Tid(0), 0);
        Arc::new(Thread { process: Arc::clone(process), id, name: EVICTED.into(), category: Category::Native })
    }

    pub fn process() -> Arc<Process> {
        Arc::new(Process { id: (Pid(0), 0), title: EVICTED.into() })
    }
}

#[cfg(test)]
mod tests {
    use joular_data::fixture::{self, SMALL};

    use super::*;

    #[test]
    fn a_window_s_rows_sum_to_its_threads_and_equal_methods_have_equal_ids() {
        let (mut condenser, mut stacks) = (Condenser::default(), StackTable::default());
        condenser.process(&fixture::process(0));
        let report = fixture::window(SMALL, &mut stacks, 0);
        let figures = condenser.window(&report, &stacks);
        let sum = |spent: &[Spent]| spent.iter().map(|row| row.energy.0).sum::<u64>();
        assert_eq!(sum(&figures.spent), report.branches.iter().map(|row| row.energy.0).sum::<u64>());
        assert_eq!(figures.sums.measured, report.domains[0].measured);
        assert_eq!(figures.domains, [("cpu".to_owned(), report.domains[0].measured)]);
        let titles: HashSet<&str> = figures.spent.iter().map(|row| row.thread.process.title.raw()).collect();
        assert!(titles.contains("com.example.App0") && titles.contains("java"), "{titles:?}");
        // The same methods after all names were forgotten.
        condenser.methods.clear();
        condenser.paths.clear();
        let again = condenser.window(&report, &stacks);
        assert_eq!(again.spent[0].path, figures.spent[0].path);
    }

    #[test]
    fn a_recursive_method_is_distinct_once() {
        let (mut condenser, mut stacks) = (Condenser::default(), StackTable::default());
        let mut report = fixture::window(SMALL, &mut stacks, 0);
        let ids = [0, 1, 0].map(|index| stacks.frame_id(fixture::frame(index)));
        let branch = stacks.branch_index(&ids, stacks.facts(report.branches[0].branch).quality);
        report.branches.truncate(1);
        report.branches[0].branch = branch;
        let path = Arc::clone(&condenser.window(&report, &stacks).spent[0].path);
        assert_eq!((path.methods.len(), path.distinct.len()), (3, 2));
    }
}
