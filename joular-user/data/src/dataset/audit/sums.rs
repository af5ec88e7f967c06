//! Checks tables whose rows are sums of branches against branches and stacks.

use std::collections::HashMap;

use super::RunAudit;
use crate::{
    attribution::window_report::WindowReport,
    dataset::{
        column::{Column, Table as _, kind},
        error::Result,
        read::columns::{Columns, TableFile},
        store::StoredFile,
        tables::{Jvms, Quality, jvms, quality, shared, stacks},
    },
    model::{frame::Marker, quality::Unwinder},
    stacks::JvmWork,
};

/// A table of sums: what tells its rows of a process apart, and their figures.
pub(crate) struct SumTable {
    pub(crate) table: &'static str,
    names: &'static [Column<kind::Name>],
    /// A column whose value is yes, no or null.
    flag: Option<Column<kind::Flag>>,
    figures: fn() -> Vec<Column<kind::Int>>,
}

pub(crate) const QUALITY: SumTable = SumTable {
    table: Quality::NAME,
    names: &[quality::CATEGORY, stacks::UNWINDER, stacks::WALK_END, stacks::UNNAMED],
    flag: Some(stacks::IS_COMPLETE),
    figures: || vec![shared::ENERGY_UJ, shared::CPU_NS, shared::SAMPLES],
};

pub(crate) const JVMS: SumTable = SumTable {
    table: Jvms::NAME,
    names: &[],
    flag: None,
    figures: || {
        let whole = [jvms::ENERGY_UJ, jvms::CPU_NS, jvms::SAMPLES, jvms::VM_TAX_UJ, jvms::VM_TAX_CPU_NS];
        let parts = JvmWork::ALL.map(|work| [jvms::part_uj(work), jvms::part_cpu_ns(work)]);
        whole.into_iter().chain(parts.into_iter().flatten()).collect()
    },
};

/// A row as it was written: pid, start of the process, names, figures.
pub(crate) type WrittenSum = (u32, i64, Vec<String>, Vec<u64>);

pub(crate) fn read(file: Option<&StoredFile>, table: &SumTable) -> Result<HashMap<i64, Vec<WrittenSum>>> {
    let mut rows = HashMap::new();
    if let Some(file) = file {
        TableFile::open(file)?.batches(|columns| take(columns, table, &mut rows))?;
    }
    Ok(rows)
}

fn take(columns: &Columns<'_>, table: &SumTable, rows: &mut HashMap<i64, Vec<WrittenSum>>) -> Result<()> {
    let (starts, pids) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::PID)?);
    let process_starts = columns.times(shared::PROCESS_START)?;
    let names = table.names.iter().map(|column| columns.texts(*column)).collect::<Result<Vec<_>>>()?;
    let flags = table.flag.map(|column| columns.flags(column)).transpose()?;
    let figures = (table.figures)();
    let figures = figures.iter().map(|column| columns.ints(*column)).collect::<Result<Vec<_>>>()?;
    for row in 0..columns.rows() {
        let mut names: Vec<String> = names.iter().map(|name| name.maybe(row).unwrap_or_default().to_owned()).collect();
        names.extend(flags.as_ref().map(|flags| flag_name(flags.maybe(row)).to_owned()));
        let values = figures.iter().map(|figure| figure.natural(row)).collect::<Result<Vec<u64>>>()?;
        let written = (pids.natural(row)?, process_starts.get(row)?, names, values);
        rows.entry(starts.get(row)?).or_default().push(written);
    }
    Ok(())
}

const fn flag_name(flag: Option<bool>) -> &'static str {
    match flag {
        Some(true) => "complete",
        Some(false) => "incomplete",
        None => "",
    }
}

pub(crate) fn of_qualities(report: &WindowReport) -> Vec<WrittenSum> {
    let sum = |row: &crate::attribution::window_report::QualityRow| {
        let names = [
            row.category.name(),
            row.quality.unwinder().map_or("", Unwinder::name),
            row.quality.end_name(),
            row.unnamed.map_or("", Marker::name),
            flag_name(row.quality.is_complete()),
        ];
        let (pid, start_us) = process(report, row.process);
        let figures = vec![row.amount.energy.0, row.amount.cpu_ns, row.amount.samples];
        (pid, start_us, names.map(str::to_owned).to_vec(), figures)
    };
    report.qualities.iter().map(sum).collect()
}

pub(crate) fn of_jvms(report: &WindowReport) -> Vec<WrittenSum> {
    let sum = |row: &crate::attribution::window_report::JvmRow| {
        let (pid, start_us) = process(report, row.process);
        let (whole, tax) = (row.whole, row.tax());
        let whole = [whole.energy.0, whole.cpu_ns, whole.samples, tax.energy.0, tax.cpu_ns];
        let parts = row.parts.iter().flat_map(|part| [part.energy.0, part.cpu_ns]);
        (pid, start_us, Vec::new(), whole.into_iter().chain(parts).collect())
    };
    report.jvms.iter().map(sum).collect()
}

/// Pid, and start as a data set has it.
fn process(report: &WindowReport, index: usize) -> (u32, i64) {
    let process = report.processes.get(index);
    let start_us = process.map_or(0, |process| process.start_boottime_ns / 1000);
    (process.map_or(0, |process| process.pid.0), i64::try_from(start_us).unwrap_or(i64::MAX))
}

/// Equal rows give equal sums: branches have been compared with threads already.
pub(crate) fn compare(
    audit: &mut RunAudit,
    window: u64,
    table: &SumTable,
    mut derived: Vec<WrittenSum>,
    mut written: Vec<WrittenSum>,
) {
    derived.sort();
    written.sort();
    let (name, figures) = (table.table, (table.figures)());
    audit.expect(window, &format!("the number of rows of {name}"), written.len(), derived.len());
    for ((pid, start, names, derived), (written_pid, written_start, written_names, written)) in
        derived.iter().zip(&written)
    {
        let shown = |pid: &u32, start: &i64, names: &[String]| format!("{pid} of {start} {}", names.join(" "));
        let row = shown(pid, start, names);
        audit.expect(
            window,
            &format!("a row of {name}"),
            shown(written_pid, written_start, written_names),
            row.clone(),
        );
        for ((figure, derived), written) in figures.iter().zip(derived).zip(written) {
            audit.expect(window, &format!("{} of {name} {row}", figure.name()), written, derived);
        }
    }
}
