//! Runs: on what, with what and how the figures were made.

use super::{Column, Get, Table, int};
use crate::{
    dataset::schema::SCHEMA_VERSION,
    events::{RunEnd, RunInfo},
    model::domain::Label,
    totals::Sums,
};

pub struct Runs;

pub struct RunRecord<'a> {
    pub run: &'a RunInfo,
    /// How it ended, once it has.
    pub end: Option<(&'a RunEnd, &'a Sums)>,
}

const NOT_ENDED: &str = "still running, or did not end in order";

impl Table for Runs {
    const NAME: &'static str = "runs";
    const ROW: &'static str = "a run; written at its start, replaced at its end";
    const BY_POLICY: bool = true;
    type Row<'a> = RunRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        let mut columns = machine_columns();
        columns.extend(settings_columns());
        columns.extend(end_columns());
        columns
    }
}

fn text(value: &str) -> Option<std::borrow::Cow<'_, str>> {
    Some(value.into())
}

fn machine_columns() -> Vec<Column<Runs>> {
    vec![
        Column::<Runs>::new("run_id", Get::Text(|r| text(&r.run.run_id)), "run", "unique name of the run"),
        Column::<Runs>::new(
            "schema_version",
            Get::Int(|_| Some(SCHEMA_VERSION)),
            "joular-bpf",
            "version of this schema",
        ),
        Column::<Runs>::new("started", Get::Time(|r| Some(r.run.started.0)), "wall clock", "start of the run"),
        Column::<Runs>::new("hostname", Get::Text(|r| text(&r.run.host)), "kernel", "host as it names itself"),
        Column::<Runs>::new("version", Get::Text(|r| text(&r.run.version)), "joular-bpf", "version of joular-bpf"),
        Column::<Runs>::new("kernel", Get::Text(|r| text(&r.run.kernel)), "kernel", "kernel release"),
        Column::<Runs>::new("cpu_model", Get::Text(|r| text(&r.run.cpu_model)), "/proc", "CPU model"),
        Column::<Runs>::new("arch", Get::Text(|r| text(&r.run.arch)), "kernel", "architecture"),
        Column::<Runs>::new("online_cpus", Get::Int(|r| Some(r.run.online_cpus.into())), "/sys", "online CPUs")
            .unit("CPUs"),
        Column::<Runs>::new("sockets", Get::Int(|r| Some(r.run.sockets.into())), "/sys", "physical packages"),
        Column::<Runs>::new("memory_bytes", Get::Int(|r| int(r.run.memory_bytes)), "/proc", "memory").unit("bytes"),
        Column::<Runs>::new("command_line", Get::TextList(|r| &r.run.command_line), "run", "arguments of joular-bpf"),
    ]
}

fn settings_columns() -> Vec<Column<Runs>> {
    vec![
        Column::<Runs>::new(
            "sampling_event",
            Get::Text(|r| text(&r.run.sampling_event)),
            "kernel",
            "cycles or cpu-clock",
        ),
        Column::<Runs>::new(
            "frequency_hz",
            Get::Int(|r| Some(r.run.frequency_hz.into())),
            "run",
            "sampling frequency per CPU",
        )
        .unit("Hz"),
        Column::<Runs>::new("interval_ns", Get::Int(|r| int(r.run.interval_ns)), "run", "nominal window length")
            .unit("ns"),
        Column::<Runs>::new("energy_source", Get::Text(|r| text(&r.run.energy_source)), "run", "energy source"),
        Column::<Runs>::new("energy_reason", Get::Text(|r| text(&r.run.energy_reason)), "run", "why this source"),
        Column::<Runs>::new(
            "energy_label",
            Get::Text(|r| weakest_label(r.run).map(|label| label.name().into())),
            "energy source",
            "measured, reported, modelled or replayed: the weakest of the run's domains",
        )
        .null("no energy source"),
        Column::<Runs>::new(
            "domains",
            Get::Text(|r| serde_json::to_string(&r.run.domains).ok().map(Into::into)),
            "energy source",
            "energy domains and how their readings become energy, as JSON",
        ),
        Column::<Runs>::new(
            "idle_policy",
            Get::Text(|r| text(r.run.policy.idle.name())),
            "run",
            "separate, spread or active",
        ),
        Column::<Runs>::new(
            "idle_milliwatts",
            Get::Int(|r| int(r.run.policy.idle_milliwatts)),
            "calibration",
            "idle power of a socket as given, 0 if not; its package domains share it equally",
        )
        .unit("mW"),
        Column::<Runs>::new(
            "smt_permille",
            Get::Int(|r| Some(r.run.policy.smt_permille.into())),
            "run",
            "power of two busy hyper-threads of a core relative to one, in thousandths",
        ),
        Column::<Runs>::new(
            "weight_unit",
            Get::Text(|r| text(r.run.policy.weight_unit.name())),
            "run",
            "what energy is divided by: time or cycles",
        ),
        Column::<Runs>::new(
            "calibration",
            Get::Text(|r| serde_json::to_string(r.run.policy.calibration.as_ref()?).ok().map(Into::into)),
            "calibration",
            "idle power of domains and cost of the instrument that attribution took into account, as JSON",
        )
        .null("not calibrated"),
        Column::<Runs>::new(
            "profiler_pid",
            Get::Int(|r| Some(r.run.profiler_pid.0.into())),
            "run",
            "process of joular-bpf itself",
        ),
        Column::<Runs>::new(
            "boottime_offset_ns",
            Get::Int(|r| int(r.run.boottime_offset_ns)),
            "kernel",
            "how long the machine had been suspended",
        )
        .unit("ns"),
    ]
}

fn end_columns() -> Vec<Column<Runs>> {
    let total = |name: &'static str, get: Get<Runs>, meaning| {
        Column::<Runs>::new(name, get, "attribution", meaning).null(NOT_ENDED)
    };
    vec![
        Column::<Runs>::new("ended_at", Get::Time(|r| Some(r.end?.0.ended.0)), "wall clock", "end of the run")
            .null(NOT_ENDED),
        Column::<Runs>::new("end_reason", Get::Text(|r| text(&r.end?.0.reason)), "run", "duration, SIGINT, SIGTERM, …")
            .null(NOT_ENDED),
        total("windows", Get::Int(|r| int(r.end?.1.windows)), "number of windows").unit("windows"),
        total("measured_uj", Get::Int(|r| int(r.end?.1.measured.0)), "energy of the run").unit("µJ"),
        total("attributed_uj", Get::Int(|r| int(r.end?.1.attributed.0)), "to threads of targets").unit("µJ"),
        total("static_uj", Get::Int(|r| int(r.end?.1.static_share.0)), "idle share, by policy").unit("µJ"),
        total("profiler_uj", Get::Int(|r| int(r.end?.1.unattributed.profiler.0)), "of unattributed: joular-bpf itself")
            .unit("µJ"),
        total("unattributed_uj", Get::Int(|r| int(r.end?.1.unattributed.total().0)), "the rest, by cause in windows")
            .unit("µJ"),
        total("samples", Get::Int(|r| int(r.end?.1.samples)), "samples of targets").unit("samples"),
        total("lost", Get::Int(|r| int(r.end?.1.lost())), "losses of all causes").unit("events"),
    ]
}

/// The label that the run's figures as a whole deserve.
pub fn weakest_label(run: &RunInfo) -> Option<Label> {
    run.domains.iter().map(|domain| domain.label).max()
}
