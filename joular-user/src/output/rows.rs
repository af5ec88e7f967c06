//! Windows become rows: in a fixed order, without clocks, so that the same
//! windows always give the same bytes. No I/O.

use std::collections::{BTreeMap, HashSet};

use arrow::error::ArrowError;

use super::{
    branch_id::branch_id,
    column::{Buffer, Table},
    error::{OutputError, Result},
    tables::{
        Boot, BranchRecord, Branches, MethodRecord, Methods, ProcessRecord, Processes, StackRecord, Stacks,
        ThreadRecord, Threads, WindowKey, WindowRecord, Windows, Work,
    },
};
use crate::{
    attribution::report::{DomainAudit, WindowReport},
    events::{ProcessInfo, RunInfo, Runtime},
    stacks::{BranchIndex, StackTable},
    units::{Pid, UnixMicros},
};

/// Memory for what became known about processes since the last window. Only a
/// recording made by hand reaches it; what is beyond has no row.
const MAX_NEWS_BYTES: usize = 256 << 20;

/// Rows that wait to be written.
#[derive(Default)]
pub struct Rows {
    pub processes: Buffer<Processes>,
    pub stacks: Buffer<Stacks>,
    pub threads: Buffer<Threads>,
    pub methods: Buffer<Methods>,
    pub branches: Buffer<Branches>,
    pub windows: Buffer<Windows>,
    run_id: String,
    boottime_offset_ns: u64,
    boot: Option<Boot>,
    /// What became known about processes since the last window.
    news: BTreeMap<(Pid, u64), ProcessInfo>,
    news_bytes: usize,
    /// Generation of the stack table that the next two are about.
    generation: u64,
    /// Ids of the stack table's branches, by index.
    branch_ids: Vec<i64>,
    /// Branches whose stack row exists already. Forgotten with the table: a
    /// row that exists twice does less harm than a set that only grows.
    known: HashSet<i64>,
}

impl Rows {
    pub fn new(run: &RunInfo) -> Self {
        Self { run_id: run.run_id.clone(), boottime_offset_ns: run.boottime_offset_ns, ..Self::default() }
    }

    pub fn process(&mut self, info: &ProcessInfo) {
        let bytes = self.news_bytes.saturating_add(size_of::<ProcessInfo>() + text_bytes(info));
        if bytes <= MAX_NEWS_BYTES {
            self.news_bytes = bytes;
            self.news.insert((info.pid, info.start_boottime_ns), info.clone());
        }
    }

    /// Load of the fullest table.
    pub fn load(&self) -> usize {
        [
            self.processes.load(),
            self.stacks.load(),
            self.threads.load(),
            self.methods.load(),
            self.branches.load(),
            self.windows.load(),
        ]
        .into_iter()
        .max()
        .unwrap_or_default()
    }

