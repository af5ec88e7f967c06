//! Reads the windows of a rollup, as they were written.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    columns::{Columns, TableFile},
    decode_ahead,
    files::FlushFiles,
    span::Span,
    stacks::ReadStacks,
    windows::{
        Start,
        audit_rows::{self, AuditRow},
        work_rows::{self, ThreadRead},
    },
};
use crate::{
    attribution::{
        jvms::jvm_rows,
        quality::quality_rows,
        window_report::{BranchRow, Category, ProcessRef, ThreadRow, WindowReport},
    },
    dataset::{
        error::{DataSetError, Result},
        read::windows::Shares,
        store::StoredFile,
        tables::{Amounts, Branches, Threads, Windows, rollup, rollup::Inferred, shared, work},
        write::{Pooled, RollupWindow, method_rows},
    },
    events::SampleKind,
    model::{
        domain::FaultCause,
        target_text::TargetText,
        units::{MicroJoules, MonotonicNs, Pid, Tid, UnixMicros},
    },
};

/// A window, and what its rows say of its domains.
pub(crate) struct ReadRollupWindow {
    pub(crate) window: RollupWindow,
    pub(crate) shares: Vec<Shares>,
    /// Why the energy of one of its domains is not certain.
    pub(crate) fault: Option<FaultCause>,
    /// Whether the columns that are the window's, repeated on each row, agree.
    pub(crate) rows_agree: bool,
}

/// A row of `branches`.
struct BranchRead {
    /// Process, its start, µs since 1970.
    process: (u32, i64),
    comm: TargetText,
    category: Category,
    stack_id: i64,
    energy: MicroJoules,
    by_bytes: MicroJoules,
    cpu_ns: u64,
    samples: u64,
    pooled: Pooled,
}

/// The windows of a flush, in their order, and how many rows of other tables belong to none of them.
pub(crate) fn read(part: &FlushFiles, stacks: &ReadStacks) -> Result<(Vec<ReadRollupWindow>, usize)> {
    let audits = part.file::<Windows>().map(audit_rows::read).transpose()?.unwrap_or_default();
    let mut threads = HashMap::new();
    if let Some(file) = part.file::<Threads>() {
        TableFile::open(file)?.batches(|columns| work_rows::threads(columns, &mut threads))?;
    }
    let mut branches = HashMap::new();
    if let Some(file) = part.file::<Branches>() {
        TableFile::open(file)?.batches(|columns| take(columns, &mut branches))?;
    }
    let mut windows = Vec::new();
    for rows in audits.chunk_by(|a, b| a.start == b.start) {
        let Some(first) = rows.first() else { continue };
        let threads = threads.remove(&first.start).unwrap_or_default();
        let branches = branches.remove(&first.start).unwrap_or_default();
        let read = window(rows, first, &threads, &branches, stacks).map_err(|problem| DataSetError::Damaged {
            path: part.file::<Branches>().map_or_else(Default::default, StoredFile::path),
            problem: format!("window {}: {problem}", first.index),
        })?;
        windows.push(read);
    }
    let left = threads.values().map(Vec::len).sum::<usize>() + branches.values().map(Vec::len).sum::<usize>();
    let starts: HashSet<Start> = audits.iter().map(|row| row.start).collect();
    let without = part.file::<Amounts>().map(|file| amounts_without(file, &starts)).transpose()?;
    Ok((windows, left + without.unwrap_or_default()))
}

/// Rows of bytes and counts that belong to none of these windows.
fn amounts_without(file: &StoredFile, windows: &HashSet<Start>) -> Result<usize> {
    let mut without = 0;
    decode_ahead::batches(std::slice::from_ref(file), &Span::default(), |columns| {
        let starts = columns.times(shared::WINDOW_START)?;
        for row in 0..columns.rows() {
            without += usize::from(!windows.contains(&starts.get(row)?));
        }
        Ok(())
    })?;
    Ok(without)
}

