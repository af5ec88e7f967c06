//! Turns windows into rows, in a fixed order and without clocks, so that the same windows always
//! give the same bytes. No I/O.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use arrow_schema::ArrowError;

use crate::{
    attribution::{
        allocated::AllocationRow,
        window_report::{BranchRow, WindowReport},
        work::{Claimant, ClaimedSlice},
    },
    dataset::{
        column::Table,
        method_sums::{MethodSpan, MethodSums},
        tables::{
            Ages, AllocationRecord, Allocations, Boot, BranchRecord, Branches, Buffers, Collections, CounterRecord,
            Counters, GcCharges, Io, IoRecord, JvmRecord, Jvms, MarkRecord, Marks, MethodRecord, Methods,
            ProcessRecord, Processes, Quality, QualityRecord, StackRecord, Stacks, ThreadRecord, Threads, WeightRecord,
            Weights, WindowKey, WindowRecord, Windows, Work, weights,
        },
    },
    events::{ProcessInfo, RunInfo, Runtime, phases::OpenPhases},
    model::{
        target_text::TargetText,
        units::{Pid, UnixMicros},
    },
    output::{OutputError, Result},
    stacks::{BranchIndex, FrameId, StackTable},
};

/// Memory for what became known about processes since the last window. Only a recording made by
/// hand reaches it; what exceeds it has no row.
const MAX_NEWS_BYTES: usize = 256 << 20;

/// Stacks whose rows are known to exist, some megabytes. A row that exists twice does less harm
/// than a set that only grows.
const MAX_KNOWN: usize = 1 << 18;

/// Rows that wait to be written.
#[derive(Default)]
pub struct Rows {
    pub tables: Buffers,
    /// Methods of the windows since the last file.
    methods: MethodSums,
    run_id: String,
    /// Number that the run's first window has in its recording.
    first_index: u64,
    boottime_offset_ns: u64,
    pub(super) boot: Option<Boot>,
    /// What became known about processes since the last window.
    news: BTreeMap<(Pid, u64), ProcessInfo>,
    news_bytes: usize,
    /// Stacks, by id, whose row exists already.
    known: HashSet<i64>,
    phases: OpenPhases,
}

impl Rows {
    /// `first_index` is the number of the run's first window; `boot` is known if the run goes on with another
    /// one's recording.
    pub fn new(run: &RunInfo, first_index: u64, boot: Option<Boot>) -> Self {
        let (run_id, boottime_offset_ns) = (run.run_id.clone(), run.boottime_offset_ns);
        Self { run_id, first_index, boottime_offset_ns, boot, ..Self::default() }
    }

    /// For reports whose start times are wall-clock times already.
    pub fn at_wall_clock(run: &RunInfo) -> Self {
        Self { run_id: run.run_id.clone(), ..Self::default() }
    }

    pub fn process(&mut self, info: &ProcessInfo) {
        let bytes = self.news_bytes.saturating_add(size_of::<ProcessInfo>() + text_bytes(info));
        if bytes <= MAX_NEWS_BYTES {
            self.news_bytes = bytes;
            self.news.insert((info.pid, info.start_boottime_ns), info.clone());
        }
    }

