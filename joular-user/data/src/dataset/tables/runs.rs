//! Describes runs: on what, with what and how the figures were made.

use super::{Column, ColumnOf, Table, int, kind};
use crate::{
    dataset::schema,
    events::{RunEnd, RunInfo},
    model::domain::Label,
    totals::RunSums,
};

pub(crate) const RUN_ID: Column<kind::Text> = Column::new("run_id", "run", "unique name of the run");
pub(crate) const SCHEMA_VERSION: Column<kind::Int> =
    Column::new("schema_version", "joular-bpf", "version of this schema");
pub(crate) const STARTED: Column<kind::Time> = Column::new("started", "wall clock", "start of the run");
pub(crate) const HOSTNAME: Column<kind::Text> = Column::new("hostname", "kernel", "the host's own name");
pub(crate) const MACHINE_ID: Column<kind::Text> =
    Column::new("machine_id", "/etc", "id of the installed system: machine-id(5)").null("there is none");
pub(crate) const INSTANCE_ID: Column<kind::Text> =
    Column::new("instance_id", "cloud-init, DMI", "what the cloud calls the machine").null("not known");
pub(crate) const LABELS: Column<kind::TextList> =
    Column::new("labels", "configuration", "labels of the host, each as key=value");
pub(crate) const VERSION: Column<kind::Text> = Column::new("version", "joular-bpf", "version of joular-bpf");
pub(crate) const KERNEL: Column<kind::Text> = Column::new("kernel", "kernel", "kernel release");
pub(crate) const CPU_MODEL: Column<kind::Text> = Column::new("cpu_model", "/proc", "CPU model");
pub(crate) const ARCH: Column<kind::Text> = Column::new("arch", "kernel", "architecture");
pub(crate) const ONLINE_CPUS: Column<kind::Int> = Column::new("online_cpus", "/sys", "online CPUs").unit("CPUs");
pub(crate) const SOCKETS: Column<kind::Int> = Column::new("sockets", "/sys", "physical packages");
pub(crate) const MEMORY_BYTES: Column<kind::Int> = Column::new("memory_bytes", "/proc", "memory").unit("bytes");
pub(crate) const COMMAND_LINE: Column<kind::TextList> =
    Column::new("command_line", "run", "arguments of joular-bpf, without secrets as in processes");
pub(crate) const SAMPLING_EVENT: Column<kind::Text> =
    Column::new("sampling_event", "kernel", "what takes the samples: timer or cpu-clock (docs/sampling.md)");
pub(crate) const FREQUENCY_HZ: Column<kind::Int> =
    Column::new("frequency_hz", "run", "samples per second of CPU time, on average").unit("Hz");
pub(crate) const INTERVAL_NS: Column<kind::Int> = Column::new("interval_ns", "run", "nominal window length").unit("ns");
pub(crate) const ROLLED_UP_FROM_NS: Column<kind::Int> =
    Column::new("rolled_up_from_ns", "run", "nominal length of the windows that the run's windows are sums of")
        .unit("ns")
        .null("as recorded, no rollup");
pub(crate) const ROLLED_UP_BY: Column<kind::Text> =
    Column::new("rolled_up_by", "joular-bpf", "version of the joular-bpf that summed the windows")
        .null("as recorded, no rollup")
        .since(11);
pub(crate) const ENERGY_SOURCE: Column<kind::Text> = Column::new("energy_source", "run", "energy source");
pub(crate) const ENERGY_REASON: Column<kind::Text> = Column::new("energy_reason", "run", "why this source was chosen");
pub(crate) const ENERGY_LABEL: Column<kind::Text> = Column::new(
    "energy_label",
    "energy source",
    "measured, measured_coarsely, reported, modelled_by_processor, modelled or replayed: the weakest of its domains",
)
.null("no energy source");
pub(crate) const DOMAINS: Column<kind::Text> = Column::new(
    "domains",
    "energy source",
    "energy domains, how their readings become energy, how often counters advance and what it is divided by, as JSON",
);
pub(crate) const IDLE_POLICY: Column<kind::Text> = Column::new("idle_policy", "run", "separate, spread or active");
pub(crate) const IDLE_MILLIWATTS: Column<kind::Int> = Column::new(
    "idle_milliwatts",
    "calibration",
    "idle power that was given for a socket, else 0; its package domains share it equally",
)
.unit("mW");
pub(crate) const SMT_PERMILLE: Column<kind::Int> =
    Column::new("smt_permille", "run", "power of two busy hyper-threads of a core relative to one, in thousandths");
