//! Keeps the sums that live metrics show, window by window.
//!
//! Every process of the targets has a series, up to a bound; an ended one keeps it for a while. What
//! has no series of its own is in one sum, so series and that sum are always all of the targets.

use std::collections::BTreeMap;

use joular_data::{
    attribution::window_report::{DomainAudit, ProcessRef, Unattributed, WindowReport},
    events::{ProcessInfo, RunInfo, Runtime},
    model::{
        target_text::TargetText,
        units::{MicroJoules, MonotonicNs, Pid},
    },
    stacks::{JvmWork, StackTable},
    totals::measured::{self, Amounts},
};

use super::{
    methods::Methods,
    sample::{Labels, MAX_METHOD_BYTES, bounded},
};

/// How long an ended process keeps its series.
pub const KEPT_NS: u64 = 300_000_000_000;
/// Causes of losses and domains that are told apart.
const MAX_KINDS: usize = 1024;

/// How many series there may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Processes, ended ones included.
    pub processes: usize,
    /// Ended processes; those with the most energy are kept.
    pub ended: usize,
    /// Methods of all processes.
    pub methods: usize,
    /// Methods of a process in its first minute; 0 for none.
    pub top_methods: usize,
}

impl Limits {
    pub const fn new(top_methods: usize) -> Self {
        Self { processes: 10_000, ended: 500, methods: 50_000, top_methods }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub energy: MicroJoules,
    pub cpu_ns: u64,
    /// Bytes and counts.
    pub measured: Amounts,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        measured::add(&mut self.measured, &other.measured);
    }
}

#[derive(Clone, Debug, Default)]
pub struct DomainSums {
    pub measured: MicroJoules,
    pub attributed: MicroJoules,
    pub static_share: MicroJoules,
    pub unattributed: Unattributed,
    /// In the latest window.
    pub now: MicroJoules,
}

#[derive(Clone, Debug)]
pub struct Process {
    pub labels: Labels,
    pub sum: Sum,
    /// In the latest window.
    pub now: MicroJoules,
    /// By [`JvmWork`]; `None` if it is not a JVM.
    pub jvm: Option<[MicroJoules; JvmWork::ALL.len()]>,
    pub methods: Methods,
    /// The start of its first window with a named method.
    first_seen: Option<MonotonicNs>,
    ended: Option<MonotonicNs>,
}

/// Pid and start.
pub type ProcessKey = (Pid, u64);

#[derive(Clone, Debug)]
pub struct Registry {
    pub limits: Limits,
    pub run: RunInfo,
    pub domains: BTreeMap<Labels, DomainSums>,
    pub processes: BTreeMap<ProcessKey, Process>,
    /// Of targets without a series.
    pub other: Sum,
    pub targets: Sum,
    /// CPU time of joular-bpf itself.
    pub profiler_cpu_ns: u64,
    pub losses: BTreeMap<String, u64>,
    pub samples: u64,
    /// Samples by whether the stack was read to its root; the last are those of which it is not known.
    pub stacks: [u64; 3],
    pub windows: u64,
    pub elapsed_ns: u64,
    pub last: Option<LastWindow>,
}

#[derive(Clone, Copy, Debug)]
pub struct LastWindow {
    pub index: u64,
    pub wall_start_us: i64,
    pub end: MonotonicNs,
    pub length_ns: u64,
}

impl Registry {
    pub fn new(limits: Limits, run: &RunInfo) -> Self {
        Self {
            limits,
            run: run.clone(),
            domains: BTreeMap::new(),
            processes: BTreeMap::new(),
            other: Sum::default(),
            targets: Sum::default(),
            profiler_cpu_ns: 0,
            losses: BTreeMap::new(),
            samples: 0,
            stacks: [0; 3],
            windows: 0,
            elapsed_ns: 0,
            last: None,
        }
    }

