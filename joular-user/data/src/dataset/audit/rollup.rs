//! Audits a rollup. What its energy was divided by is not in it, so nothing can be attributed again.
//! Every sum is checked: from domains to threads, call paths, methods, qualities and parts of JVMs, and
//! that inference from samples of other windows moves energy and makes none.

use std::collections::{BTreeMap, HashMap};

use super::{
    Derived, RunAudit, compare_totals,
    identity::{check_cpu, check_shares},
    methods, sum,
    sums::{self, JVMS, QUALITY},
};
use crate::{
    attribution::window_report::{Category, WindowReport},
    dataset::{
        error::Result,
        read::{
            columns::TableFile,
            files::{FlushFiles, RunFiles},
            method_spans::MethodSpans,
            rollup::{self, ReadRollupWindow},
            run_row::RunRow,
            stacks::ReadStacks,
        },
        store::StoredFile,
        tables::{Methods, Stacks, methods as columns_of, rollup as rollup_columns, shared},
        write::{InferredMethods, RollupWindow, add_inferred},
    },
    model::{
        frame::{Frame, Marker},
        target_text::TargetText,
        units::{MicroJoules, Pid},
    },
    stacks::StackTable,
};

/// What tells a method's row of a window from others: process, its start, name, signature, kind, module.
type MethodName = (u32, i64, String, String, String, String);
type WrittenMethods = BTreeMap<MethodName, [i64; 2]>;

pub(super) fn audit_run(mut audit: RunAudit, files: &RunFiles, row: &RunRow) -> Result<RunAudit> {
    let mut stacks = ReadStacks::default();
    for (_, part) in &files.parts {
        if let Some(file) = part.file::<Stacks>() {
            stacks.read(file)?;
        }
        audit_part(&mut audit, part, &stacks)?;
    }
    match &row.end {
        Some((_, totals)) => compare_totals(&mut audit, totals),
        None => audit.has_ended = false,
    }
    if audit.has_ended && audit.rows_without_window > 0 {
        audit.differs(format!("{} rows belong to no window, and SQL would count them", audit.rows_without_window));
    }
    Ok(audit)
}

fn audit_part(audit: &mut RunAudit, part: &FlushFiles, stacks: &ReadStacks) -> Result<()> {
    let mut methods = methods::Methods::read(part.file::<Methods>())?;
    let mut inferred = inferred_methods(part.file::<Methods>())?;
    let mut quality = sums::read(part.named(QUALITY.table), &QUALITY)?;
    let mut jvms = sums::read(part.named(JVMS.table), &JVMS)?;
    let (windows, left) = rollup::read(part, stacks)?;
    for read in windows {
        let start = read.window.report.wall_start.0;
        let rows = Derived {
            quality: quality.remove(&start).unwrap_or_default(),
            jvms: jvms.remove(&start).unwrap_or_default(),
        };
        inferred.window(audit, &read.window, &stacks.table);
        let report = audit_window(audit, read, rows, &stacks.table);
        methods.window(audit, &report, &stacks.table);
    }
    inferred.compare(audit, &stacks.table);
    let sums = quality.values().chain(jvms.values()).map(Vec::len);
    let without = left + methods.end(audit) + sums.sum::<usize>();
    audit.rows_without_window += without as u64;
    Ok(())
}

