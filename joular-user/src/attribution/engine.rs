//! Events in, window reports out: the state between windows.
//!
//! The engine is a pure function of the event stream: it reads no clock, no
//! file and no counter, so a recording gives exactly what the live run gave.

use std::collections::BTreeMap;

use super::{
    branches::{self, BranchSamples, branch_rows},
    domains::Domains,
    methods::method_rows,
    paths::Paths,
    report::{BranchRow, CpuAudit, WindowReport},
    threads::{Claimant, ThreadJoin},
};
use crate::{
    events::{Event, ProcessInfo, RawStack, RunInfo, Runtime, Window},
    stacks::StackTable,
    units::Pid,
};

/// A process incarnation: pids are reused, pids with start times are not.
pub(super) type ProcessKey = (Pid, u64);

/// Processes kept; those beyond count as processes that are no targets.
const MAX_PROCESSES: usize = 1 << 16;

#[derive(Debug, Default)]
pub struct Engine {
    run: Option<RunInfo>,
    domains: Option<Domains>,
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
                self.domains = Some(Domains::new(&run.domains));
                self.run = Some((**run).clone());
            }
            Event::Process(process) => self.learn_process(process),
            Event::ProcessEnded { pid, start_boottime_ns } => self.forget_process((*pid, *start_boottime_ns)),
            Event::Stack(stack) => self.paths.add_stack(stack),
            Event::StacksForgotten(ids) => self.paths.forget_stacks(ids),
            Event::Symbols { pid, start_boottime_ns, symbols } => {
                self.paths.learn((*pid, *start_boottime_ns), symbols);
            }
            Event::Energy(reading) => {
                if let Some(domains) = &mut self.domains {
                    domains.read(reading);
                }
            }
            Event::Window(window) => return Some(self.report(window)),
            Event::RunEnded(_) => {}
        }
        None
    }

    /// What is no target (any more) need not be kept, unless a thread of it
    /// could otherwise be taken for one of an earlier process of its pid.
    fn learn_process(&mut self, process: &ProcessInfo) {
        let key = (process.pid, process.start_boottime_ns);
        if !process.is_target && process.parent != self.profiler_pid() {
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
        self.paths.forget_process(key);
    }

    fn report(&mut self, window: &Window) -> WindowReport {
        self.paths.start_window();
        let mut join = ThreadJoin::of(window, &self.processes, self.profiler_pid());
        let domains = match (&self.run, &mut self.domains) {
            (Some(run), Some(domains)) => domains.divide(run, window, &mut join),
            _ => Vec::new(),
        };
        let branches = self.branches(window, &join);
        self.paths.end_window(branches.len());
        let table = self.paths.table();
        let methods = method_rows(&join.threads, &branches, |branch| table.methods(branch));
        WindowReport {
            index: window.index,
            start: window.start,
            wall_start: window.wall_start,
            length_ns: window.length_ns(),
            domains,
            cpu: cpu_audit(window, &join),
            processes: join.processes,
            threads: join.threads,
            branches,
            methods,
            losses: window.losses.clone(),
        }
    }

    fn profiler_pid(&self) -> Pid {
        self.run.as_ref().map_or(Pid(0), |run| run.profiler_pid)
    }

    fn branches(&mut self, window: &Window, join: &ThreadJoin) -> Vec<BranchRow> {
        let mut samples: BTreeMap<usize, BranchSamples> = BTreeMap::new();
        for sample in &window.samples {
            if let Some((position, process)) = join.position_of(sample) {
                let branch = self.paths.path(process, sample, join.is_kernel_thread(position));
                branches::add(samples.entry(position).or_default(), branch, u64::from(sample.count));
            }
        }
        let markers = self.paths.markers();
        let rows =
            |(position, thread)| branch_rows(position, thread, samples.remove(&position).unwrap_or_default(), markers);
        join.threads.iter().enumerate().flat_map(rows).collect()
    }
}

/// What attribution needs of a process: nothing whose size it chooses.
fn essence(process: &ProcessInfo) -> ProcessInfo {
    let runtime = match process.runtime {
        Runtime::Native => Runtime::Native,
        Runtime::Jvm { .. } => Runtime::Jvm { version: None, main_class: None, collector: None },
    };
    ProcessInfo {
        pid: process.pid,
        start_boottime_ns: process.start_boottime_ns,
        parent: process.parent,
        comm: process.comm.clone(),
        runtime,
        is_target: process.is_target,
        ..ProcessInfo::default()
    }
}

fn cpu_audit(window: &Window, join: &ThreadJoin) -> CpuAudit {
    let elapsed_ns = window.length_ns().saturating_mul(window.cpus.len() as u64);
    let mut audit = CpuAudit { elapsed_ns, ..CpuAudit::default() };
    let add = |sum: &mut u64, amount: u64| *sum = sum.saturating_add(amount);
    for cpu in &window.cpus {
        add(&mut audit.busy_ns, cpu.busy_ns);
        add(&mut audit.idle_ns, cpu.idle_ns);
        add(&mut audit.unslotted_ns, cpu.unslotted_ns);
        add(&mut audit.switches, cpu.switches);
    }
    for (time, claimant) in window.threads.iter().zip(&join.claimants) {
        match claimant {
            Claimant::Target(_) => {
                add(&mut audit.target_ns, time.cpu_ns);
                add(&mut audit.samples, u64::from(time.samples));
            }
            Claimant::Profiler => add(&mut audit.profiler_ns, time.cpu_ns),
            Claimant::Kernel => add(&mut audit.kernel_ns, time.cpu_ns),
            Claimant::Other => add(&mut audit.other_ns, time.cpu_ns),
        }
    }
    audit
}
