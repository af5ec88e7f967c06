//! What the processes are that other tables know by pid.

use super::{Boot, Column, Get, Table, UnixMicros, int};
use crate::events::{ProcessInfo, Runtime};

pub struct Processes;

pub struct ProcessRecord<'a> {
    pub run_id: &'a str,
    /// First window after this became known, and the machine's start.
    pub seen: Option<(UnixMicros, Boot)>,
    pub info: &'a ProcessInfo,
}

/// Version, main class, collector and way of unwinding; all `None` unless it is a JVM.
fn jvm(info: &ProcessInfo) -> [Option<&str>; 4] {
    match &info.runtime {
        Runtime::Native => [None; 4],
        Runtime::Jvm { version, main_class, collector, unwinding, .. } => {
            [version, main_class, collector, unwinding].map(Option::as_deref)
        }
    }
}

fn debug_non_safepoints(info: &ProcessInfo) -> Option<bool> {
    match &info.runtime {
        Runtime::Native => None,
        Runtime::Jvm { debug_non_safepoints, .. } => *debug_non_safepoints,
    }
}

const NOT_KNOWN_JVM: &str = "no JVM, or not known";

impl Table for Processes {
    const NAME: &'static str = "processes";
    const ROW: &'static str = "a process, each time something new is known about it; the latest window_start is the \
                               latest knowledge";
    const BY_POLICY: bool = false;
    type Row<'a> = ProcessRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        let mut columns = identity_columns();
        columns.extend(runtime_columns());
        columns.extend(place_columns());
        columns
    }
}

fn identity_columns() -> Vec<Column<Processes>> {
    vec![
        Column::<Processes>::new("run_id", Get::Name(|r| Some(r.run_id.into())), "run", "run, as in table runs"),
        Column::<Processes>::new(
            "window_start",
            Get::Time(|r| Some(r.seen?.0.0)),
            "wall clock",
            "first window that this holds for",
        )
        .null("the run ended before that window did"),
        Column::<Processes>::new("pid", Get::Int(|r| Some(r.info.pid.0.into())), "kernel", "process, host namespace"),
        Column::<Processes>::new(
            "process_start",
            Get::Time(|r| r.seen?.1.wall_time(r.info.start_boottime_ns)),
            "kernel",
            "start of the process; with pid its identity",
        )
        .null("the run ended before its first window did"),
        Column::<Processes>::new(
            "start_boottime_ns",
            Get::Quantity(|r| int(r.info.start_boottime_ns)),
            "kernel",
            "the same since boot, rounded down to 10 ms",
        )
        .unit("ns"),
        Column::<Processes>::new("parent_pid", Get::Int(|r| Some(r.info.parent.0.into())), "/proc", "parent process"),
        Column::<Processes>::new("comm", Get::Name(|r| Some(r.info.comm.as_str().into())), "kernel", "process name"),
        Column::<Processes>::new(
            "command_line",
            Get::TextList(|r| &r.info.command_line),
            "/proc",
            "program and arguments",
        ),
        Column::<Processes>::new(
            "executable",
            Get::Name(|r| r.info.executable.as_deref().map(Into::into)),
            "/proc",
            "program file",
        )
        .null("could not be read"),
        Column::<Processes>::new(
            "is_target",
            Get::Flag(|r| Some(r.info.is_target)),
            "run",
            "selected, so that it has rows elsewhere",
        ),
    ]
}

fn runtime_columns() -> Vec<Column<Processes>> {
    vec![
        Column::<Processes>::new(
            "runtime",
            Get::Name(|r| Some(if matches!(r.info.runtime, Runtime::Native) { "native" } else { "jvm" }.into())),
            "/proc",
            "jvm or native",
        ),
        Column::<Processes>::new(
            "main_class",
            Get::Name(|r| jvm(r.info)[1].map(Into::into)),
            "JVM",
            "main class or jar",
        )
        .null(NOT_KNOWN_JVM),
        Column::<Processes>::new(
            "jvm_version",
            Get::Name(|r| jvm(r.info)[0].map(Into::into)),
            "JVM, else its release file",
            "JVM version",
        )
        .null(NOT_KNOWN_JVM),
        Column::<Processes>::new(
            "collector",
            Get::Name(|r| jvm(r.info)[2].map(Into::into)),
            "JVM",
            "garbage collector",
        )
        .null(NOT_KNOWN_JVM),
        Column::<Processes>::new(
            "unwinding",
            Get::Name(|r| jvm(r.info)[3].map(Into::into)),
            "JVM",
            "hotspot: stacks from the JVM's own metadata; else why not: frame pointers and perf map",
        )
        .null(NOT_KNOWN_JVM),
        Column::<Processes>::new(
            "debug_non_safepoints",
            Get::Flag(|r| debug_non_safepoints(r.info)),
            "JVM",
            "flag DebugNonSafepoints; without it, which inlined method a leaf is in is coarse",
        )
        .null(NOT_KNOWN_JVM),
    ]
}

fn place_columns() -> Vec<Column<Processes>> {
    vec![
        Column::<Processes>::new("uid", Get::Int(|r| Some(r.info.uid.into())), "/proc", "user"),
        Column::<Processes>::new("gid", Get::Int(|r| Some(r.info.gid.into())), "/proc", "group"),
        Column::<Processes>::new(
            "namespace_pid",
            Get::Int(|r| Some(r.info.namespace_pid.into())),
            "/proc",
            "pid in its namespace",
        ),
        Column::<Processes>::new(
            "cgroup",
            Get::Name(|r| r.info.cgroup.as_deref().map(Into::into)),
            "/proc",
            "control group",
        )
        .null("could not be read"),
        Column::<Processes>::new(
            "container",
            Get::Name(|r| r.info.container.as_deref().map(Into::into)),
            "cgroup",
            "container id",
        )
        .null("not in a container"),
        Column::<Processes>::new(
            "pod",
            Get::Name(|r| r.info.pod.as_deref().map(Into::into)),
            "cgroup",
            "Kubernetes pod uid",
        )
        .null("not in a pod"),
    ]
}
