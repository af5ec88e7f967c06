//! Describes the processes that other tables know by pid.

use super::{
    Boot, Column, ColumnOf, Table, UnixMicros, int, kind,
    shared::{self, COMM, PID, RUN_ID},
};
use crate::{
    events::{ProcessInfo, Runtime},
    model::target_text::TargetText,
};

pub(crate) const WINDOW_START: Column<kind::Time> =
    Column::new("window_start", "wall clock", "first window that the row holds for")
        .null("the run ended before that window ended");
pub(crate) const PROCESS_START: Column<kind::Time> = shared::PROCESS_START.null("window_start is null");
pub(crate) const START_BOOTTIME_NS: Column<kind::Int> =
    Column::quantity("start_boottime_ns", "kernel", "start of the process since boot, rounded down to 10 ms")
        .unit("ns");
pub(crate) const PARENT_PID: Column<kind::Int> = Column::new("parent_pid", "/proc", "parent process");
pub(crate) const COMMAND_LINE: Column<kind::TextList> = Column::new(
    "command_line",
    "/proc",
    "program and arguments, without secrets unless --command-line full is given; empty with none",
);
pub(crate) const EXECUTABLE: Column<kind::Name> =
    Column::new("executable", "/proc", "program file").null("could not be read");
pub(crate) const IS_TARGET: Column<kind::Flag> =
    Column::new("is_target", "run", "whether it is a target, with rows in other tables");
pub(crate) const RUNTIME: Column<kind::Name> = Column::new("runtime", "/proc", "jvm or native");
pub(crate) const MAIN_CLASS: Column<kind::Name> =
    Column::new("main_class", "JVM", "main class or jar").null(NOT_KNOWN_JVM);
pub(crate) const JVM_VERSION: Column<kind::Name> =
    Column::new("jvm_version", "JVM, else its release file", "JVM version").null(NOT_KNOWN_JVM);
pub(crate) const COLLECTOR: Column<kind::Name> =
    Column::new("collector", "JVM", "garbage collector").null(NOT_KNOWN_JVM);
pub(crate) const UNWINDING: Column<kind::Name> = Column::new(
    "unwinding",
    "JVM",
    "hotspot: stacks by the JVM's metadata; else why they are by frame pointers and perf map",
)
.null(NOT_KNOWN_JVM);
pub(crate) const DEBUG_NON_SAFEPOINTS: Column<kind::Flag> = Column::new(
    "debug_non_safepoints",
    "JVM",
    "flag DebugNonSafepoints; without it, the inlined method of a leaf is coarse",
)
.null(NOT_KNOWN_JVM);
pub(crate) const UID: Column<kind::Int> = Column::new("uid", "/proc", "user");
pub(crate) const GID: Column<kind::Int> = Column::new("gid", "/proc", "group");
pub(crate) const NAMESPACE_PID: Column<kind::Int> = Column::new("namespace_pid", "/proc", "pid in its namespace");
pub(crate) const CGROUP: Column<kind::Name> = Column::new("cgroup", "/proc", "control group").null("could not be read");
pub(crate) const CONTAINER: Column<kind::Name> =
    Column::new("container", "cgroup", "container id").null("not in a container");
pub(crate) const POD: Column<kind::Name> = Column::new("pod", "cgroup", "Kubernetes pod uid").null("not in a pod");
pub(crate) const UNIT: Column<kind::Name> =
    Column::new("unit", "cgroup", "systemd unit").null("in no unit of a service");
pub(crate) const SERVICE: Column<kind::Name> =
    Column::new("service", "see service_from", "service that the process belongs to").null(NO_SERVICE);
pub(crate) const VERSION: Column<kind::Name> =
    Column::new("version", "rule, else the jar", "version of the service").null("not known");
pub(crate) const SERVICE_FROM: Column<kind::Name> = Column::new(
    "service_from",
    "run",
    "where the name of the service comes from: rule, otel, label, unit, image, jar, main-class or comm",
)
.null(NO_SERVICE);
pub(crate) const NAMESPACE: Column<kind::Name> =
    Column::new("namespace", "Kubernetes", "namespace of the pod").null(NO_WORKLOAD);
pub(crate) const POD_NAME: Column<kind::Name> =
    Column::new("pod_name", "Kubernetes", "name of the pod").null(NO_WORKLOAD);
pub(crate) const CONTAINER_NAME: Column<kind::Name> =
    Column::new("container_name", "Kubernetes", "name of the container in its pod").null(NO_WORKLOAD);
pub(crate) const IMAGE: Column<kind::Name> =
    Column::new("image", "Kubernetes", "image of the container").null(NO_WORKLOAD);
pub(crate) const LABELS: Column<kind::TextList> =
    Column::new("labels", "Kubernetes", "labels of the pod, each as key=value");

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
            [version, main_class, collector, unwinding].map(|text| text.as_ref().map(TargetText::raw))
        }
    }
}