    /// A process was found, or more is known of it.
    pub fn process(&mut self, info: &ProcessInfo) {
        if !info.is_target {
            return;
        }
        let (main_class, is_jvm) = match &info.runtime {
            Runtime::Jvm { main_class, .. } => (main_class.as_ref(), true),
            Runtime::Native => (None, false),
        };
        let workload = info.workload.as_deref();
        let labels = Labels::default()
            .with("pid", &info.pid.to_string())
            .with_text("comm", Some(&info.comm))
            .with_text("main_class", main_class)
            .with_text("service", info.service.as_ref().map(|service| &service.name))
            .with_text("version", info.service.as_ref().and_then(|service| service.version.as_ref()))
            .with_text("container_id", info.container.as_ref())
            .with_text("container_name", workload.and_then(|known| known.container.as_ref()))
            .with_text("pod_id", info.pod.as_ref())
            .with_text("pod_name", workload.map(|known| &known.pod))
            .with_text("pod_namespace", workload.map(|known| &known.namespace));
        if let Some(process) = self.admit((info.pid, info.start_boottime_ns)) {
            process.labels = labels;
            if is_jvm {
                process.jvm.get_or_insert_default();
            }
        }
    }

    /// A process ended; its last window was seen.
    pub fn process_ended(&mut self, key: ProcessKey) {
        let now = self.now();
        if let Some(process) = self.processes.get_mut(&key) {
            process.ended = Some(now);
        }
    }

    pub fn window(&mut self, report: &WindowReport, stacks: &StackTable) {
        self.windows = self.windows.saturating_add(1);
        self.elapsed_ns = self.elapsed_ns.saturating_add(report.length_ns);
        let end = MonotonicNs(report.start.0.saturating_add(report.length_ns));
        self.last = Some(LastWindow {
            index: report.index,
            wall_start_us: report.wall_start.0,
            end,
            length_ns: report.length_ns,
        });
        self.domains(report);
        self.health(report);
        self.processes.values_mut().for_each(|process| process.now = MicroJoules(0));
        self.drop_ended(report.start);
        self.threads(report);
        self.jvms(report);
        self.methods(report, stacks);
    }

    fn now(&self) -> MonotonicNs {
        self.last.map_or(MonotonicNs(0), |last| last.end)
    }

    fn domains(&mut self, report: &WindowReport) {
        self.domains.values_mut().for_each(|sums| sums.now = MicroJoules(0));
        for audit in &report.domains {
            let labels = domain_labels(audit);
            if self.domains.len() >= MAX_KINDS && !self.domains.contains_key(&labels) {
                continue;
            }
            let sums = self.domains.entry(labels).or_default();
            sums.measured = sums.measured.saturating_add(audit.measured);
            sums.attributed = sums.attributed.saturating_add(audit.attributed);
            sums.static_share = sums.static_share.saturating_add(audit.static_share);
            sums.unattributed = sums.unattributed.plus(audit.unattributed);
            sums.now = sums.now.saturating_add(audit.measured);
        }
    }

    fn health(&mut self, report: &WindowReport) {
        self.profiler_cpu_ns = self.profiler_cpu_ns.saturating_add(report.cpu.profiler_ns);
        self.samples = self.samples.saturating_add(report.cpu.samples);
        for row in &report.qualities {
            let index = match row.quality.is_complete() {
                Some(true) => 0,
                Some(false) => 1,
                None => 2,
            };
            self.stacks[index] = self.stacks[index].saturating_add(row.amount.samples);
        }
        for loss in &report.losses {
            let is_known = self.losses.contains_key(&loss.cause) || self.losses.len() < MAX_KINDS;
            let cause = if is_known { loss.cause.as_str() } else { "other" };
            let count = self.losses.entry(cause.to_owned()).or_default();
            *count = count.saturating_add(loss.count);
        }
    }

    fn threads(&mut self, report: &WindowReport) {
        for thread in &report.threads {
            let used = Sum { energy: thread.energy, cpu_ns: thread.cpu_ns, ..Sum::default() };
            self.targets.add(&used);
            let process = report.processes.get(thread.process);
            match process.and_then(|process| self.of(process)) {
                Some(process) => {
                    process.sum.add(&used);
                    process.now = process.now.saturating_add(used.energy);
                }
                None => self.other.add(&used),
            }
        }
        for (process, measured) in report.processes.iter().zip(measured::by_process(report)) {
            let used = Sum { measured, ..Sum::default() };
            self.targets.add(&used);
            match self.of(process) {
                Some(process) => process.sum.add(&used),
                None => self.other.add(&used),
            }
        }
    }

