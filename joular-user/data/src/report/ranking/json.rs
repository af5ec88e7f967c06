//! Writes a report as one JSON object, for scripts. docs/reports.md documents the keys, which stay
//! stable; energies are integers in µJ. Names are written as they are: JSON escapes them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    beside, by_measure,
    command::Report,
    context, footprint, rootless,
    rows::{Figures, RankedRow, Ranking},
    selected,
    text::{activation, note, precise_percent},
    unnamed,
};
use crate::{
    events::HostIdentity,
    model::units::MicroJoules,
    report::{
        app::{AppEnergy, PackageEnergy},
        footprint::statement,
        profile::{Amounts, Overview, Profile},
    },
    stacks::JvmWork,
    text::{time, watts},
};

/// The version changes when a key changes its name, its type or its meaning; a new key does not
/// change it.
const VERSION: u32 = 1;

pub fn report(report: &Report<'_>) -> Value {
    let (profile, overview) = (report.profile, &report.profile.overview);
    let mut object = json!({
        "report_version": VERSION,
        "energy_label": overview.label.map(|label| label.name()),
        "ambiguous": overview.ambiguous > 0,
        "energy_sources": overview.sources,
        "watts_by": overview.watts_by,
        "extent": extent(profile),
        "selection": amounts(&context::chosen(profile), ""),
        "gc_charged_uj": overview.gc_charged.0,
        "gc_kept_uj": overview.gc_kept.0,
        "counted": selected::counted_json(profile),
        "allocated": selected::allocated_json(profile),
        "moved": selected::moved_json(profile),
        "is_app_view": report.has_app(),
        "view": report.view(),
        "app": packages(report),
        "interval_note": note(report),
        "tables": tables(report),
        "jvms": jvms(profile),
        "audit": audit(overview),
        "quality": {
            "samples": context::causes(overview).values().fold(0_u64, |sum, count| sum.saturating_add(*count)),
            "samples_by_cause": context::causes(overview),
        },
        "unnamed_uj": by_marker(unnamed::by_marker(profile)),
        "rootless_uj": by_marker(rootless::by_marker(profile)),
        "hints": unnamed::hints(profile),
        "losses": overview.losses,
        "ambiguous_readings": overview.ambiguous,
        "failed_readings": overview.read_failed,
        "warnings": context::warnings(overview),
    });
    if let (Some(object), Some(footprints)) = (object.as_object_mut(), report.footprints) {
        object.insert("footprint".to_owned(), statement::json(footprints, overview));
    }
    if let (Some(object), false) = (object.as_object_mut(), overview.skipped.skipped.is_empty()) {
        object.insert("skipped".to_owned(), json!(overview.skipped.skipped));
    }
    if let (Some(object), Some(from)) = (object.as_object_mut(), &overview.read_from) {
        object.extend(from.keys());
    }
    object
}

/// A report of these tables: without an application's packages and what else has to be asked for.
pub fn of_tables(profile: &Profile, tables: &[Ranking]) -> Value {
    let packages = &AppEnergy::default();
    report(&Report { profile, tables, of_measures: &[], app: None, packages, top: 0, footprints: None })
}

fn packages(report: &Report<'_>) -> Vec<Value> {
    let package = |one: &PackageEnergy| {
        let PackageEnergy { package, total, own } = one;
        json!({ "package": package, "total_uj": total.0, "self_uj": own.0 })
    };
    report.packages.packages.iter().map(package).collect()
}

fn tables(report: &Report<'_>) -> Vec<Value> {
    let tables = report.tables.iter().map(|ranking| table(ranking, report));
    tables.chain(report.of_measures.iter().map(|table| by_measure::object(table, report.profile))).collect()
}

fn by_marker(markers: BTreeMap<&str, MicroJoules>) -> Map<String, Value> {
    markers.into_iter().map(|(name, energy)| (name.to_owned(), json!(energy.0))).collect()
}

fn extent(profile: &Profile) -> Value {
    let overview = &profile.overview;
    let run = |run: &crate::report::profile::Run| {
        let HostIdentity { machine_id, instance_id, labels } = &run.info.identity;
        json!({
            "run_id": run.info.run_id,
            "host": run.info.host,
            "machine_id": machine_id,
            "instance_id": instance_id,
            "labels": labels,
        })
    };
    json!({
        "runs": profile.catalog.runs.iter().map(run).collect::<Vec<_>>(),
        "windows": overview.windows,
        "duration_ns": overview.duration_ns,
        "start": overview.span.map(|(start, _)| time(start)),
        "end": overview.span.map(|(_, end)| time(end)),
    })
}

