//! Says what [`Registry`] knows as families of metrics. docs/metrics.md describes each of them.

use std::sync::atomic::Ordering;

use joular_data::{
    events::HostIdentity,
    model::{
        measure::{Measure, Unit},
        units::{MicroJoules, UnixMicros},
    },
    stacks::JvmWork,
};

use super::{
    registry::{DomainSums, LastWindow, Process, Registry, Sum},
    sample::{Families, Figure, Kind, Labels, power},
};
use crate::output::otlp::Pushes;

/// What is known of the recorder beside its windows.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// From a window's end until its figures could be read.
    pub lag_ns: u64,
    /// `None` if the kernel does not say.
    pub resident_bytes: Option<u64>,
    pub service: ServiceFigures,
    /// `None` if nothing is pushed.
    pub pushed: Option<Pushed>,
}

/// What a service knows of its data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceFigures {
    /// Windows that could not be written; `None` if it is not a service.
    pub unwritten_windows: Option<u64>,
    /// `None` if runs are not shipped.
    pub shipped: Option<Shipped>,
}

/// What was shipped since the recording began, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shipped {
    pub runs: u64,
    pub files: u64,
    pub bytes: u64,
    pub failures: u64,
    pub missed_runs: u64,
    pub waiting_runs: u64,
    /// Of these, runs that cannot be read.
    pub unreadable_runs: u64,
    /// When the oldest run that waits began.
    pub oldest_waiting: Option<UnixMicros>,
    /// When a pass last succeeded.
    pub last_success: Option<UnixMicros>,
}

/// What became of pushes over OTLP since the recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    pub requests: u64,
    pub failures: u64,
    pub lost_profiles: u64,
}

impl Pushed {
    pub fn of(pushes: &Pushes) -> Self {
        let [requests, failures, lost_profiles] =
            [&pushes.requests, &pushes.failures, &pushes.lost_profiles].map(|count| count.load(Ordering::Relaxed));
        Self { requests, failures, lost_profiles }
    }
}

/// The method label of energy of methods without a series.
const OTHER_METHODS: &str = "[other]";

pub fn tell(out: &mut impl Families, registry: &Registry, own: Own) {
    domains(out, registry);
    processes(out, registry);
    jvms(out, registry);
    methods(out, registry);
    windows(out, registry, own.lag_ns);
    recorder(out, registry, own.resident_bytes);
    if let Some(windows) = own.service.unwritten_windows {
        out.family("joular_unwritten_windows", Kind::Counter, "Windows that could not be written to the data set.");
        out.sample(&Labels::default(), Figure::whole(windows));
    }
    if let Some(shipped) = own.service.shipped {
        shipping(out, shipped);
    }
    if let Some(pushed) = own.pushed {
        pushing(out, pushed);
    }
}

fn domains(out: &mut impl Families, registry: &Registry) {
    out.family("joular_domain_joules", Kind::Counter, "Energy of a domain; domains are disjoint.");
    for (labels, sums) in &registry.domains {
        out.sample(labels, Figure::from(sums.measured));
    }
    out.family(
        "joular_domain_part_joules",
        Kind::Counter,
        "What became of a domain's energy; parts sum to the domain.",
    );
    for (labels, sums) in &registry.domains {
        for (part, energy) in parts(sums) {
            out.sample(&labels.clone().with("part", part), Figure::from(energy));
        }
    }
    let length_ns = registry.last.map_or(0, |last| last.length_ns);
    out.family("joular_domain_watts", Kind::Gauge, "Mean power of a domain in the last window.");
    for (labels, sums) in &registry.domains {
        out.sample(labels, power(sums.now, length_ns));
    }
}

fn parts(sums: &DomainSums) -> impl Iterator<Item = (&'static str, MicroJoules)> {
    let divided = [("attributed", sums.attributed), ("static", sums.static_share)];
    divided.into_iter().chain(sums.unattributed.items())
}

fn processes(out: &mut impl Families, registry: &Registry) {
    let length_ns = registry.last.map_or(0, |last| last.length_ns);
    let none = Labels::default();
    let processes = || registry.processes.values().filter(|process| process.labels != Labels::default());
    out.family("joular_targets_joules", Kind::Counter, "Energy of all target processes, ended ones included.");
    out.sample(&none, Figure::from(registry.targets.energy));
    out.family("joular_targets_cpu_seconds", Kind::Counter, "CPU time of all target processes, ended ones included.");
    out.sample(&none, Figure::nano(registry.targets.cpu_ns));
    out.family("joular_process_joules", Kind::Counter, "Energy of a target process.");
    processes().for_each(|process| out.sample(&process.labels, Figure::from(process.sum.energy)));
    out.family("joular_process_cpu_seconds", Kind::Counter, "CPU time of a target process.");
    processes().for_each(|process| out.sample(&process.labels, Figure::nano(process.sum.cpu_ns)));
    out.family("joular_process_watts", Kind::Gauge, "Mean power of a target process in the last window.");
    processes().for_each(|process| out.sample(&process.labels, power(process.now, length_ns)));
    out.family("joular_process_other_joules", Kind::Counter, "Energy of target processes that have no series.");
    out.sample(&none, Figure::from(registry.other.energy));
    out.family("joular_process_other_cpu_seconds", Kind::Counter, "CPU time of target processes that have no series.");
    out.sample(&none, Figure::nano(registry.other.cpu_ns));
    measured(out, registry, &BYTES, |measure| measure.unit() == Unit::Bytes);
    measured(out, registry, &EVENTS, |measure| measure.unit() == Unit::Count);
}