    pub fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let boot = self.boot(report);
        self.process_rows(Some((report.wall_start, boot)))?;
        if self.known.len() >= MAX_KNOWN {
            self.known = HashSet::new();
        }
        self.with_key(report, |rows, key| {
            rows.share_rows(key, report, stacks)?;
            rows.sum_methods(report, stacks)?;
            rows.mark_rows(key, report).map_err(of::<Marks>())?;
            rows.counter_rows(key, report).map_err(of::<Counters>())?;
            rows.allocation_rows(key, report, stacks).map_err(of::<Allocations>())?;
            rows.age_rows(key, report).map_err(of::<Ages>())?;
            rows.io_rows(key, report, stacks).map_err(of::<Io>())?;
            rows.stack_rows(key, report, stacks).map_err(of::<Stacks>())
        })
    }

    /// Only the rows that depend on the policy. `begins_sum`: methods are summed from this
    /// window on.
    pub fn window_again(&mut self, report: &WindowReport, stacks: &StackTable, begins_sum: bool) -> Result<()> {
        if begins_sum {
            self.method_rows()?;
        }
        self.with_key(report, |rows, key| {
            rows.share_rows(key, report, stacks)?;
            rows.sum_methods(report, stacks)
        })
    }

    pub(super) fn boot(&mut self, report: &WindowReport) -> Boot {
        *self.boot.get_or_insert(Boot::new(report.start, self.boottime_offset_ns, report.wall_start))
    }

    pub(super) fn with_key(
        &mut self,
        report: &WindowReport,
        take: impl FnOnce(&mut Self, WindowKey<'_>) -> Result<()>,
    ) -> Result<()> {
        let boot = self.boot(report);
        let run_id = std::mem::take(&mut self.run_id);
        let key = WindowKey {
            run_id: &run_id,
            start: report.wall_start,
            length_ns: report.length_ns,
            label: report.label(),
            ambiguous: report.is_ambiguous(),
            boot,
        };
        let result = take(self, key);
        self.run_id = run_id;
        result
    }

    fn share_rows(&mut self, key: WindowKey<'_>, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        self.process_sums(key, report)?;
        self.thread_rows(key, report).map_err(of::<Threads>())?;
        self.weight_rows(key, report).map_err(of::<Weights>())?;
        self.collection_rows(key, report).map_err(of::<Collections>())?;
        self.charge_rows(key, report, stacks).map_err(of::<GcCharges>())?;
        self.branch_rows(key, report, stacks).map_err(of::<Branches>())
    }

    /// Rows of the window itself and of its processes.
    pub(super) fn process_sums(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<()> {
        self.window_rows(key, report).map_err(of::<Windows>())?;
        self.quality_rows(key, report).map_err(of::<Quality>())?;
        self.jvm_rows(key, report).map_err(of::<Jvms>())
    }

    /// Adds a window's methods to the sums that become rows.
    fn sum_methods(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        if !self.methods.takes(report, stacks) {
            self.method_rows()?;
        }
        self.methods.add(report, stacks);
        Ok(())
    }

    /// Rows for the methods of all windows since the last call.
    pub fn method_rows(&mut self) -> Result<()> {
        let sums = std::mem::take(&mut self.methods);
        let Some(span) = sums.span else { return Ok(()) };
        let mut rows = std::mem::take(&mut self.tables.methods);
        let mut methods = sums.methods().into_iter();
        let result = self.with_span(&span, |key| {
            methods.try_for_each(|method| rows.push(&MethodRecord { key, method: &method })).map_err(of::<Methods>())
        });
        self.tables.methods = rows;
        result
    }

    /// Gives the key of rows that cover the windows of a span, if there was any window.
    pub(super) fn with_span(&self, span: &MethodSpan, take: impl FnOnce(WindowKey<'_>) -> Result<()>) -> Result<()> {
        let Some(boot) = self.boot else { return Ok(()) };
        let MethodSpan { start, length_ns, label, ambiguous } = *span;
        take(WindowKey { run_id: &self.run_id, start, length_ns, label, ambiguous, boot })
    }

    /// Rows of the fullest table, or the frames in them where those are more.
    pub fn load(&self) -> usize {
        self.tables.load().max(self.methods.len())
    }

    /// Makes rows of what became known about processes; without a window if none came any more.
    pub fn process_rows(&mut self, seen: Option<(UnixMicros, Boot)>) -> Result<()> {
        self.news_bytes = 0;
        for info in std::mem::take(&mut self.news).into_values() {
            self.tables
                .processes
                .push(&ProcessRecord { run_id: &self.run_id, seen, info: &info })
                .map_err(of::<Processes>())?;
        }
        Ok(())
    }

    fn window_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        let (index, context) = (report.index.saturating_sub(self.first_index), report.context.as_ref());
        let row = |audit| WindowRecord { key, index, audit, cpu: &report.cpu, context, losses: &report.losses };
        if report.domains.is_empty() {
            return self.tables.windows.push(&row(None));
        }
        report.domains.iter().try_for_each(|audit| self.tables.windows.push(&row(Some(audit))))
    }

    fn thread_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        let mut records: Vec<_> = (0..report.threads.len()).filter_map(|index| thread(key, report, index)).collect();
        records.sort_by(|a, b| identity(a).cmp(&identity(b)));
        records.iter().try_for_each(|record| self.tables.threads.push(record))
    }

    fn branch_rows(
        &mut self,
        key: WindowKey<'_>,
        report: &WindowReport,
        stacks: &StackTable,
    ) -> Result<(), ArrowError> {
        let record = |row: &BranchRow| {
            let work = Work::of_branch(row);
            let thread = ThreadRecord { work, ..thread(key, report, row.thread)? };
            Some(BranchRecord {
                thread,
                branch_id: stacks.branch_id(row.branch),
                stack_id: stacks.stack_id(row.branch),
            })
        };
        let mut records: Vec<_> = report.branches.iter().filter_map(record).collect();
        records.sort_by(|a, b| (identity(&a.thread), a.stack_id).cmp(&(identity(&b.thread), b.stack_id)));
        records.iter().try_for_each(|record| self.tables.branches.push(record))
    }

    fn quality_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        let mut records = Vec::with_capacity(report.qualities.len());
        for row in &report.qualities {
            let Some(process) = report.processes.get(row.process) else { continue };
            records.push(QualityRecord { key, process, row });
        }
        records.sort_by_key(|record| (record.process, record.row.category, record.row.quality, record.row.unnamed));
        records.iter().try_for_each(|record| self.tables.quality.push(record))
    }

    fn jvm_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        let mut records = Vec::with_capacity(report.jvms.len());
        for row in &report.jvms {
            let Some(process) = report.processes.get(row.process) else { continue };
            records.push(JvmRecord { key, process, row });
        }
        records.sort_by_key(|record| record.process);
        records.iter().try_for_each(|record| self.tables.jvms.push(record))
    }

    /// Threads first, in the order of their rows.
    fn weight_rows<'r>(&mut self, key: WindowKey<'r>, report: &'r WindowReport) -> Result<(), ArrowError> {
        let weight = |claimed: &'r ClaimedSlice| {
            let thread = weights::thread_of(report, claimed.claimant);
            let is_thread = matches!(claimed.claimant, Claimant::Thread(_));
            (thread.is_some() || !is_thread).then_some(WeightRecord { key, thread, claimed })
        };
        report.slices.iter().filter_map(weight).try_for_each(|record| self.tables.weights.push(&record))
    }

    /// Threads have rows of what they counted, groups of everything that was asked for.
    fn counter_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        for record in report.counts.iter().flat_map(|counts| CounterRecord::of(key, report, counts)) {
            self.tables.counters.push(&record)?;
        }
        Ok(())
    }

    fn allocation_rows(
        &mut self,
        key: WindowKey<'_>,
        report: &WindowReport,
        stacks: &StackTable,
    ) -> Result<(), ArrowError> {
        let record = |row: &AllocationRow| {
            Some(AllocationRecord {
                thread: thread(key, report, row.thread)?,
                branch_id: stacks.branch_id(row.branch),
                stack_id: stacks.stack_id(row.branch),
                class: row.class.map(|class| stacks.frame(class).name.raw()),
                bytes: row.bytes,
                samples: row.samples,
                by: row.by,
                bytes_per_sample: row.bytes_per_sample,
            })
        };
        let mut records: Vec<_> = report.allocations.iter().filter_map(record).collect();
        records.sort_by(|a, b| {
            (identity(&a.thread), a.stack_id, a.class).cmp(&(identity(&b.thread), b.stack_id, b.class))
        });
        records.iter().try_for_each(|record| self.tables.allocations.push(record))
    }

    fn io_rows(&mut self, key: WindowKey<'_>, report: &WindowReport, stacks: &StackTable) -> Result<(), ArrowError> {
        let records = report.moved.iter().flat_map(|moved| IoRecord::of(key, report, moved, stacks));
        records.into_iter().try_for_each(|record| self.tables.io.push(&record))
    }

    fn mark_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        for mark in &report.marks {
            let step = self.phases.take(mark);
            let since_start_ns = mark.at.0.cast_signed().saturating_sub(report.start.0.cast_signed());
            self.tables.marks.push(&MarkRecord { key, mark, step: &step, since_start_ns })?;
        }
        Ok(())
    }

    fn stack_rows(&mut self, key: WindowKey<'_>, report: &WindowReport, stacks: &StackTable) -> Result<(), ArrowError> {
        let paths = report
            .branches
            .iter()
            .map(|row| row.branch)
            .chain(report.allocations.iter().map(|row| row.branch))
            .chain(report.charges.iter().map(|row| row.branch))
            .chain(report.moved.iter().flat_map(|moved| &moved.rows).filter_map(|row| row.branch))
            .collect();
        self.rows_of_stacks(key, &paths, stacks)
    }

    /// Rows of stacks that have none yet.
    pub(super) fn rows_of_stacks(
        &mut self,
        key: WindowKey<'_>,
        // Ordered by index: the order in which the paths were first seen.
        paths: &BTreeSet<BranchIndex>,
        stacks: &StackTable,
    ) -> Result<(), ArrowError> {
        for index in paths.iter().copied() {
            let (branch_id, stack_id) = (stacks.branch_id(index), stacks.stack_id(index));
            if self.known.insert(stack_id) {
                let known = |id: &FrameId| ((stacks.frames_generation(), *id), stacks.frame(*id));
                let frames = stacks.branch(index).iter().map(known).collect();
                let (run_id, first_seen, facts) = (key.run_id, key.start, stacks.facts(index));
                let record = StackRecord { run_id, first_seen, branch_id, stack_id, facts, frames };
                self.tables.stacks.push(&record)?;
            }
        }
        Ok(())
    }
}

