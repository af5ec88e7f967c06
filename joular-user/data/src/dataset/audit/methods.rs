//! Table `methods` against what branches and stacks give.

use std::collections::HashMap;

use super::RunAudit;
use crate::{
    attribution::report::{MethodRow, Share, WindowReport},
    dataset::{
        column::{Column, Named as _, kind},
        error::Result,
        read::columns::{Columns, TableFile},
        store::StoredFile,
        tables::{methods, shared},
    },
    model::units::MicroJoules,
    stacks::StackTable,
};

/// What tells a row of a window from any other.
type MethodKey = (u32, i64, String, String, String, String);

/// A row as it was written: key, self and total figures.
pub(crate) type WrittenMethod = (MethodKey, [u64; 8]);

pub(crate) fn read(file: Option<&StoredFile>) -> Result<HashMap<i64, Vec<WrittenMethod>>> {
    let mut rows = HashMap::new();
    if let Some(file) = file {
        TableFile::open(file)?.batches(|columns| take(columns, &mut rows))?;
    }
    Ok(rows)
}

const FIGURES: [Column<kind::Int>; 8] = [
    methods::SELF_UJ,
    methods::TOTAL_UJ,
    methods::SELF_CPU_NS,
    methods::TOTAL_CPU_NS,
    methods::SELF_SAMPLES,
    methods::TOTAL_SAMPLES,
    methods::SELF_SIGMA_UJ,
    methods::TOTAL_SIGMA_UJ,
];

fn take(columns: &Columns<'_>, rows: &mut HashMap<i64, Vec<WrittenMethod>>) -> Result<()> {
    let (starts, pids) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::PID)?);
    let process_starts = columns.times(shared::PROCESS_START)?;
    let [methods, signatures, kinds, modules] =
        [methods::METHOD, methods::SIGNATURE, methods::KIND, methods::MODULE].map(|column| columns.texts(column));
    let (methods, signatures, kinds, modules) = (methods?, signatures?, kinds?, modules?);
    let figures = FIGURES.into_iter().map(|column| columns.ints(column)).collect::<Result<Vec<_>>>()?;
    for row in 0..columns.rows() {
        let key = (
            pids.natural(row)?,
            process_starts.get(row)?,
            methods.get(row)?.to_owned(),
            signatures.maybe(row).unwrap_or_default().to_owned(),
            kinds.get(row)?.to_owned(),
            modules.maybe(row).unwrap_or_default().to_owned(),
        );
        let mut values = [0; 8];
        for (value, figure) in values.iter_mut().zip(&figures) {
            *value = figure.natural(row)?;
        }
        rows.entry(starts.get(row)?).or_default().push((key, values));
    }
    Ok(())
}

/// Rows that differ in nothing but their source file have equal keys, so the
/// rows are compared as sorted lists.
pub(crate) fn compare(
    audit: &mut RunAudit,
    report: &WindowReport,
    table: &StackTable,
    mut written: Vec<WrittenMethod>,
) {
    let mut derived: Vec<WrittenMethod> = report.methods.iter().map(|row| derive(report, table, row)).collect();
    derived.sort();
    written.sort();
    audit.expect(report.index, "the number of its methods", written.len(), derived.len());
    for ((key, derived), (written_key, written)) in derived.iter().zip(&written) {
        audit.expect(report.index, "a method", &written_key.2, &key.2);
        for ((column, derived), written) in FIGURES.iter().zip(derived).zip(written) {
            audit.expect(report.index, &format!("{} of {}", column.name(), key.2), written, derived);
        }
    }
}

fn derive(report: &WindowReport, table: &StackTable, row: &MethodRow) -> WrittenMethod {
    let process = report.processes.get(row.process);
    let start_us = process.map_or(0, |process| process.start_boottime_ns / 1000);
    let frame = table.frame(row.method);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let key = (
        process.map_or(0, |process| process.pid.0),
        i64::try_from(start_us).unwrap_or(i64::MAX),
        frame.method(),
        text(&frame.signature),
        frame.kind.name().to_owned(),
        text(&frame.module),
    );
    let Share { energy: MicroJoules(own_uj), cpu_ns: own_ns, samples: own_samples, sigma: own_sigma } = row.own;
    let total = row.total;
    let figures =
        [own_uj, total.energy.0, own_ns, total.cpu_ns, own_samples, total.samples, own_sigma.0, total.sigma.0];
    (key, figures)
}
