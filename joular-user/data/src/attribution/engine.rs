//! Turns events into window reports, and holds the state between windows.
//!
//! The engine is a pure function of the event stream: it reads no clock, no file and no counter, so
//! a recording gives exactly what the live run gave.

use std::collections::{BTreeMap, HashSet};

use super::{
    allocated::{self, AllocationRow},
    attributor::Attributor,
    branches::{self, BranchSamples, branch_rows},
    collector::{self, Ledgers},
    counts::Counts,
    in_step::InStep,
    long_names::LongNames,
    measured::Measured,
    moved::Moved,
    paths::Paths,
    threads::ThreadJoin,
    window_report::{BranchRow, CpuAudit, WindowReport},
    work::{Claimant, ClaimedSlice, Factor, ProcessKey, WindowWork},
};
use crate::{
    events::{
        BufferEnds, Event, LossCount, Mark, ProcessInfo, RawStack, Runtime, ThreadTime, Window, WindowAllocations,
        WindowCollections, WindowContext, WindowCounters, WindowIo,
    },
    model::units::Pid,
    stacks::StackTable,
};

/// Limit of processes kept. Processes beyond it count as processes that are not targets.
const MAX_PROCESSES: usize = 1 << 16;

/// Limit of marks in a window. Recorders keep to fewer.
const MAX_MARKS: usize = 1 << 14;

#[derive(Debug, Default)]
pub struct Engine {
    profiler_pid: Pid,
    measured: Measured,
    /// Of the coming window.
    context: Option<WindowContext>,
    /// Of the coming window.
    marks: Vec<Mark>,
    /// Of the coming window.
    counters: Option<Box<WindowCounters>>,
    /// Of the coming window.
    allocations: Option<Box<WindowAllocations>>,
    /// Of the coming window.
    buffer_ends: Vec<BufferEnds>,
    /// Of the coming window.
    collections: Option<Box<WindowCollections>>,
    /// Of the coming window.
    io: Option<Box<WindowIo>>,
    /// JVMs whose allocations cannot be sampled.
    unsampled: HashSet<ProcessKey>,
    in_step: InStep,
    ledgers: Ledgers,
    long_names: LongNames,
    attributor: Attributor,
    /// Targets, and what the profiler started for itself.
    pub(super) processes: BTreeMap<ProcessKey, ProcessInfo>,
    paths: Paths,
}

impl Engine {
    /// Frames and branches that the latest report refers to. Indices hold as
    /// long as the table's generation does.
    pub const fn table(&self) -> &StackTable {
        self.paths.table()
    }

    /// A stack as it was last sent by the kernel.
    pub fn stack(&self, id: u64) -> Option<&RawStack> {
        self.paths.stack(id)
    }

    /// Takes one event; a window gives its report.
    pub fn apply(&mut self, event: &Event) -> Option<WindowReport> {
        match event {
            Event::RunStarted(run) => {
                self.profiler_pid = run.profiler_pid;
                self.measured = Measured::new(&run.domains);
                self.attributor = Attributor::new(run);
            }
            Event::Process(process) => self.learn_process(process),
            Event::ProcessEnded { pid, start_boottime_ns } => self.forget_process((*pid, *start_boottime_ns)),
            Event::Stack(stack) => self.paths.add_stack(stack),
            Event::StacksForgotten(ids) => self.paths.forget_stacks(ids),
            Event::Symbols { pid, start_boottime_ns, symbols } => {
                self.paths.learn((*pid, *start_boottime_ns), symbols);
            }
            Event::Energy(reading) => self.measured.read(reading),
            Event::Window(window) => return Some(self.report(window)),
            Event::Context(context) => self.context = Some((**context).clone()),
            Event::Mark(mark) if self.marks.len() < MAX_MARKS => self.marks.push((**mark).clone()),
            Event::Counters(counters) => self.counters = Some(counters.clone()),
            Event::Allocations(allocations) => self.allocations = Some(allocations.clone()),
            Event::Collections(collections) => self.collections = Some(collections.clone()),
            Event::Io(io) => self.io = Some(io.clone()),
            Event::AllocationsUnsampled { pid, start_boottime_ns } => {
                let key = (*pid, *start_boottime_ns);
                if self.processes.contains_key(&key) {
                    self.unsampled.insert(key);
                }
            }
            Event::LongName(long) => self.long_names.learn(long),
            Event::BufferEnds(ends) => self.buffer_ends.clone_from(ends),
            Event::Mark(_) | Event::RunEnded(_) => {}
        }
        None
    }