fn take(columns: &Columns<'_>, rows: &mut HashMap<Start, Vec<BranchRead>>) -> Result<()> {
    let (starts, pids) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::PID)?);
    let (process_starts, comms) = (columns.times(shared::PROCESS_START)?, columns.texts(shared::COMM)?);
    let (categories, stack_ids) = (columns.texts(work::CATEGORY)?, columns.ints(work::STACK_ID)?);
    let [energies, times, samples, squares, inferred, inferred_times, inferred_squares] = [
        shared::ENERGY_UJ,
        shared::CPU_NS,
        shared::SAMPLES,
        rollup::SQUARES_UJ2,
        rollup::INFERRED_UJ,
        rollup::INFERRED_CPU_NS,
        rollup::INFERRED_SQUARES_UJ2,
    ]
    .map(|column| columns.ints(column));
    let (energies, times, samples, squares) = (energies?, times?, samples?, squares?);
    let (inferred, inferred_times, inferred_squares) = (inferred?, inferred_times?, inferred_squares?);
    let (by_bytes, unsampled) = (columns.ints(shared::BY_BYTES_UJ)?, columns.ints(rollup::UNSAMPLED_UJ)?);
    for row in 0..columns.rows() {
        let category = |name: &str| Category::ALL.into_iter().find(|category| category.name() == name);
        rows.entry(starts.get(row)?).or_default().push(BranchRead {
            process: (pids.natural(row)?, process_starts.get(row)?),
            comm: comms.get(row)?.into(),
            category: categories.name_of(row, category)?,
            stack_id: stack_ids.get(row)?,
            energy: MicroJoules(energies.natural(row)?),
            by_bytes: MicroJoules(by_bytes.natural(row)?),
            cpu_ns: times.natural(row)?,
            samples: samples.natural(row)?,
            pooled: Pooled {
                squares: squares.natural::<u64>(row)?.into(),
                inferred: Inferred {
                    energy_uj: inferred.get(row)?,
                    cpu_ns: inferred_times.get(row)?,
                    squares_uj2: inferred_squares.get(row)?,
                    unsampled_uj: unsampled.natural(row)?,
                },
            },
        });
    }
    Ok(())
}

fn window(
    rows: &[AuditRow],
    first: &AuditRow,
    threads: &[ThreadRead],
    branches: &[BranchRead],
    stacks: &ReadStacks,
) -> Result<ReadRollupWindow, String> {
    let mut report = WindowReport {
        index: first.index,
        start: MonotonicNs(u64::try_from(first.start).unwrap_or(0).saturating_mul(1000)),
        wall_start: UnixMicros(first.start),
        length_ns: first.length_ns,
        cpu: first.cpu,
        context: first.context.clone(),
        losses: first.losses.clone(),
        ..WindowReport::default()
    };
    let pooled: Vec<Pooled> = branches.iter().map(|row| row.pooled).collect();
    add_branches(&mut report, branches, stacks)?;
    let table = &stacks.table;
    report.methods = method_rows(&report, &pooled, table);
    report.qualities = quality_rows(&report.threads, &report.branches, |branch| table.facts(branch));
    report.jvms = jvm_rows(&report.threads, &report.branches, |branch| table.facts(branch));
    let own = |thread: &ThreadRead| {
        (thread.process(), ThreadRow { energy: thread.energy, by_bytes: thread.by_bytes, ..thread.row(0) })
    };
    Ok(ReadRollupWindow {
        shares: rows.iter().filter_map(|row| row.shares.clone()).collect(),
        fault: rows.iter().filter_map(|row| row.work.delta.fault).find(|fault| fault.is_ambiguous()),
        rows_agree: rows.iter().all(|row| {
            (row.length_ns, row.index, row.cpu) == (first.length_ns, first.index, first.cpu)
                && row.losses == first.losses
                && row.context == first.context
        }),
        window: RollupWindow { report, pooled, threads: threads.iter().map(own).collect(), ..RollupWindow::default() },
    })
}

/// Branches, and what they sum to by process and category.
fn add_branches(report: &mut WindowReport, branches: &[BranchRead], stacks: &ReadStacks) -> Result<(), String> {
    let mut processes: BTreeMap<(u32, i64), usize> = BTreeMap::new();
    let mut places: BTreeMap<(usize, Category), usize> = BTreeMap::new();
    for row in branches {
        let process = *processes.entry(row.process).or_insert_with(|| {
            let start_boottime_ns = u64::try_from(row.process.1).unwrap_or(0).saturating_mul(1000);
            report.processes.push(ProcessRef { pid: Pid(row.process.0), start_boottime_ns, comm: row.comm.clone() });
            report.processes.len() - 1
        });
        let thread = *places.entry((process, row.category)).or_insert_with(|| {
            report.threads.push(all_threads(process, row.category));
            report.threads.len() - 1
        });
        let sum = &mut report.threads[thread];
        sum.energy = sum.energy.saturating_add(row.energy);
        sum.cpu_ns = sum.cpu_ns.saturating_add(row.cpu_ns);
        sum.samples = sum.samples.saturating_add(row.samples);
        sum.by_bytes = sum.by_bytes.saturating_add(row.by_bytes);
        let branch = stacks.get(row.stack_id).ok_or_else(|| format!("stack {} has no row", row.stack_id))?;
        let BranchRead { energy, cpu_ns, samples, by_bytes, .. } = *row;
        let kind = SampleKind::CpuTime;
        report.branches.push(BranchRow { thread, kind, branch, cpu_ns, samples, energy, by_bytes });
    }
    Ok(())
}

/// Stands for all threads of a category in a process.
pub(crate) fn all_threads(process: usize, category: Category) -> ThreadRow {
    ThreadRow {
        process,
        tid: Tid(0),
        start_boottime_ns: 0,
        name: TargetText::default(),
        category,
        cpu_ns: 0,
        samples: 0,
        energy: MicroJoules(0),
        by_bytes: MicroJoules(0),
    }
}