fn audit_window(audit: &mut RunAudit, read: ReadRollupWindow, rows: Derived, table: &StackTable) -> WindowReport {
    let ReadRollupWindow { window, shares, rows_agree, .. } = read;
    let index = window.report.index;
    audit.expect(index, "that all its rows agree on what is the window's", rows_agree, true);
    audit.expect(index, "the window's number", index, audit.windows);
    check_shares(audit, index, &shares);
    let attributed = sum(shares.iter().map(|share| share.attributed));
    let of_threads = sum(window.threads.iter().map(|(_, thread)| thread.energy));
    audit.expect(index, "energy of all threads", of_threads, attributed);
    check_threads(audit, &window);
    check_inferred(audit, &window, table);
    sums::compare(audit, index, &QUALITY, sums::of_qualities(&window.report), rows.quality);
    sums::compare(audit, index, &JVMS, sums::of_jvms(&window.report), rows.jvms);
    for share in &shares {
        audit.measured_uj = audit.measured_uj.saturating_add(share.measured.0);
        audit.attributed_uj = audit.attributed_uj.saturating_add(share.attributed.0);
        audit.static_uj = audit.static_uj.saturating_add(share.static_share.0);
        audit.unattributed_uj = audit.unattributed_uj.saturating_add(share.items.total().0);
        audit.profiler_uj = audit.profiler_uj.saturating_add(share.items.profiler.0);
    }
    audit.threads += window.threads.len() as u64;
    let report = window.report;
    super::add(audit, &WindowReport { threads: Vec::new(), ..report.clone() });
    report
}

/// Threads of a category of a process must sum to its call paths, and all to the CPUs' times.
fn check_threads(audit: &mut RunAudit, window: &RollupWindow) {
    type Group = (u32, u64, Category);
    type Figures = (MicroJoules, u64, u64);
    let report = &window.report;
    let mut threads: BTreeMap<Group, Figures> = BTreeMap::new();
    let mut branches = threads.clone();
    let add = |sums: &mut BTreeMap<Group, Figures>, key, (energy, cpu_ns, samples): Figures| {
        let sum = sums.entry(key).or_default();
        *sum = (sum.0.saturating_add(energy), sum.1.saturating_add(cpu_ns), sum.2.saturating_add(samples));
    };
    for (process, thread) in &window.threads {
        let key = (process.pid.0, process.start_boottime_ns, thread.category);
        add(&mut threads, key, (thread.energy, thread.cpu_ns, thread.samples));
    }
    for thread in &report.threads {
        let Some(process) = report.processes.get(thread.process) else { continue };
        let key = (process.pid.0, process.start_boottime_ns, thread.category);
        add(&mut branches, key, (thread.energy, thread.cpu_ns, thread.samples));
    }
    let shown = |sum: Option<&Figures>| {
        let (energy, cpu_ns, samples) = sum.copied().unwrap_or_default();
        format!("{energy}, {cpu_ns} ns, {samples}")
    };
    for (key, sum) in &threads {
        let what = format!("call paths of the {} threads of process {}", key.2.name(), key.0);
        audit.expect(report.index, &what, shown(branches.remove(key).as_ref()), shown(Some(sum)));
    }
    audit.expect(report.index, "call paths of processes without threads", branches.len(), 0);
    let (cpu_ns, samples) = threads
        .values()
        .fold((0_u64, 0_u64), |(cpu_ns, samples), sum| (cpu_ns.saturating_add(sum.1), samples.saturating_add(sum.2)));
    audit.expect(report.index, "time of all threads", cpu_ns, report.cpu.target_ns);
    audit.expect(report.index, "samples of all threads", samples, report.cpu.samples);
    check_cpu(audit, report.index, &report.cpu);
}

/// What a path gets is taken from another one of the same threads, and what windows without a sample had is what paths
/// got of them.
fn check_inferred(audit: &mut RunAudit, window: &RollupWindow, table: &StackTable) {
    let report = &window.report;
    let mut moved = vec![(0_i64, 0_i64); report.threads.len()];
    let mut unsampled = vec![(0_i128, 0_i128); report.threads.len()];
    for (branch, pooled) in report.branches.iter().zip(&window.pooled) {
        if let Some((energy_uj, cpu_ns)) = moved.get_mut(branch.thread) {
            *energy_uj = energy_uj.saturating_add(pooled.inferred.energy_uj);
            *cpu_ns = cpu_ns.saturating_add(pooled.inferred.cpu_ns);
        }
        let left = i128::from(branch.energy.0) + i128::from(pooled.inferred.energy_uj);
        audit.expect(report.index, "whether more is taken from a call path than it has", left < 0, false);
        if let Some((had, got)) = unsampled.get_mut(branch.thread) {
            *got += i128::from(pooled.inferred.unsampled_uj);
            if table.leaf_method(branch.branch).is_some_and(|leaf| table.frame(leaf).is_marker(Marker::NoSample)) {
                *had += i128::from(branch.by_samples().0);
                *got += left - i128::from(branch.by_bytes.0);
            }
        }
    }
    for ((thread, moved), (had, got)) in report.threads.iter().zip(moved).zip(unsampled) {
        let what = format!("energy and time that is inferred of {} threads", thread.category.name());
        audit.expect(report.index, &what, format!("{moved:?}"), format!("{:?}", (0, 0)));
        let what = format!("energy of {} threads in windows without a sample", thread.category.name());
        audit.expect(report.index, &what, got, had);
    }
}