/// Names of families and their help: of all targets, of a process, and of those without a series.
type Measured = [(&'static str, &'static str); 3];

const BYTES: Measured = [
    ("joular_targets_bytes", "Bytes that all target processes allocated and moved, ended ones included."),
    (
        "joular_process_bytes",
        "Bytes that a target process allocated on the Java heap, or moved through sockets and files.",
    ),
    ("joular_process_other_bytes", "Bytes of target processes that have no series."),
];
const EVENTS: Measured = [
    ("joular_targets_events", "What --counters counts of all target processes, ended ones included."),
    ("joular_process_events", "What --counters counts of a target process."),
    ("joular_process_other_events", "The same of target processes that have no series."),
];

/// Nothing where nothing was asked for.
fn measured(out: &mut impl Families, registry: &Registry, families: &Measured, is_of: impl Fn(Measure) -> bool) {
    let [targets, process, other] = *families;
    if !registry.targets.measured.keys().any(|measure| is_of(*measure)) {
        return;
    }
    let mut family = |(name, help), sums: &mut dyn Iterator<Item = (&Labels, &Sum)>| {
        out.family(name, Kind::Counter, help);
        for (labels, sum) in sums {
            for (measure, amount) in sum.measured.iter().filter(|(measure, _)| is_of(**measure)) {
                out.sample(&labels.clone().with("measure", measure.name()), Figure::whole(*amount));
            }
        }
    };
    let none = Labels::default();
    family(targets, &mut std::iter::once((&none, &registry.targets)));
    let processes = registry.processes.values().filter(|process| process.labels != none);
    family(process, &mut processes.map(|process| (&process.labels, &process.sum)));
    family(other, &mut std::iter::once((&none, &registry.other)));
}

fn jvms(out: &mut impl Families, registry: &Registry) {
    out.family("joular_jvm_joules", Kind::Counter, "Energy of a JVM by what it did; parts sum to the process.");
    for (process, parts) in registry.processes.values().filter_map(|process| Some((process, process.jvm.as_ref()?))) {
        for work in JvmWork::ALL {
            out.sample(&process.labels.clone().with("part", work.name()), Figure::from(parts[work as usize]));
        }
    }
}

fn methods(out: &mut impl Families, registry: &Registry) {
    if registry.limits.top_methods == 0 {
        return;
    }
    out.family("joular_method_joules", Kind::Counter, "Self energy of a process's methods; they sum to the process.");
    for Process { labels, methods, .. } in registry.processes.values() {
        for (name, energy) in methods.series().iter().filter(|(name, _)| *name != OTHER_METHODS) {
            out.sample(&labels.clone().with("method", name), Figure::from(*energy));
        }
        let namesake = methods.series().get(OTHER_METHODS).copied().unwrap_or_default();
        out.sample(&labels.clone().with("method", OTHER_METHODS), Figure::from(methods.other.saturating_add(namesake)));
    }
}

fn windows(out: &mut impl Families, registry: &Registry, lag_ns: u64) {
    let none = Labels::default();
    out.family("joular_windows", Kind::Counter, "Windows that are in these figures.");
    out.sample(&none, Figure::whole(registry.windows));
    out.family("joular_windows_seconds", Kind::Counter, "Length of all windows.");
    out.sample(&none, Figure::nano(registry.elapsed_ns));
    let Some(LastWindow { index, wall_start_us, length_ns, .. }) = registry.last else { return };
    out.family("joular_last_window_index", Kind::Gauge, "Number of the last window in these figures; the first is 0.");
    out.sample(&none, Figure::whole(index));
    out.family("joular_last_window_start_seconds", Kind::Gauge, "Unix time at which the last window began.");
    out.sample(&none, unix(wall_start_us));
    out.family("joular_last_window_length_seconds", Kind::Gauge, "Length of the last window.");
    out.sample(&none, Figure::nano(length_ns));
    out.family("joular_window_lag_seconds", Kind::Gauge, "From the last window's end until its figures were here.");
    out.sample(&none, Figure::nano(lag_ns));
}