    fn jvms(&mut self, report: &WindowReport) {
        for row in &report.jvms {
            let Some(process) = report.processes.get(row.process).and_then(|process| self.known(process)) else {
                continue;
            };
            let sums = process.jvm.get_or_insert_default();
            for (sum, part) in sums.iter_mut().zip(&row.parts) {
                *sum = sum.saturating_add(part.energy);
            }
        }
    }

    fn methods(&mut self, report: &WindowReport, stacks: &StackTable) {
        let Limits { methods: limit, top_methods: top, .. } = self.limits;
        if top == 0 {
            return;
        }
        let mut used: BTreeMap<usize, BTreeMap<String, MicroJoules>> = BTreeMap::new();
        for row in report.methods.iter().filter(|row| row.own.energy.0 > 0) {
            let name = bounded(&stacks.frame(row.method).method(), MAX_METHOD_BYTES);
            let energy = used.entry(row.process).or_default().entry(name).or_default();
            *energy = energy.saturating_add(row.own.energy);
        }
        let mut series: usize = self.processes.values().map(|process| process.methods.series().len()).sum();
        for (process, used) in used {
            let Some(process) = report.processes.get(process).and_then(|process| self.known(process)) else { continue };
            let (before, room) = (process.methods.series().len(), limit.saturating_sub(series));
            let age_ns = report.start.since(*process.first_seen.get_or_insert(report.start));
            process.methods.window(&used, top, age_ns, room);
            series += process.methods.series().len() - before;
        }
    }

    fn known(&mut self, process: &ProcessRef) -> Option<&mut Process> {
        self.processes.get_mut(&(process.pid, process.start_boottime_ns))
    }

    /// The series of a process, made if there is room.
    fn of(&mut self, process: &ProcessRef) -> Option<&mut Process> {
        let entry = self.admit((process.pid, process.start_boottime_ns))?;
        if entry.labels == Labels::default() {
            entry.labels = named(process.pid, &process.comm);
        }
        Some(entry)
    }

    fn admit(&mut self, key: ProcessKey) -> Option<&mut Process> {
        if !self.processes.contains_key(&key) {
            // Its series could be called as that of an ended process that had the same pid.
            let namesakes: Vec<ProcessKey> =
                self.processes.range((key.0, 0)..=(key.0, u64::MAX)).map(|(key, _)| *key).collect();
            namesakes.iter().for_each(|key| self.forget(*key));
            if self.processes.len() >= self.limits.processes {
                return None;
            }
        }
        Some(self.processes.entry(key).or_insert_with(|| Process {
            labels: Labels::default(),
            sum: Sum::default(),
            now: MicroJoules(0),
            jvm: None,
            methods: Methods::default(),
            first_seen: None,
            ended: None,
        }))
    }

    /// Takes the series of processes that ended long ago, and of the smallest if too many ended.
    fn drop_ended(&mut self, now: MonotonicNs) {
        let mut ended: Vec<(ProcessKey, MonotonicNs, MicroJoules)> = self
            .processes
            .iter()
            .filter_map(|(key, process)| Some((*key, process.ended?, process.sum.energy)))
            .collect();
        ended.sort_by_key(|(.., energy)| std::cmp::Reverse(*energy));
        for (position, (key, ended, _)) in ended.into_iter().enumerate() {
            if position >= self.limits.ended || now.since(ended) > KEPT_NS {
                self.forget(key);
            }
        }
    }

    fn forget(&mut self, key: ProcessKey) {
        if let Some(process) = self.processes.remove(&key) {
            self.other.add(&process.sum);
        }
    }
}

fn named(pid: Pid, comm: &TargetText) -> Labels {
    Labels::default().with("pid", &pid.to_string()).with_text("comm", Some(comm))
}

fn domain_labels(audit: &DomainAudit) -> Labels {
    let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    Labels::default()
        .with_text("domain", Some(&audit.domain.as_str().into()))
        .with("socket", &number(audit.socket))
        .with("core", &number(audit.core))
        .with_text("source", Some(&audit.source.as_str().into()))
        .with("label", audit.label.name())
}