fn amounts(amounts: &Amounts, prefix: &str) -> Map<String, Value> {
    Map::from_iter([
        (format!("{prefix}{}", if prefix.is_empty() { "energy_uj" } else { "uj" }), json!(amounts.energy.0)),
        (format!("{prefix}cpu_ns"), json!(amounts.cpu_ns)),
        (format!("{prefix}samples"), json!(amounts.samples)),
        (format!("{prefix}inferred_uj"), json!(amounts.inferred.0)),
    ])
}

fn table(ranking: &Ranking, report: &Report<'_>) -> Value {
    let row = |row: &RankedRow| Value::Object(row_object(ranking, row, report));
    let rest = ranking.rest.as_ref().map(|(count, rest)| {
        let mut object = row_object(ranking, rest, report);
        object.insert("rows".to_owned(), json!(count));
        Value::Object(object)
    });
    json!({
        "by": ranking.by.name(),
        "sort": ranking.sort.name(),
        "rows": ranking.rows.iter().map(row).collect::<Vec<_>>(),
        "others": rest,
    })
}

fn row_object(ranking: &Ranking, row: &RankedRow, report: &Report<'_>) -> Map<String, Value> {
    let duration_ns = report.profile.overview.duration_ns;
    let mut object = Map::new();
    object.insert("name".to_owned(), json!(row.group.name));
    for (name, value) in ranking.by.details().iter().zip(&row.group.details) {
        object.insert((*name).to_owned(), value.clone());
    }
    for (prefix, figures) in [("self_", &row.own), ("total_", &row.total)] {
        object.extend(figures_object(prefix, figures, ranking, duration_ns));
    }
    if let (Some(calls), Some(energy)) = (row.activations, activation(row)) {
        object.insert("activations".to_owned(), json!(calls));
        object.insert("activation_uj".to_owned(), json!(energy.0));
    }
    let mut add = |figures: Vec<beside::InFile>| {
        object.extend(figures.iter().map(|figure| (figure.name(), json!(figure.of(ranking, row)))));
    };
    add(beside::counted(ranking));
    add(beside::allocated(ranking));
    add(beside::moved(ranking));
    add(beside::intervals(ranking));
    if ranking.whole.by_bytes.0 > 0 {
        object.insert("self_by_bytes_uj".to_owned(), json!(row.own.amounts.by_bytes.0));
        object.insert("total_by_bytes_uj".to_owned(), json!(row.total.amounts.by_bytes.0));
    }
    for figure in footprint::figures(report) {
        for (which, figures) in [("self", &row.own), ("total", &row.total)] {
            object.insert(figure.name(which), json!(figure.of(&figures.footprint)));
        }
    }
    object
}

fn figures_object(prefix: &str, figures: &Figures, ranking: &Ranking, duration_ns: u64) -> Map<String, Value> {
    let energy = figures.amounts.energy;
    let mut object = amounts(&figures.amounts, prefix);
    object.insert(format!("{prefix}low_uj"), json!(figures.interval.low.0));
    object.insert(format!("{prefix}high_uj"), json!(figures.interval.high.0));
    object.insert(format!("{prefix}watts"), json!(watts(energy, duration_ns)));
    object.insert(format!("{prefix}percent"), json!(precise_percent(energy, ranking.whole.energy)));
    object
}

fn jvms(profile: &Profile) -> Vec<Value> {
    let jvm = |(process, tally): &(&crate::report::profile::Process, crate::totals::jvms::JvmTally)| {
        let parts = JvmWork::ALL.map(|work| (format!("{}_uj", work.name()), json!(tally.part(work).0)));
        json!({
            "pid": process.pid.0,
            "process": process.title(),
            "comm": process.comm,
            "jvm_version": process.jvm_version,
            "collector": process.collector,
            "host": profile.catalog.run_of(process).info.host,
            "energy_uj": tally.whole.0,
            "vm_tax_uj": tally.tax.0,
            "parts": Map::from_iter(parts),
        })
    };
    context::jvms(profile).iter().map(jvm).collect()
}

fn audit(overview: &Overview) -> Value {
    let items = overview.unattributed.items().map(|(name, energy)| (format!("{name}_uj"), json!(energy.0)));
    json!({
        "measured_uj": overview.measured.0,
        "attributed_uj": overview.attributed.0,
        "static_uj": overview.static_share.0,
        "unattributed_uj": overview.unattributed_total().0,
        "unattributed": Map::from_iter(items),
    })
}