/// What is inferred of methods, over the windows that their rows cover.
#[derive(Default)]
struct Inference {
    written: HashMap<i64, WrittenMethods>,
    spans: MethodSpans,
    derived: InferredMethods,
    /// Start and number of the span's first window.
    first: (i64, u64),
}

impl Inference {
    fn window(&mut self, audit: &mut RunAudit, window: &RollupWindow, table: &StackTable) {
        let report = &window.report;
        if self.spans.begins(report.wall_start.0, report.length_ns) {
            self.compare(audit, table);
            self.first = (report.wall_start.0, report.index);
        }
        add_inferred(&mut self.derived, window, table);
    }

    /// Compares the last span.
    fn compare(&mut self, audit: &mut RunAudit, table: &StackTable) {
        let mut derived = WrittenMethods::new();
        for ((process, method), [own, total]) in std::mem::take(&mut self.derived) {
            let sum = derived.entry(name_of(process, table.frame(method))).or_default();
            *sum = [sum[0].saturating_add(own), sum[1].saturating_add(total)];
        }
        let written = self.written.remove(&self.first.0).unwrap_or_default();
        for (name, inferred) in &derived {
            let found = written.get(name).copied().unwrap_or_default();
            let what = format!("inferred energy of {} in process {}", name.2.escape_debug(), name.0);
            audit.expect(self.first.1, &what, format!("{found:?}"), format!("{inferred:?}"));
        }
    }
}

fn name_of((pid, start_ns): (Pid, u64), frame: &Frame) -> MethodName {
    let text = |text: Option<&TargetText>| text.map(|text| text.raw().to_owned()).unwrap_or_default();
    (
        pid.0,
        i64::try_from(start_ns / 1000).unwrap_or(i64::MAX),
        frame.method().into_raw(),
        text(frame.signature.as_ref()),
        frame.kind.name().to_owned(),
        text(frame.module.as_ref()),
    )
}

fn inferred_methods(file: Option<&StoredFile>) -> Result<Inference> {
    let mut inference = Inference::default();
    let Some(file) = file else { return Ok(inference) };
    TableFile::open(file)?.batches(|columns| {
        let (starts, pids) = (columns.times(shared::WINDOW_START)?, columns.ints(shared::PID)?);
        let (process_starts, lengths) = (columns.times(shared::PROCESS_START)?, columns.ints(shared::WINDOW_NS)?);
        let [names, signatures, kinds, modules] =
            [columns_of::METHOD, columns_of::SIGNATURE, columns_of::KIND, columns_of::MODULE]
                .map(|column| columns.texts(column));
        let (names, signatures, kinds, modules) = (names?, signatures?, kinds?, modules?);
        let own = columns.ints(rollup_columns::INFERRED_SELF_UJ)?;
        let total = columns.ints(rollup_columns::INFERRED_TOTAL_UJ)?;
        for row in 0..columns.rows() {
            let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
            let name = (
                pids.natural(row)?,
                process_starts.get(row)?,
                names.get(row)?.to_owned(),
                owned(signatures.maybe(row)),
                kinds.get(row)?.to_owned(),
                owned(modules.maybe(row)),
            );
            let start = starts.get(row)?;
            inference.spans.note(start, lengths.natural(row)?);
            inference.written.entry(start).or_default().insert(name, [own.get(row)?, total.get(row)?]);
        }
        Ok(())
    })?;
    Ok(inference)
}