fn unix(micros: i64) -> Figure {
    Figure::micro(u64::try_from(micros).unwrap_or(0))
}

fn recorder(out: &mut impl Families, registry: &Registry, resident_bytes: Option<u64>) {
    let (none, run) = (Labels::default(), &registry.run);
    out.family("joular_build", Kind::Info, "Version of joular-bpf.");
    out.sample(&none.clone().with("version", &run.version), Figure::whole(1));
    out.family("joular_run", Kind::Info, "The run that these figures are of.");
    let labels = none.clone().with_text("run_id", Some(&run.run_id.as_str().into()));
    let labels = labels.with_text("node_name", Some(&run.host)).with("energy_source", &run.energy_source);
    let HostIdentity { machine_id, instance_id, labels: of_host } = &run.identity;
    let labels = labels.with("sampling_event", &run.sampling_event).with_text("machine_id", machine_id.as_ref());
    out.sample(&labels.with_text("instance_id", instance_id.as_ref()).with_labels_of_host(of_host), Figure::whole(1));
    out.family("joular_run_start_time_seconds", Kind::Gauge, "Unix time at which the run began: counters were 0.");
    out.sample(&none, unix(run.started.0));
    out.family("joular_losses", Kind::Counter, "What was lost, by cause.");
    for (cause, count) in &registry.losses {
        out.sample(&none.clone().with_text("cause", Some(&cause.as_str().into())), Figure::whole(*count));
    }
    out.family("joular_samples", Kind::Counter, "Samples of targets.");
    out.sample(&none, Figure::whole(registry.samples));
    out.family("joular_stack_samples", Kind::Counter, "Samples by whether their stacks were read to the root.");
    for (complete, count) in ["yes", "no", "unknown"].into_iter().zip(registry.stacks) {
        out.sample(&none.clone().with("complete", complete), Figure::whole(count));
    }
    let profiler = registry.domains.values().map(|sums| sums.unattributed.profiler).sum::<MicroJoules>();
    out.family("joular_recorder_joules", Kind::Counter, "Energy of joular-bpf itself.");
    out.sample(&none, Figure::from(profiler));
    out.family("joular_recorder_cpu_seconds", Kind::Counter, "CPU time of joular-bpf itself.");
    out.sample(&none, Figure::nano(registry.profiler_cpu_ns));
    if let Some(bytes) = resident_bytes {
        out.family("joular_recorder_resident_memory_bytes", Kind::Gauge, "Memory that joular-bpf occupies.");
        out.sample(&none, Figure::whole(bytes));
    }
}

fn shipping(out: &mut impl Families, shipped: Shipped) {
    let Shipped { runs, files, bytes, failures, missed_runs, waiting_runs, unreadable_runs, .. } = shipped;
    for (name, kind, help, value) in [
        ("joular_shipped_runs", Kind::Counter, "Runs that have arrived where they are shipped to.", runs),
        ("joular_shipped_files", Kind::Counter, "Files of them.", files),
        ("joular_shipped_bytes", Kind::Counter, "Bytes of these files.", bytes),
        ("joular_ship_failures", Kind::Counter, "Tries to ship that failed.", failures),
        ("joular_ship_missed_runs", Kind::Counter, "Runs that were removed before they arrived.", missed_runs),
        ("joular_ship_waiting_runs", Kind::Gauge, "Runs that have ended and wait to be shipped.", waiting_runs),
        ("joular_ship_unreadable_runs", Kind::Gauge, "Runs that wait and cannot be read.", unreadable_runs),
    ] {
        out.family(name, kind, help);
        out.sample(&Labels::default(), Figure::whole(value));
    }
    for (name, help, moment) in [
        (
            "joular_ship_oldest_waiting_start_seconds",
            "Unix time at which the oldest run that waits began.",
            shipped.oldest_waiting,
        ),
        ("joular_ship_last_success_seconds", "Unix time at which shipping last succeeded.", shipped.last_success),
    ] {
        let Some(moment) = moment else { continue };
        out.family(name, Kind::Gauge, help);
        out.sample(&Labels::default(), unix(moment.0));
    }
}

fn pushing(out: &mut impl Families, pushed: Pushed) {
    let Pushed { requests, failures, lost_profiles } = pushed;
    for (name, help, value) in [
        ("joular_otlp_requests", "Requests that the OTLP collector took.", requests),
        ("joular_otlp_failures", "Requests that it did not take.", failures),
        ("joular_otlp_lost_profiles", "Profiles that it refused, or that waited too long.", lost_profiles),
    ] {
        out.family(name, Kind::Counter, help);
        out.sample(&Labels::default(), Figure::whole(value));
    }
}
