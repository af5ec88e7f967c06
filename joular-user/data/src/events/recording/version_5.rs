//! Reads recordings of format version 5. They do not say what Kubernetes runs in a process's container.
//! Everything else is as it is today.

use serde::Deserialize;

pub(super) use super::version_4::Event;
use crate::{
    events::{ProcessInfo as NewProcessInfo, Runtime, Service},
    model::{target_text::TargetText, units::Pid},
};

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
    unit: Option<TargetText>,
    service: Option<Service>,
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
            unit: old.unit,
            workload: None,
            service: old.service,
            runtime: old.runtime,
            is_target: old.is_target,
            is_helper: old.is_helper,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            tests::{framed, read, small_run, with_stream_of},
            version_4::tests::old,
        },
        *,
    };
    use crate::events::Event as NewEvent;

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
            unit: of.unit,
            service: of.service,
            runtime: of.runtime,
            is_target: of.is_target,
            is_helper: of.is_helper,
        }
    }

    #[test]
    fn a_recording_of_version_5_is_read_as_the_events_of_today() {
        let mut events = small_run();
        let process = NewProcessInfo {
            unit: Some("a.service".into()),
            service: Some(Service::default()),
            ..NewProcessInfo::default()
        };
        events.insert(1, NewEvent::Process(Box::new(process)));
        let stream =
            events.iter().cloned().map(|event| framed(&postcard::to_stdvec(&old(event, old_process)).unwrap()));
        let (found, error) = read(&with_stream_of(5, &stream.collect::<Vec<_>>().concat()));
        assert!(error.is_none(), "{error:?}");
        assert_eq!(found, events);
    }
}