pub(crate) const WEIGHT_UNIT: Column<kind::Text> =
    Column::new("weight_unit", "run", "what energy is divided by: time or cycles");
pub(crate) const CALIBRATION: Column<kind::Text> = Column::new(
    "calibration",
    "calibration",
    "idle power of domains and cost of the instrument that attribution took into account, as JSON",
)
.null("not calibrated");
pub(crate) const WATTS_BY: Column<kind::Text> =
    Column::new("watts_by", "reattribute", "groups of threads whose fitted watts weigh CPU time, such as service")
        .null("time counts alike for all");
pub(crate) const PROFILER_PID: Column<kind::Int> = Column::new("profiler_pid", "run", "process of joular-bpf itself");
pub(crate) const BOOTTIME_OFFSET_NS: Column<kind::Int> =
    Column::new("boottime_offset_ns", "kernel", "how long the machine had been suspended").unit("ns");
pub(crate) const ENDED_AT: Column<kind::Time> = Column::new("ended_at", "wall clock", "end of the run").null(NOT_ENDED);
pub(crate) const END_REASON: Column<kind::Text> =
    Column::new("end_reason", "run", "duration, SIGINT, SIGTERM, …").null(NOT_ENDED);
pub(crate) const WINDOWS: Column<kind::Int> =
    Column::new("windows", "attribution", "number of windows").unit("windows").null(NOT_ENDED);
pub(crate) const MEASURED_UJ: Column<kind::Int> =
    Column::new("measured_uj", "attribution", "energy of the run").unit("µJ").null(NOT_ENDED);
pub(crate) const ATTRIBUTED_UJ: Column<kind::Int> =
    Column::new("attributed_uj", "attribution", "energy of the targets' threads").unit("µJ").null(NOT_ENDED);
pub(crate) const STATIC_UJ: Column<kind::Int> =
    Column::new("static_uj", "attribution", "idle share, by policy").unit("µJ").null(NOT_ENDED);
pub(crate) const PROFILER_UJ: Column<kind::Int> =
    Column::new("profiler_uj", "attribution", "of unattributed: joular-bpf itself").unit("µJ").null(NOT_ENDED);
pub(crate) const UNATTRIBUTED_UJ: Column<kind::Int> =
    Column::new("unattributed_uj", "attribution", "the rest; table windows has it by cause").unit("µJ").null(NOT_ENDED);
pub(crate) const SAMPLES: Column<kind::Int> =
    Column::new("samples", "attribution", "samples of targets").unit("samples").null(NOT_ENDED);
pub(crate) const LOST: Column<kind::Int> =
    Column::new("lost", "attribution", "losses of all causes").unit("events").null(NOT_ENDED);

pub struct Runs;

pub struct RunRecord<'a> {
    pub run: &'a RunInfo,
    /// How it ended, once it has.
    pub end: Option<(&'a RunEnd, &'a RunSums)>,
    /// Of a rollup: nominal length of the windows that its windows are sums of.
    pub rolled_up_from_ns: Option<u64>,
}

const NOT_ENDED: &str = "still running, or did not end properly";

impl Table for Runs {
    const NAME: &'static str = "runs";
    const ROW: &'static str = "a run; written at its start, replaced at its end";
    const BY_POLICY: bool = true;
    type Row<'a> = RunRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let mut columns = machine_columns();
        columns.extend(settings_columns());
        columns.extend(end_columns());
        columns
    }
}

fn text(value: &str) -> Option<std::borrow::Cow<'_, str>> {
    Some(value.into())
}

