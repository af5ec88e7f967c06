//! Reads recordings of format version 3. They know no kinds of samples (all were of CPU time), no
//! choice of what a domain is divided by (it was CPU weights), and do not say which processes were
//! joular-bpf's helpers (its children that were not targets).
//!
//! postcard writes no names, so an event can only be read as exactly what was written. Types that
//! have changed since are kept here as they were.

use serde::Deserialize;

use crate::{
    events::{
        CpuTimes, EnergyReading, Event as NewEvent, LossCount, ProcessInfo as NewProcessInfo, RawStack, RunEnd,
        RunInfo as NewRunInfo, Runtime, SampleCount as NewSampleCount, SampleKind, Symbol, ThreadTime,
        Window as NewWindow,
    },
    model::{
        domain::{DividedBy, Domain as NewDomain, Label, Meter, Role},
        policy::Policy,
        target_text::TargetText,
        units::{MonotonicNs, Pid, Tid, UnixMicros},
    },
};

/// Turns events of version 3 into today's events.
#[derive(Debug, Default)]
pub(super) struct Upgrade {
    /// As the run's first event says it.
    profiler: Pid,
}

impl Upgrade {
    pub(super) fn event(&mut self, event: Event) -> NewEvent {
        match event {
            Event::RunStarted(run) => {
                self.profiler = run.profiler_pid;
                NewEvent::RunStarted(Box::new((*run).into()))
            }
            Event::Process(process) => NewEvent::Process(Box::new(self.process(*process))),
            Event::ProcessEnded { pid, start_boottime_ns } => NewEvent::ProcessEnded { pid, start_boottime_ns },
            Event::Stack(stack) => NewEvent::Stack(stack),
            Event::Symbols { pid, start_boottime_ns, symbols } => NewEvent::Symbols { pid, start_boottime_ns, symbols },
            Event::StacksForgotten(ids) => NewEvent::StacksForgotten(ids),
            Event::Energy(reading) => NewEvent::Energy(reading),
            Event::Window(window) => NewEvent::Window(Box::new((*window).into())),
            Event::RunEnded(end) => NewEvent::RunEnded(end),
        }
    }

    fn process(&self, old: ProcessInfo) -> NewProcessInfo {
        NewProcessInfo {
            pid: old.pid,
            start_boottime_ns: old.start_boottime_ns,
            parent: old.parent,
            comm: old.comm,
            command_line: old.command_line,
            executable: old.executable,
            uid: old.uid,
            gid: old.gid,
            namespace_pid: old.namespace_pid,
            cgroup: old.cgroup,
            container: old.container,
            pod: old.pod,
            unit: None,
            workload: None,
            service: None,
            runtime: old.runtime,
            is_target: old.is_target,
            is_helper: !old.is_target && old.parent == self.profiler,
        }
    }
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) enum Event {
    RunStarted(Box<RunInfo>),
    Process(Box<ProcessInfo>),
    ProcessEnded { pid: Pid, start_boottime_ns: u64 },
    Stack(RawStack),
    Symbols { pid: Pid, start_boottime_ns: u64, symbols: Vec<Symbol> },
    StacksForgotten(Vec<u64>),
    Energy(EnergyReading),
    Window(Box<Window>),
    RunEnded(RunEnd),
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct RunInfo {
    run_id: String,
    host: TargetText,
    started: UnixMicros,
    boottime_offset_ns: u64,
    version: String,
    kernel: String,
    cpu_model: String,
    arch: String,
    online_cpus: u32,
    sockets: u32,
    memory_bytes: u64,
    command_line: Vec<String>,
    sampling_event: String,
    frequency_hz: u32,
    interval_ns: u64,
    energy_source: String,
    energy_reason: String,
    domains: Vec<Domain>,
    policy: Policy,
    profiler_pid: Pid,
}

impl From<RunInfo> for NewRunInfo {
    fn from(old: RunInfo) -> Self {
        Self {
            run_id: old.run_id,
            host: old.host,
            started: old.started,
            boottime_offset_ns: old.boottime_offset_ns,
            version: old.version,
            kernel: old.kernel,
            cpu_model: old.cpu_model,
            arch: old.arch,
            online_cpus: old.online_cpus,
            sockets: old.sockets,
            memory_bytes: old.memory_bytes,
            command_line: old.command_line,
            sampling_event: old.sampling_event,
            frequency_hz: old.frequency_hz,
            interval_ns: old.interval_ns,
            energy_source: old.energy_source,
            energy_reason: old.energy_reason,
            domains: old.domains.into_iter().map(Into::into).collect(),
            policy: old.policy,
            profiler_pid: old.profiler_pid,
        }
    }
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
struct Domain {
    name: String,
    socket: Option<u32>,
    core: Option<u32>,
    source: String,
    label: Label,
    meter: Meter,
    role: Role,
    less: Vec<usize>,
}

impl From<Domain> for NewDomain {
    fn from(old: Domain) -> Self {
        Self {
            name: old.name,
            socket: old.socket,
            core: old.core,
            source: old.source,
            label: old.label,
            meter: old.meter,
            role: old.role,
            less: old.less,
            divided_by: DividedBy::CpuWeights,
        }
    }
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct ProcessInfo {
    pid: Pid,
    start_boottime_ns: u64,
    parent: Pid,
    comm: TargetText,
    command_line: Vec<TargetText>,
    executable: Option<TargetText>,
    uid: u32,
    gid: u32,
    namespace_pid: u32,
    cgroup: Option<TargetText>,
    container: Option<TargetText>,
    pod: Option<TargetText>,
    runtime: Runtime,
    is_target: bool,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) struct Window {
    index: u64,
    start: MonotonicNs,
    end: MonotonicNs,
    wall_start: UnixMicros,
    threads: Vec<ThreadTime>,
    samples: Vec<SampleCount>,
    cpus: Vec<CpuTimes>,
    losses: Vec<LossCount>,
}

impl From<Window> for NewWindow {
    fn from(old: Window) -> Self {
        Self {
            index: old.index,
            start: old.start,
            end: old.end,
            wall_start: old.wall_start,
            threads: old.threads,
            samples: old.samples.into_iter().map(Into::into).collect(),
            cpus: old.cpus,
            losses: old.losses,
        }
    }
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
struct SampleCount {
    tid: Tid,
    pid: Pid,
    thread_key: u64,
    user_stack: u64,
    kernel_stack: u64,
    count: u32,
}

impl From<SampleCount> for NewSampleCount {
    fn from(old: SampleCount) -> Self {
        Self {
            kind: SampleKind::CpuTime,
            tid: old.tid,
            pid: old.pid,
            thread_key: old.thread_key,
            user_stack: old.user_stack,
            kernel_stack: old.kernel_stack,
            count: old.count,
        }
    }
}

#[cfg(test)]
mod tests;
