//! Writes JVMs and the quality of stacks as objects of JSON.

use std::collections::BTreeMap;

use joular_data::{
    attribution::window_report::{JvmRow, QualityRow, WindowReport},
    model::{frame::Marker, quality::Unwinder},
    stacks::JvmWork,
    totals::jvms::{JvmTally, JvmTotals},
};
use serde::Serialize;

/// What a JVM did. `parts_uj` sum to `energy_uj`.
#[derive(Serialize)]
pub(super) struct Jvm {
    /// Null: all those that found no room.
    pid: Option<u32>,
    energy_uj: u64,
    vm_tax_uj: u64,
    parts_uj: BTreeMap<&'static str, u64>,
}

/// How good stacks are, as in table `quality`.
#[derive(Serialize)]
pub(super) struct Quality {
    pid: u32,
    category: &'static str,
    unwinder: Option<&'static str>,
    walk_end: &'static str,
    is_complete: Option<bool>,
    unnamed: Option<&'static str>,
    samples: u64,
    cpu_ns: u64,
    energy_uj: u64,
}

pub(super) fn of_window(report: &WindowReport) -> Vec<Jvm> {
    let jvm = |row: &JvmRow| {
        Some(Jvm {
            pid: Some(report.processes.get(row.process)?.pid.0),
            energy_uj: row.whole.energy.0,
            vm_tax_uj: row.tax().energy.0,
            parts_uj: JvmWork::ALL.into_iter().map(|work| (work.name(), row.part(work).energy.0)).collect(),
        })
    };
    report.jvms.iter().filter_map(jvm).collect()
}

pub(super) fn of_run(totals: &JvmTotals) -> Vec<Jvm> {
    let jvm = |pid: Option<u32>, tally: &JvmTally| Jvm {
        pid,
        energy_uj: tally.whole.0,
        vm_tax_uj: tally.tax.0,
        parts_uj: JvmWork::ALL.into_iter().map(|work| (work.name(), tally.part(work).0)).collect(),
    };
    let named = totals.ranked().into_iter().map(|(process, tally)| jvm(Some(process.pid.0), tally));
    let others = (totals.others != JvmTally::default()).then(|| jvm(None, &totals.others));
    named.chain(others).collect()
}

pub(super) fn quality(report: &WindowReport) -> Vec<Quality> {
    let quality = |row: &QualityRow| {
        Some(Quality {
            pid: report.processes.get(row.process)?.pid.0,
            category: row.category.name(),
            unwinder: row.quality.unwinder().map(Unwinder::name),
            walk_end: row.quality.end_name(),
            is_complete: row.quality.is_complete(),
            unnamed: row.unnamed.map(Marker::name),
            samples: row.amount.samples,
            cpu_ns: row.amount.cpu_ns,
            energy_uj: row.amount.energy.0,
        })
    };
    report.qualities.iter().filter_map(quality).collect()
}
