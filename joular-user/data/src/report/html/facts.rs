//! Collects what a page says beside its pictures: the machine's audit, what JVMs did for
//! themselves, how good stacks are, and which runs it is about.

use serde::Serialize;

use super::strings::Strings;
use crate::{
    events::{HostIdentity, RunInfo},
    model::{domain, target_text::TargetText},
    redact::Redaction,
    report::{
        profile::{Overview, Profile, Run},
        tree::process_title,
    },
    stacks::JvmWork,
};

/// Where the machine's energy went.
#[derive(Debug, Serialize)]
pub(super) struct Audit {
    measured_uj: u64,
    attributed_uj: u64,
    static_uj: u64,
    unattributed: Vec<(&'static str, u64)>,
    windows: u64,
    samples: u64,
    ambiguous: u64,
    read_failed: u64,
    /// How far off the energy of selected phases may be because counters lag.
    lag: Option<String>,
    losses: Vec<(String, u64)>,
}

impl Audit {
    pub(super) fn of(overview: &Overview) -> Self {
        Self {
            measured_uj: overview.measured.0,
            attributed_uj: overview.attributed.0,
            static_uj: overview.static_share.0,
            unattributed: overview.unattributed.items().map(|(name, energy)| (name, energy.0)).into(),
            windows: overview.windows,
            samples: overview.samples,
            ambiguous: overview.ambiguous,
            read_failed: overview.read_failed,
            lag: overview.lag.map(|lag| lag.to_string()),
            losses: overview.losses.iter().map(|(cause, count)| (cause.clone(), *count)).collect(),
        }
    }
}

/// A JVM's energy in parts.
#[derive(Debug, Serialize)]
pub(super) struct Jvm {
    process: usize,
    version: i64,
    collector: i64,
    whole_uj: u64,
    tax_uj: u64,
    /// In the order of [`jvm_parts`].
    parts_uj: Vec<u64>,
}

/// Names of a JVM's parts, and whether each is work of the JVM for itself.
pub(super) fn jvm_parts() -> Vec<(&'static str, bool)> {
    JvmWork::ALL.into_iter().map(|work| (work.name(), work.is_tax())).collect()
}

/// JVMs by energy.
pub(super) fn jvms(profile: &Profile, strings: &mut Strings) -> Vec<Jvm> {
    let catalog = &profile.catalog;
    let mut jvms: Vec<Jvm> = profile
        .overview
        .jvms
        .iter()
        .map(|(process, energy)| {
            let process = catalog.process(*process);
            Jvm {
                process: strings.place(process_title(catalog, process).raw()),
                version: strings.maybe(process.jvm_version.as_ref().map(TargetText::raw)),
                collector: strings.maybe(process.collector.as_ref().map(TargetText::raw)),
                whole_uj: energy.whole.0,
                tax_uj: energy.tax().0,
                parts_uj: energy.parts.iter().map(|part| part.0).collect(),
            }
        })
        .collect();
    jvms.sort_by_key(|jvm| std::cmp::Reverse(jvm.whole_uj));
    jvms
}

/// Stacks that were obtained in the same way and end for the same reason.
#[derive(Debug, Serialize)]
pub(super) struct Quality {
    category: &'static str,
    unwinder: i64,
    walk_end: usize,
    is_complete: Option<bool>,
    unnamed: i64,
    energy_uj: u64,
    samples: u64,
}

pub(super) fn qualities(overview: &Overview, strings: &mut Strings) -> Vec<Quality> {
    let mut rows: Vec<Quality> = overview
        .qualities
        .iter()
        .map(|(key, amounts)| Quality {
            category: key.category.name(),
            unwinder: strings.maybe(key.unwinder.as_deref()),
            walk_end: strings.place(&key.walk_end),
            is_complete: key.is_complete,
            unnamed: strings.maybe(key.unnamed.as_deref()),
            energy_uj: amounts.energy.0,
            samples: amounts.samples,
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.energy_uj, row.samples)));
    rows
}

/// Its name, what tells it from others of that name, and its labels.
fn host_facts(info: &RunInfo) -> String {
    let HostIdentity { machine_id, instance_id, labels } = &info.identity;
    let known = [Some(&info.host), instance_id.as_ref(), machine_id.as_ref()].into_iter().flatten().chain(labels);
    known.map(TargetText::raw).collect::<Vec<_>>().join(", ")
}

/// A run as pairs of what and value.
pub(super) fn run(run: &Run, redaction: &Redaction, strings: &mut Strings) -> Vec<(&'static str, usize)> {
    let info = &run.info;
    let end = run.end.as_ref().map_or("still running, or it did not end properly", |end| &end.reason);
    let costs = info.policy.calibration.as_ref().map(|calibrated| calibrated.costs);
    let cost = costs.map_or_else(
        || "not calibrated".to_owned(),
        |costs| format!("{} ns a sample and {} ns a switch were taken off weights", costs.sample_ns, costs.switch_ns),
    );
    let command_line = match redaction.words(&info.command_line).words {
        words if words.is_empty() => "not shown".to_owned(),
        words => words.join(" "),
    };
    let domains = match domain::names(&info.domains) {
        names if names.is_empty() => "none".to_owned(),
        names => names,
    };
    [
        ("run", info.run_id.clone()),
        ("host", host_facts(info)),
        ("started", timestamp(info.started.0)),
        ("ended because of", end.to_owned()),
        ("command line", command_line),
        ("joular-bpf", info.version.clone()),
        ("kernel", info.kernel.clone()),
        ("CPU", format!("{} ({} CPUs, {} sockets, {})", info.cpu_model, info.online_cpus, info.sockets, info.arch)),
        ("energy source", format!("{}: {}", info.energy_source, info.energy_reason)),
        ("energy domains", domains),
        ("sampling", format!("{} at {} Hz per CPU", info.sampling_event, info.frequency_hz)),
        ("window", format!("{} s", crate::text::seconds(info.interval_ns))),
        ("energy is divided by", info.policy.weights()),
        ("the profiler's cost", cost),
    ]
    .map(|(what, value)| (what, strings.place(&value)))
    .into()
}

fn timestamp(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros).map_or_else(|_| micros.to_string(), |moment| moment.to_string())
}