    pub fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        let boot = *self.boot.get_or_insert(Boot::new(report.start, self.boottime_offset_ns, report.wall_start));
        self.process_rows(Some((report.wall_start, boot)))?;
        self.learn_branches(stacks);
        let run_id = std::mem::take(&mut self.run_id);
        let key = WindowKey {
            run_id: &run_id,
            start: report.wall_start,
            length_ns: report.length_ns,
            label: report.domains.iter().map(|audit| audit.label).max(),
            ambiguous: report.domains.iter().any(DomainAudit::is_ambiguous),
            boot,
        };
        let result = self.rows_of(key, report, stacks);
        self.run_id = run_id;
        result
    }

    fn rows_of(&mut self, key: WindowKey<'_>, report: &WindowReport, stacks: &StackTable) -> Result<()> {
        self.window_rows(key, report).map_err(of::<Windows>())?;
        self.thread_rows(key, report).map_err(of::<Threads>())?;
        self.method_rows(key, report, stacks).map_err(of::<Methods>())?;
        self.branch_rows(key, report).map_err(of::<Branches>())?;
        self.stack_rows(key, report, stacks).map_err(of::<Stacks>())
    }

    /// Rows for what became known about processes; without a window if none came any more.
    pub fn process_rows(&mut self, seen: Option<(UnixMicros, Boot)>) -> Result<()> {
        self.news_bytes = 0;
        for info in std::mem::take(&mut self.news).into_values() {
            self.processes
                .push(&ProcessRecord { run_id: &self.run_id, seen, info: &info })
                .map_err(of::<Processes>())?;
        }
        Ok(())
    }

    fn window_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        let row = |audit| WindowRecord { key, index: report.index, audit, cpu: &report.cpu, losses: &report.losses };
        if report.domains.is_empty() {
            return self.windows.push(&row(None));
        }
        report.domains.iter().try_for_each(|audit| self.windows.push(&row(Some(audit))))
    }

    fn thread_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        let mut records: Vec<_> = (0..report.threads.len()).filter_map(|index| thread(key, report, index)).collect();
        records.sort_by(|a, b| identity(a).cmp(&identity(b)));
        records.iter().try_for_each(|record| self.threads.push(record))
    }

    fn method_rows(
        &mut self,
        key: WindowKey<'_>,
        report: &WindowReport,
        stacks: &StackTable,
    ) -> Result<(), ArrowError> {
        let mut records = Vec::with_capacity(report.methods.len());
        for row in &report.methods {
            let Some(process) = report.processes.get(row.process) else { continue };
            records.push(MethodRecord { key, process, row, frame: stacks.frame(row.method) });
        }
        records.sort_by(|a, b| (a.process, &a.frame.class, a.frame).cmp(&(b.process, &b.frame.class, b.frame)));
        records.iter().try_for_each(|record| self.methods.push(record))
    }

    /// Branches that differ only in kind or line have one id, and one row.
    fn branch_rows(&mut self, key: WindowKey<'_>, report: &WindowReport) -> Result<(), ArrowError> {
        let mut work: BTreeMap<(usize, i64), Work> = BTreeMap::new();
        for row in &report.branches {
            let Some(branch_id) = self.branch_id(row.branch) else { continue };
            let work = work.entry((row.thread, branch_id)).or_default();
            work.energy_uj = work.energy_uj.saturating_add(row.energy.0);
            work.cpu_ns = work.cpu_ns.saturating_add(row.cpu_ns);
            work.samples = work.samples.saturating_add(row.samples);
        }
        let record = |((index, branch_id), work)| {
            thread(key, report, index).map(|thread| BranchRecord { thread: ThreadRecord { work, ..thread }, branch_id })
        };
        let mut records: Vec<_> = work.into_iter().filter_map(record).collect();
        records.sort_by(|a, b| (identity(&a.thread), a.branch_id).cmp(&(identity(&b.thread), b.branch_id)));
        records.iter().try_for_each(|record| self.branches.push(record))
    }

    fn stack_rows(&mut self, key: WindowKey<'_>, report: &WindowReport, stacks: &StackTable) -> Result<(), ArrowError> {
        // Ordered by index: the order in which the branches were first seen.
        let fresh: BTreeMap<BranchIndex, i64> = report
            .branches
            .iter()
            .filter_map(|row| Some((row.branch, self.branch_id(row.branch)?)))
            .filter(|(_, id)| !self.known.contains(id))
            .collect();
        for (index, branch_id) in fresh {
            if self.known.insert(branch_id) {
                let frames = stacks.branch(index).iter().map(|id| stacks.frame(*id)).collect();
                self.stacks.push(&StackRecord { run_id: key.run_id, first_seen: key.start, branch_id, frames })?;
            }
        }
        Ok(())
    }

    /// Ids of the branches that the table got since the last window.
    fn learn_branches(&mut self, stacks: &StackTable) {
        if stacks.generation() != self.generation {
            self.generation = stacks.generation();
            self.branch_ids = Vec::new();
            self.known = HashSet::new();
        }
        for index in self.branch_ids.len()..stacks.branch_count() {
            let Ok(index) = u32::try_from(index) else { break };
            let frames = stacks.branch(BranchIndex(index)).iter().map(|id| stacks.frame(*id));
            self.branch_ids.push(branch_id(frames));
        }
    }

    fn branch_id(&self, index: BranchIndex) -> Option<i64> {
        self.branch_ids.get(usize::try_from(index.0).ok()?).copied()
    }
}

/// Text that a process chooses.
fn text_bytes(info: &ProcessInfo) -> usize {
    let jvm = match &info.runtime {
        Runtime::Native => [None; 3],
        Runtime::Jvm { version, main_class, collector } => [version.as_ref(), main_class.as_ref(), collector.as_ref()],
    };
    let parts = [&info.executable, &info.cgroup, &info.container, &info.pod].map(Option::as_ref);
    let texts = info.command_line.iter().chain(jvm.into_iter().chain(parts).flatten());
    texts.map(|text| text.len() + size_of::<String>()).sum()
}

fn of<T: Table>() -> impl Fn(ArrowError) -> OutputError {
    OutputError::encode(T::NAME)
}

/// The record of a report's thread; `None` for an index that leads nowhere.
fn thread<'a>(key: WindowKey<'a>, report: &'a WindowReport, index: usize) -> Option<ThreadRecord<'a>> {
    let thread = report.threads.get(index)?;
    let process = report.processes.get(thread.process)?;
    let work = Work { energy_uj: thread.energy.0, cpu_ns: thread.cpu_ns, samples: thread.samples };
    Some(ThreadRecord { key, process, thread, work })
}

/// What threads are ordered by within a window.
fn identity<'r>(record: &'r ThreadRecord<'_>) -> impl Ord + use<'r> {
    let thread = record.thread;
    (record.process, thread.tid, thread.start_boottime_ns, thread.category, thread.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::fixture;

    #[test]
    fn what_processes_say_of_themselves_is_bounded() {
        let mut rows = Rows::new(&fixture::run());
        let argument = "a".repeat(60_000);
        for pid in 0..6_000 {
            let command_line = vec![argument.clone()];
            rows.process(&ProcessInfo { pid: Pid(pid), command_line, ..ProcessInfo::default() });
        }
        assert!(rows.news_bytes <= MAX_NEWS_BYTES && rows.news.len() < 4_500, "{}", rows.news.len());
        rows.process_rows(None).unwrap();
        rows.process(&fixture::process(0));
        assert_eq!(rows.news.len(), 1);
    }
}
