//! Reads recordings of format version 4. They do not say to which service and systemd unit a process
//! belongs. Everything else is as it is today.

use serde::Deserialize;

use crate::{
    events::{
        EnergyReading, Event as NewEvent, ProcessInfo as NewProcessInfo, RawStack, RunEnd, RunInfo, Runtime, Symbol,
        Window, WindowContext,
    },
    model::{target_text::TargetText, units::Pid},
};

/// Events with what was known of a process then.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize))]
pub(super) enum Event<P> {
    RunStarted(Box<RunInfo>),
    Process(Box<P>),
    ProcessEnded { pid: Pid, start_boottime_ns: u64 },
    Stack(RawStack),
    Symbols { pid: Pid, start_boottime_ns: u64, symbols: Vec<Symbol> },
    StacksForgotten(Vec<u64>),
    Energy(EnergyReading),
    Window(Box<Window>),
    RunEnded(RunEnd),
    Context(Box<WindowContext>),
}

impl<P: Into<NewProcessInfo>> From<Event<P>> for NewEvent {
    fn from(old: Event<P>) -> Self {
        match old {
            Event::RunStarted(run) => Self::RunStarted(run),
            Event::Process(process) => Self::Process(Box::new((*process).into())),
            Event::ProcessEnded { pid, start_boottime_ns } => Self::ProcessEnded { pid, start_boottime_ns },
            Event::Stack(stack) => Self::Stack(stack),
            Event::Symbols { pid, start_boottime_ns, symbols } => Self::Symbols { pid, start_boottime_ns, symbols },
            Event::StacksForgotten(ids) => Self::StacksForgotten(ids),
            Event::Energy(reading) => Self::Energy(reading),
            Event::Window(window) => Self::Window(window),
            Event::RunEnded(end) => Self::RunEnded(end),
            Event::Context(context) => Self::Context(context),
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
    is_helper: bool,
}

impl From<ProcessInfo> for NewProcessInfo {
    fn from(old: ProcessInfo) -> Self {
        Self {
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
            is_helper: old.is_helper,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{
        super::tests::{framed, read, small_run, with_stream_of},
        *,
    };

    /// Today's events as they were, with processes as `process` makes them.
    pub(in super::super) fn old<P>(event: NewEvent, process: impl Fn(NewProcessInfo) -> P) -> Event<P> {
        match event {
            NewEvent::RunStarted(run) => Event::RunStarted(run),
            NewEvent::Process(known) => Event::Process(Box::new(process(*known))),
            NewEvent::ProcessEnded { pid, start_boottime_ns } => Event::ProcessEnded { pid, start_boottime_ns },
            NewEvent::Stack(stack) => Event::Stack(stack),
            NewEvent::Symbols { pid, start_boottime_ns, symbols } => Event::Symbols { pid, start_boottime_ns, symbols },
            NewEvent::StacksForgotten(ids) => Event::StacksForgotten(ids),
            NewEvent::Energy(reading) => Event::Energy(reading),
            NewEvent::Window(window) => Event::Window(window),
            NewEvent::RunEnded(end) => Event::RunEnded(end),
            NewEvent::Context(context) => Event::Context(context),
            NewEvent::Mark(_)
            | NewEvent::Counters(_)
            | NewEvent::Allocations(_)
            | NewEvent::Collections(_)
            | NewEvent::Io(_)
            | NewEvent::AllocationsUnsampled { .. } => {
                panic!("version 4 has none")
            }
        }
    }

    fn old_process(of: NewProcessInfo) -> ProcessInfo {
        ProcessInfo {
            pid: of.pid,
            start_boottime_ns: of.start_boottime_ns,
            parent: of.parent,
            comm: of.comm,
            command_line: of.command_line,
            executable: of.executable,
            uid: of.uid,
            gid: of.gid,
            namespace_pid: of.namespace_pid,
            cgroup: of.cgroup,
            container: of.container,
            pod: of.pod,
            runtime: of.runtime,
            is_target: of.is_target,
            is_helper: of.is_helper,
        }
    }

    #[test]
    fn a_recording_of_version_4_is_read_as_the_events_of_today() {
        let mut events = small_run();
        events.insert(1, NewEvent::Context(Box::default()));
        let process = NewProcessInfo { pod: Some("uid".into()), is_helper: true, uid: 5, ..NewProcessInfo::default() };
        events.insert(2, NewEvent::Process(Box::new(process)));
        let stream =
            events.iter().cloned().map(|event| framed(&postcard::to_stdvec(&old(event, old_process)).unwrap()));
        let (found, error) = read(&with_stream_of(4, &stream.collect::<Vec<_>>().concat()));
        assert!(error.is_none(), "{error:?}");
        assert_eq!(found, events);
    }
}