fn machine_columns() -> Vec<ColumnOf<Runs>> {
    vec![
        RUN_ID.of::<Runs>(|r| text(&r.run.run_id)),
        SCHEMA_VERSION.of::<Runs>(|_| Some(schema::SCHEMA_VERSION)),
        STARTED.of::<Runs>(|r| Some(r.run.started.0)),
        HOSTNAME.of::<Runs>(|r| text(r.run.host.raw())),
        MACHINE_ID.of::<Runs>(|r| text(r.run.identity.machine_id.as_ref()?.raw())),
        INSTANCE_ID.of::<Runs>(|r| text(r.run.identity.instance_id.as_ref()?.raw())),
        LABELS.of::<Runs>(|r| r.run.identity.labels.iter().map(|label| label.raw().into()).collect()),
        VERSION.of::<Runs>(|r| text(&r.run.version)),
        KERNEL.of::<Runs>(|r| text(&r.run.kernel)),
        CPU_MODEL.of::<Runs>(|r| text(&r.run.cpu_model)),
        ARCH.of::<Runs>(|r| text(&r.run.arch)),
        ONLINE_CPUS.of::<Runs>(|r| Some(r.run.online_cpus.into())),
        SOCKETS.of::<Runs>(|r| Some(r.run.sockets.into())),
        MEMORY_BYTES.of::<Runs>(|r| int(r.run.memory_bytes)),
        COMMAND_LINE.of::<Runs>(|r| r.run.command_line.iter().map(Into::into).collect()),
    ]
}

fn settings_columns() -> Vec<ColumnOf<Runs>> {
    vec![
        SAMPLING_EVENT.of::<Runs>(|r| text(&r.run.sampling_event)),
        FREQUENCY_HZ.of::<Runs>(|r| Some(r.run.frequency_hz.into())),
        INTERVAL_NS.of::<Runs>(|r| int(r.run.interval_ns)),
        ROLLED_UP_FROM_NS.of::<Runs>(|r| int(r.rolled_up_from_ns?)),
        ROLLED_UP_BY.of::<Runs>(|r| r.rolled_up_from_ns.and_then(|_| text(env!("CARGO_PKG_VERSION")))),
        ENERGY_SOURCE.of::<Runs>(|r| text(&r.run.energy_source)),
        ENERGY_REASON.of::<Runs>(|r| text(&r.run.energy_reason)),
        ENERGY_LABEL.of::<Runs>(|r| weakest_label(r.run).map(|label| label.name().into())),
        DOMAINS.of::<Runs>(|r| serde_json::to_string(&r.run.domains).ok().map(Into::into)),
        IDLE_POLICY.of::<Runs>(|r| text(r.run.policy.idle.name())),
        IDLE_MILLIWATTS.of::<Runs>(|r| int(r.run.policy.idle_milliwatts)),
        SMT_PERMILLE.of::<Runs>(|r| Some(r.run.policy.smt_permille.into())),
        WEIGHT_UNIT.of::<Runs>(|r| text(r.run.policy.weight_unit.name())),
        CALIBRATION.of::<Runs>(|r| serde_json::to_string(r.run.policy.calibration.as_ref()?).ok().map(Into::into)),
        WATTS_BY.of::<Runs>(|r| text(r.run.policy.watts_by.as_deref()?)),
        PROFILER_PID.of::<Runs>(|r| Some(r.run.profiler_pid.0.into())),
        BOOTTIME_OFFSET_NS.of::<Runs>(|r| int(r.run.boottime_offset_ns)),
    ]
}

fn end_columns() -> Vec<ColumnOf<Runs>> {
    vec![
        ENDED_AT.of::<Runs>(|r| Some(r.end?.0.ended.0)),
        END_REASON.of::<Runs>(|r| text(&r.end?.0.reason)),
        WINDOWS.of::<Runs>(|r| int(r.end?.1.windows)),
        MEASURED_UJ.of::<Runs>(|r| int(r.end?.1.measured.0)),
        ATTRIBUTED_UJ.of::<Runs>(|r| int(r.end?.1.attributed.0)),
        STATIC_UJ.of::<Runs>(|r| int(r.end?.1.static_share.0)),
        PROFILER_UJ.of::<Runs>(|r| int(r.end?.1.unattributed.profiler.0)),
        UNATTRIBUTED_UJ.of::<Runs>(|r| int(r.end?.1.unattributed.total().0)),
        SAMPLES.of::<Runs>(|r| int(r.end?.1.samples)),
        LOST.of::<Runs>(|r| int(r.end?.1.lost())),
    ]
}

/// The label that the run's figures as a whole deserve.
pub fn weakest_label(run: &RunInfo) -> Option<Label> {
    run.domains.iter().map(|domain| domain.label).max()
}