/// Bytes of the texts that a process chooses.
pub(super) fn text_bytes(info: &ProcessInfo) -> usize {
    let jvm = match &info.runtime {
        Runtime::Native => [None; 4],
        Runtime::Jvm { version, main_class, collector, unwinding, .. } => {
            [version, main_class, collector, unwinding].map(Option::as_ref)
        }
    };
    let parts = [&info.executable, &info.cgroup, &info.container, &info.pod, &info.unit].map(Option::as_ref);
    let service = info.service.as_ref();
    let of_service = [service.map(|service| &service.name), service.and_then(|service| service.version.as_ref())];
    let texts = info.command_line.iter().chain(jvm.into_iter().chain(parts).chain(of_service).flatten());
    texts.map(|text| text.raw().len() + size_of::<TargetText>()).sum()
}

pub(super) fn of<T: Table>() -> impl Fn(ArrowError) -> OutputError {
    OutputError::encode(T::NAME)
}

/// The record of a report's thread; `None` for an index that leads nowhere.
fn thread<'a>(key: WindowKey<'a>, report: &'a WindowReport, index: usize) -> Option<ThreadRecord<'a>> {
    let thread = report.threads.get(index)?;
    let process = report.processes.get(thread.process)?;
    Some(ThreadRecord { key, process, thread, work: Work::of_thread(thread) })
}

/// Sort key of threads within a window.
fn identity<'r>(record: &'r ThreadRecord<'_>) -> impl Ord + use<'r> {
    let thread = record.thread;
    (record.process, thread.tid, thread.start_boottime_ns, thread.category, &thread.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_processes_say_of_themselves_is_bounded() {
        let mut rows = Rows::new(&fixture::run(), 0, None);
        let argument = "a".repeat(60_000);
        for pid in 0..6_000 {
            let command_line = vec![argument.as_str().into()];
            rows.process(&ProcessInfo { pid: Pid(pid), command_line, ..ProcessInfo::default() });
        }
        assert!(rows.news_bytes <= MAX_NEWS_BYTES && rows.news.len() < 4_500, "{}", rows.news.len());
        rows.process_rows(None).unwrap();
        rows.process(&fixture::process(0));
        assert_eq!(rows.news.len(), 1);
    }
}
