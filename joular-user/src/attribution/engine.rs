//! Events in, window reports out: the state between windows.
//!
//! The engine is a pure function of the event stream: it reads no clock, no
//! file and no counter, so a recording gives exactly what the live run gave.

use std::collections::{BTreeMap, HashMap};

use joular_ebpf::abi::ThreadKey;

use super::{
    branches::{self, BranchSamples, MarkerBranches, branch_rows},
    conservation::{Claims, divide},
    methods::method_rows,
    report::{CpuAudit, DomainAudit, Unattributed, WindowReport},
    threads::{Claimant, ThreadJoin},
};
use crate::{
    energy::{
        counter::{Delta, Meters, SocketLoad},
        domain::Domain,
    },
    events::{EnergyReading, Event, ProcessInfo, RawStack, RunInfo, SampleCount, Symbol, Window},
    stacks::{
        BranchIndex, Frame, FrameId, Marker, StackTable,
        path::{Part, call_path},
    },
    units::{Address, MicroJoules, Pid},
};

/// A process incarnation: pids are reused, pids with start times are not.
pub(super) type ProcessKey = (Pid, u64);

/// The kernel's symbols are kept like those of a process of this key.
const KERNEL: ProcessKey = (Pid(0), 0);

/// A path of one process: (process, user stack, kernel stack).
type PathKey = (ProcessKey, u64, u64);

#[derive(Debug, Default)]
pub struct Engine {
    run: Option<RunInfo>,
    meters: Option<Meters>,
    reading: Option<EnergyReading>,
    processes: BTreeMap<ProcessKey, ProcessInfo>,
    stacks: HashMap<u64, RawStack>,
    symbols: HashMap<ProcessKey, HashMap<Address, Box<[FrameId]>>>,
    paths: HashMap<PathKey, BranchIndex>,
    table: StackTable,
}

impl Engine {
    /// Frames and branches that reports refer to.
    pub const fn table(&self) -> &StackTable {
        &self.table
    }

    /// A stack as it was last sent by the kernel.
    pub fn stack(&self, id: u64) -> Option<&RawStack> {
        self.stacks.get(&id)
    }

    /// Takes one event; a window gives its report.
    pub fn apply(&mut self, event: &Event) -> Option<WindowReport> {
        match event {
            Event::RunStarted(run) => {
                self.meters = Some(Meters::new(&run.domains));
                self.run = Some((**run).clone());
            }
            Event::Process(process) => {
                self.processes.insert((process.pid, process.start_boottime_ns), (**process).clone());
            }
            Event::ProcessEnded { pid, start_boottime_ns } => self.forget_process((*pid, *start_boottime_ns)),
            Event::Stack(stack) => {
                self.stacks.insert(stack.id, stack.clone());
            }
            Event::StacksForgotten(ids) => {
                ids.iter().for_each(|id| drop(self.stacks.remove(id)));
                let stacks = &self.stacks;
                let known = |id: u64| id == 0 || stacks.contains_key(&id);
                self.paths.retain(|(_, user, kernel), _| known(*user) && known(*kernel));
            }
            Event::Symbols { pid, start_boottime_ns, symbols } => self.learn((*pid, *start_boottime_ns), symbols),
            Event::Energy(reading) => self.read(reading),
            Event::Window(window) => return Some(self.report(window)),
            Event::RunEnded(_) => {}
        }
        None
    }

    fn forget_process(&mut self, key: ProcessKey) {
        self.processes.remove(&key);
        self.symbols.remove(&key);
        self.paths.retain(|(process, _, _), _| *process != key);
    }

    fn learn(&mut self, key: ProcessKey, symbols: &[Symbol]) {
        let known = self.symbols.entry(key).or_default();
        for symbol in symbols {
            let frames = symbol.frames.iter().map(|frame| self.table.frame_id(frame.clone())).collect();
            known.insert(symbol.address, frames);
        }
        // Paths built from earlier answers are built anew when next needed.
        self.paths.retain(|(process, _, kernel), _| *process != key && (key != KERNEL || *kernel == 0));
    }