    /// Keeps targets and helpers. Any other process is kept only if a thread of it could be taken for
    /// a thread of an earlier process of its pid.
    fn learn_process(&mut self, process: &ProcessInfo) {
        let key = (process.pid, process.start_boottime_ns);
        if !process.is_target && !process.is_helper {
            self.forget_process(key);
            if self.processes.range((key.0, 0)..key).next().is_none() {
                return;
            }
        }
        if self.processes.len() < MAX_PROCESSES || self.processes.contains_key(&key) {
            self.processes.insert(key, essence(process));
        }
    }

    fn forget_process(&mut self, key: ProcessKey) {
        self.processes.remove(&key);
        self.unsampled.remove(&key);
        self.in_step.forget(key);
        self.ledgers.forget(key);
        self.paths.forget_process(key);
    }

    fn report(&mut self, window: &Window) -> WindowReport {
        let work = self.work(window);
        self.attributor.attribute(work, self.paths.table())
    }

    /// What there is to divide, and what it is divided by.
    fn work(&mut self, window: &Window) -> WindowWork {
        self.paths.start_window();
        let context = self.context.take().map(|context| with_counted_frequency(context, &window.threads));
        let suspended_ns = context.as_ref().map_or(0, |context| context.suspended_ns);
        let mut join = ThreadJoin::of(window, &self.processes, self.profiler_pid, |time| self.long_names.of(time));
        self.long_names.end_window();
        let branches = self.branches(window, &join);
        let allocations = self.allocations(&join, &branches);
        let collected = self.collections.take().unwrap_or_default();
        let collections = collector::rows(&collected, window, &join.processes);
        let length_ns = window.length_ns();
        let charges = self.ledgers.window(
            (&join.processes, &join.threads),
            &allocations,
            (&collections, &collected.fates),
            length_ns,
            &mut self.paths,
        );
        let moved = self.io.take().map(|window| Moved::of(&window, &join, &mut self.paths));
        let moved_paths = moved.as_ref().map_or(0, |moved| moved.rows.len());
        self.paths.end_window(branches.len() + allocations.len() + moved_paths);
        let counts = self.counters.take().map(|counted| Counts::of(&counted, |thread| join.claimant_of(thread)));
        let slices = std::mem::take(&mut join.slices);
        let slices: Vec<ClaimedSlice> = slices
            .into_iter()
            .map(|((claimant, place), slice)| ClaimedSlice { claimant, place, slice, factor: Factor::ONE })
            .collect();
        WindowWork {
            index: window.index,
            start: window.start,
            wall_start: window.wall_start,
            length_ns,
            domains: self.measured.window(window, suspended_ns, moved.as_ref().map(Moved::total).unwrap_or_default()),
            cpu: cpu_audit(window, &slices),
            context,
            marks: std::mem::take(&mut self.marks),
            counts,
            slices,
            processes: join.processes,
            threads: join.threads,
            branches,
            allocations,
            collections,
            charges,
            moved,
            losses: window.losses.iter().filter(|loss| !is_of_times(loss)).cloned().collect(),
        }
    }

    fn allocations(&mut self, join: &ThreadJoin, branches: &[BranchRow]) -> Vec<AllocationRow> {
        let ends = std::mem::take(&mut self.buffer_ends);
        let Some(window) = self.allocations.take() else { return Vec::new() };
        let is_unsampled = |process: ProcessKey| self.unsampled.contains(&process);
        let mut rows = allocated::rows(&window, join, branches, is_unsampled, &mut self.paths);
        let position = |thread_key: u64| join.position_of_key(thread_key);
        let more = self.in_step.window(&window.threads, &ends, position);
        rows.iter_mut().for_each(|row| row.keep_step(more.get(&row.thread).copied()));
        rows
    }