fn debug_non_safepoints(info: &ProcessInfo) -> Option<bool> {
    match &info.runtime {
        Runtime::Native => None,
        Runtime::Jvm { debug_non_safepoints, .. } => *debug_non_safepoints,
    }
}

const NOT_KNOWN_JVM: &str = "not a JVM, or not known";
const NO_WORKLOAD: &str = "not in a pod, or neither kubelet nor CRI was asked";
const NO_SERVICE: &str = "not known";

impl Table for Processes {
    const NAME: &'static str = "processes";
    const ROW: &'static str = "what is known about a process; a new row whenever that changes, so the latest \
                               window_start counts";
    const BY_POLICY: bool = false;
    type Row<'a> = ProcessRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let mut columns = identity_columns();
        columns.extend(runtime_columns());
        columns.extend(place_columns());
        columns.extend(service_columns());
        columns.extend(workload_columns());
        columns
    }
}

fn identity_columns() -> Vec<ColumnOf<Processes>> {
    vec![
        RUN_ID.of::<Processes>(|r| Some(r.run_id.into())),
        WINDOW_START.of::<Processes>(|r| Some(r.seen?.0.0)),
        PID.of::<Processes>(|r| Some(r.info.pid.0.into())),
        PROCESS_START.of::<Processes>(|r| r.seen?.1.wall_time(r.info.start_boottime_ns)),
        START_BOOTTIME_NS.of::<Processes>(|r| int(r.info.start_boottime_ns)),
        PARENT_PID.of::<Processes>(|r| Some(r.info.parent.0.into())),
        COMM.of::<Processes>(|r| Some(r.info.comm.raw().into())),
        COMMAND_LINE.of::<Processes>(|r| r.info.command_line.iter().map(|text| text.raw().into()).collect()),
        EXECUTABLE.of::<Processes>(|r| r.info.executable.as_ref().map(|text| text.raw().into())),
        IS_TARGET.of::<Processes>(|r| Some(r.info.is_target)),
    ]
}

fn runtime_columns() -> Vec<ColumnOf<Processes>> {
    vec![
        RUNTIME
            .of::<Processes>(|r| Some(if matches!(r.info.runtime, Runtime::Native) { "native" } else { "jvm" }.into())),
        MAIN_CLASS.of::<Processes>(|r| jvm(r.info)[1].map(Into::into)),
        JVM_VERSION.of::<Processes>(|r| jvm(r.info)[0].map(Into::into)),
        COLLECTOR.of::<Processes>(|r| jvm(r.info)[2].map(Into::into)),
        UNWINDING.of::<Processes>(|r| jvm(r.info)[3].map(Into::into)),
        DEBUG_NON_SAFEPOINTS.of::<Processes>(|r| debug_non_safepoints(r.info)),
    ]
}

fn place_columns() -> Vec<ColumnOf<Processes>> {
    vec![
        UID.of::<Processes>(|r| Some(r.info.uid.into())),
        GID.of::<Processes>(|r| Some(r.info.gid.into())),
        NAMESPACE_PID.of::<Processes>(|r| Some(r.info.namespace_pid.into())),
        CGROUP.of::<Processes>(|r| r.info.cgroup.as_ref().map(|text| text.raw().into())),
        CONTAINER.of::<Processes>(|r| r.info.container.as_ref().map(|text| text.raw().into())),
        POD.of::<Processes>(|r| r.info.pod.as_ref().map(|text| text.raw().into())),
    ]
}

fn service_columns() -> Vec<ColumnOf<Processes>> {
    vec![
        UNIT.of::<Processes>(|r| r.info.unit.as_ref().map(|text| text.raw().into())),
        SERVICE.of::<Processes>(|r| Some(r.info.service.as_ref()?.name.raw().into())),
        VERSION.of::<Processes>(|r| Some(r.info.service.as_ref()?.version.as_ref()?.raw().into())),
        SERVICE_FROM.of::<Processes>(|r| Some(r.info.service.as_ref()?.from.name().into())),
    ]
}

fn workload_columns() -> Vec<ColumnOf<Processes>> {
    vec![
        NAMESPACE.of::<Processes>(|r| Some(r.info.workload.as_ref()?.namespace.raw().into())),
        POD_NAME.of::<Processes>(|r| Some(r.info.workload.as_ref()?.pod.raw().into())),
        CONTAINER_NAME.of::<Processes>(|r| Some(r.info.workload.as_ref()?.container.as_ref()?.raw().into())),
        IMAGE.of::<Processes>(|r| Some(r.info.workload.as_ref()?.image.as_ref()?.raw().into())),
        LABELS.of::<Processes>(|r| {
            r.info.workload.iter().flat_map(|known| &known.labels).map(|label| label.raw().into()).collect()
        }),
    ]
}