    /// The first reading is where the first window starts from; each later one
    /// belongs to the window that follows it in the stream.
    fn read(&mut self, reading: &EnergyReading) {
        if self.reading.is_none()
            && let Some(meters) = &mut self.meters
        {
            meters.start(reading.read_at, &reading.readings);
        }
        self.reading = Some(reading.clone());
    }

    fn report(&mut self, window: &Window) -> WindowReport {
        let mut join = ThreadJoin::of(window, &self.processes, self.profiler_pid());
        let domains = self.divide_energy(window, &mut join);
        let branches = self.branches(window, &join);
        let table = &self.table;
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

    /// Divides each domain's ΔE among the threads that ran on its socket.
    fn divide_energy(&mut self, window: &Window, join: &mut ThreadJoin) -> Vec<DomainAudit> {
        let Some((run, meters)) = self.run.as_ref().zip(self.meters.as_mut()) else { return Vec::new() };
        let nothing = EnergyReading { read_at: window.end, readings: Vec::new() };
        let reading = self.reading.as_ref().unwrap_or(&nothing);
        let deltas = meters.advance(reading.read_at, &reading.readings, window.length_ns(), &socket_loads(window));
        let read_delay_ns = signed_difference(reading.read_at.0, window.end.0);
        let mut audits = Vec::with_capacity(run.domains.len());
        for (domain, delta) in run.domains.iter().zip(&deltas) {
            let mut audit = new_audit(domain, delta, read_delay_ns);
            let claims = claims_on(domain, window, join);
            let wish = static_wish(run, domain, delta, window);
            let parts = divide(&mut audit, wish, &claims);
            for (thread, part) in join.threads.iter_mut().zip(parts) {
                thread.energy = thread.energy.saturating_add(part);
            }
            audits.push(audit);
        }
        audits
    }

    fn branches(&mut self, window: &Window, join: &ThreadJoin) -> Vec<super::report::BranchRow> {
        let mut samples: BTreeMap<usize, BranchSamples> = BTreeMap::new();
        for sample in &window.samples {
            if let Some((position, process)) = join.position_of(sample) {
                let branch = self.path(process, sample, join.is_kernel_thread(position));
                branches::add(samples.entry(position).or_default(), branch, u64::from(sample.count));
            }
        }
        let markers = MarkerBranches {
            no_sample: self.marker_branch(Marker::NoSample),
            lost_stack: self.marker_branch(Marker::LostStack),
        };
        let rows =
            |(position, thread)| branch_rows(position, thread, samples.remove(&position).unwrap_or_default(), markers);
        join.threads.iter().enumerate().flat_map(rows).collect()
    }

    fn marker_branch(&mut self, marker: Marker) -> BranchIndex {
        let frame = self.table.frame_id(Frame::marker(marker));
        self.table.branch_index(&[frame])
    }

    fn path(&mut self, process: ProcessKey, sample: &SampleCount, is_kernel_thread: bool) -> BranchIndex {
        let key = (process, sample.user_stack, sample.kernel_stack);
        if let Some(branch) = self.paths.get(&key) {
            return *branch;
        }
        let part = |id: u64, absent| match id {
            0 => absent,
            id => self.stacks.get(&id).map_or(Part::Lost, Part::Known),
        };
        let user = part(sample.user_stack, if is_kernel_thread { Part::Absent } else { Part::Unreadable });
        let kernel = part(sample.kernel_stack, Part::Absent);
        let complete = !matches!(user, Part::Lost) && !matches!(kernel, Part::Lost);
        let symbols = &self.symbols;
        let frames = call_path(&mut self.table, user, kernel, |is_kernel, address| {
            symbols.get(if is_kernel { &KERNEL } else { &process })?.get(&address).map(AsRef::as_ref)
        });
        let branch = self.table.branch_index(&frames);
        if complete {
            self.paths.insert(key, branch);
        }
        branch
    }
}

fn new_audit(domain: &Domain, delta: &Delta, read_delay_ns: i64) -> DomainAudit {
    DomainAudit {
        domain: domain.name.clone(),
        socket: domain.socket,
        source: domain.source.clone(),
        label: domain.label,
        measured: delta.measured,
        attributed: MicroJoules(0),
        static_share: MicroJoules(0),
        unattributed: Unattributed::default(),
        merged: delta.merged,
        read_failed: delta.read_failed,
        ambiguous: delta.ambiguous,
        read_delay_ns,
    }
}

/// Idle energy to set apart: none under `spread`; else what the model says, or
/// what the user gave for a socket, which packages and whole machines draw.
fn static_wish(run: &RunInfo, domain: &Domain, delta: &Delta, window: &Window) -> MicroJoules {
    if run.idle_policy != "separate" {
        return MicroJoules(0);
    }
    delta.static_floor.unwrap_or_else(|| {
        let sockets = match (domain.socket, domain.name.as_str()) {
            (Some(_), "package") => 1,
            (Some(_), _) => 0,
            (None, _) => run.sockets.max(1),
        };
        let covered_ns = u128::from(window.length_ns()) * u128::from(delta.merged.max(1));
        // mW · ns = 10⁻¹² J = 10⁻⁶ µJ
        let idle_uj = u128::from(run.idle_milliwatts) * u128::from(sockets) * covered_ns / 1_000_000;
        MicroJoules(u64::try_from(idle_uj).unwrap_or(u64::MAX))
    })
}

fn socket_loads(window: &Window) -> Vec<SocketLoad> {
    let mut loads: BTreeMap<u32, SocketLoad> = BTreeMap::new();
    for cpu in &window.cpus {
        let load = loads.entry(cpu.socket).or_default();
        load.socket = cpu.socket;
        load.cpus += 1;
        load.busy_ns += cpu.busy_ns + cpu.unslotted_ns;
    }
    loads.into_values().collect()
}

fn signed_difference(a: u64, b: u64) -> i64 {
    i64::try_from(i128::from(a) - i128::from(b)).unwrap_or(i64::MAX)
}

/// CPU time on the domain's socket, or anywhere for a domain of the machine.
fn claims_on(domain: &Domain, window: &Window, join: &ThreadJoin) -> Claims {
    let mut claims = Claims { threads: vec![0; join.threads.len()], ..Claims::default() };
    let counts = |socket: u32| domain.socket.is_none_or(|own| own == socket);
    for (time, claimant) in window.threads.iter().zip(&join.claimants) {
        if counts(time.socket) {
            match claimant {
                Claimant::Target(position) => claims.threads[*position] += time.cpu_ns,
                Claimant::Profiler => claims.profiler += time.cpu_ns,
                Claimant::Kernel => claims.kernel += time.cpu_ns,
                Claimant::Other => claims.other_processes += time.cpu_ns,
            }
        }
    }
    claims.unslotted = window.cpus.iter().filter(|cpu| counts(cpu.socket)).map(|cpu| cpu.unslotted_ns).sum();
    claims
}

fn cpu_audit(window: &Window, join: &ThreadJoin) -> CpuAudit {
    let mut audit = CpuAudit { elapsed_ns: window.length_ns() * window.cpus.len() as u64, ..CpuAudit::default() };
    for cpu in &window.cpus {
        audit.busy_ns += cpu.busy_ns;
        audit.idle_ns += cpu.idle_ns;
        audit.unslotted_ns += cpu.unslotted_ns;
        audit.switches += cpu.switches;
    }
    for (time, claimant) in window.threads.iter().zip(&join.claimants) {
        match claimant {
            Claimant::Target(_) => {
                audit.target_ns += time.cpu_ns;
                audit.samples += u64::from(time.samples);
            }
            Claimant::Profiler => audit.profiler_ns += time.cpu_ns,
            Claimant::Kernel => audit.kernel_ns += time.cpu_ns,
            Claimant::Other => audit.other_ns += time.cpu_ns,
        }
    }
    audit
}

/// Identity of a thread in a window, whatever the socket.
pub(super) fn thread_identity(key: u64) -> u64 {
    // Everything but the socket byte.
    ThreadKey(key).0 & !0xff
}