    fn branches(&mut self, window: &Window, join: &ThreadJoin) -> Vec<BranchRow> {
        let mut samples: BTreeMap<usize, BranchSamples> = BTreeMap::new();
        for sample in &window.samples {
            if let Some((position, process)) = join.position_of(sample) {
                let branch = self.paths.path(process, sample, join.is_kernel_thread(position));
                branches::add(samples.entry(position).or_default(), (sample.kind, branch), u64::from(sample.count));
            }
        }
        let markers = self.paths.markers();
        let table = self.paths.table();
        let rows = |(position, thread)| {
            let samples = samples.remove(&position).unwrap_or_default();
            branch_rows(position, thread, samples, markers, |branch| table.stack_id(branch))
        };
        join.threads.iter().enumerate().flat_map(rows).collect()
    }
}

/// What attribution needs of a process, without anything whose size the process chooses.
fn essence(process: &ProcessInfo) -> ProcessInfo {
    let runtime = match process.runtime {
        Runtime::Native => Runtime::Native,
        Runtime::Jvm { .. } => Runtime::UNKNOWN_JVM,
    };
    ProcessInfo {
        pid: process.pid,
        start_boottime_ns: process.start_boottime_ns,
        comm: process.comm.clone(),
        runtime,
        is_target: process.is_target,
        is_helper: process.is_helper,
        ..ProcessInfo::default()
    }
}

/// Where cycles are counted, they say how fast CPUs ran while busy, exactly.
fn with_counted_frequency(context: WindowContext, threads: &[ThreadTime]) -> WindowContext {
    // Cycles that could not be read count as 0, with their time.
    let counted = || threads.iter().filter(|thread| thread.cycles > 0);
    let sum = |of: fn(&ThreadTime) -> u64| counted().map(|thread| u128::from(of(thread))).sum::<u128>();
    let khz = (sum(|thread| thread.cycles) * 1_000_000).checked_div(sum(|thread| thread.cpu_ns));
    let mean_frequency_khz = khz.and_then(|khz| u64::try_from(khz).ok()).filter(|khz| *khz > 0);
    WindowContext { mean_frequency_khz: mean_frequency_khz.or(context.mean_frequency_khz), ..context }
}

fn is_of_times(loss: &LossCount) -> bool {
    loss.cause == LossCount::INEXACT_CPU_NS
}

fn cpu_audit(window: &Window, slices: &[ClaimedSlice]) -> CpuAudit {
    let elapsed_ns = window.length_ns().saturating_mul(window.cpus.len() as u64);
    let inexact_ns = window.losses.iter().filter(|loss| is_of_times(loss)).map(|loss| loss.count);
    let inexact_ns = inexact_ns.fold(0, u64::saturating_add);
    let mut audit = CpuAudit { elapsed_ns, inexact_ns, ..CpuAudit::default() };
    let add = |sum: &mut u64, amount: u64| *sum = sum.saturating_add(amount);
    for cpu in &window.cpus {
        add(&mut audit.busy_ns, cpu.busy_ns);
        add(&mut audit.switches, cpu.switches);
    }
    for ClaimedSlice { claimant, slice, .. } in slices {
        let sum = match claimant {
            Claimant::Thread(_) => &mut audit.target_ns,
            Claimant::OtherProcesses => &mut audit.other_ns,
            Claimant::Kernel => &mut audit.kernel_ns,
            Claimant::Profiler => &mut audit.profiler_ns,
            Claimant::Unslotted => &mut audit.unslotted_ns,
            Claimant::Idle => &mut audit.idle_ns,
        };
        add(sum, slice.cpu_ns);
        if matches!(claimant, Claimant::Thread(_)) {
            add(&mut audit.samples, slice.samples);
        }
    }
    audit
}
