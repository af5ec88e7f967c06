//! Sums the windows of a run that become one.

use std::collections::BTreeMap;

use super::{
    beside,
    inferred::{OfWindow, Shown, ThreadKey},
};
use crate::{
    attribution::{
        jvms::jvm_rows,
        quality::quality_rows,
        window_report::{BranchRow, Category, ProcessRef, ThreadRow, WindowReport, squares_of},
    },
    dataset::{
        read::{rollup::all_threads, stacks::ReadStacks},
        tables::rollup::Inferred,
        write::{Pooled, RollupWindow, method_rows},
    },
    events::SampleKind,
    model::units::{MicroJoules, Pid},
    stacks::{BranchIndex, StackTable},
};

type ProcessKey = (Pid, u64);

/// Windows so far.
#[derive(Debug, Default)]
pub(super) struct Sum {
    /// What is the window's own. The rest of it is made at the end.
    whole: WindowReport,
    context: beside::Sum,
    processes: BTreeMap<ProcessKey, ProcessRef>,
    threads: BTreeMap<ThreadKey, ThreadRow>,
    branches: BTreeMap<(ThreadKey, i64), Branch>,
}

/// A call path, and what it got.
#[derive(Clone, Copy, Debug)]
struct Branch {
    path: BranchIndex,
    energy: MicroJoules,
    cpu_ns: u64,
    samples: u64,
    by_bytes: MicroJoules,
    pooled: Pooled,
}

impl Branch {
    const fn empty(path: BranchIndex) -> Self {
        Self { path, energy: MicroJoules(0), cpu_ns: 0, samples: 0, by_bytes: MicroJoules(0), pooled: Pooled::NONE }
    }

    /// What it needs to become what is shown.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "for an error estimate")]
    fn difference(&self, shown: &Shown) -> Inferred {
        Inferred {
            energy_uj: shown.energy_uj.wrapping_sub(self.energy.0).cast_signed(),
            cpu_ns: shown.cpu_ns.wrapping_sub(self.cpu_ns).cast_signed(),
            squares_uj2: (shown.squares - self.pooled.squares as f64).round() as i64,
            unsampled_uj: shown.unsampled_uj,
        }
    }

    fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
        self.by_bytes = self.by_bytes.saturating_add(other.by_bytes);
        self.pooled.squares = self.pooled.squares.saturating_add(other.pooled.squares);
        self.pooled.inferred.plus(other.pooled.inferred);
    }
}

impl Sum {
    /// Begins with the first window, which is number `index` of the rollup.
    pub(super) fn of(index: u64, report: &WindowReport, stacks: &StackTable) -> Self {
        let whole =
            WindowReport { index, start: report.start, wall_start: report.wall_start, ..WindowReport::default() };
        let mut sum = Self { whole, ..Self::default() };
        sum.add(report, stacks);
        sum
    }

    pub(super) fn add(&mut self, report: &WindowReport, stacks: &StackTable) {
        self.context.add(report);
        self.whole.length_ns = self.whole.length_ns.saturating_add(report.length_ns);
        beside::add_cpu(&mut self.whole.cpu, &report.cpu);
        beside::add_losses(&mut self.whole.losses, &report.losses);
        if self.whole.domains.is_empty() {
            self.whole.domains.clone_from(&report.domains);
        } else {
            let domains = self.whole.domains.iter_mut().zip(&report.domains);
            domains.for_each(|(sum, next)| beside::add_domain(sum, next));
        }
        let keys: Vec<Option<ThreadKey>> =
            report.threads.iter().map(|thread| self.add_thread(report, thread)).collect();
        for row in &report.branches {
            let Some(Some(thread)) = keys.get(row.thread) else { continue };
            let squares = squares_of(row.by_samples(), row.samples);
            let BranchRow { branch: path, energy, cpu_ns, samples, by_bytes, .. } = *row;
            let key = (*thread, stacks.stack_id(path));
            let pooled = Pooled { squares, ..Pooled::default() };
            let next = Branch { path, energy, cpu_ns, samples, by_bytes, pooled };
            self.branches.entry(key).or_insert(Branch::empty(path)).plus(&next);
        }
    }

    /// A thread that changes its name or category has the last one.
    fn add_thread(&mut self, report: &WindowReport, thread: &ThreadRow) -> Option<ThreadKey> {
        let process = report.processes.get(thread.process)?;
        let key = (process.pid, process.start_boottime_ns, thread.tid, thread.start_boottime_ns);
        self.processes.insert((key.0, key.1), process.clone());
        let new =
            || ThreadRow { cpu_ns: 0, samples: 0, energy: MicroJoules(0), by_bytes: MicroJoules(0), ..thread.clone() };
        let sum = self.threads.entry(key).or_insert_with(new);
        sum.name.clone_from(&thread.name);
        sum.category = thread.category;
        add_work(sum, thread);
        Some(key)
    }

    /// The window, with what is shown once light windows are divided by samples of several.
    pub(super) fn finish(mut self, shown: &OfWindow, stacks: &ReadStacks) -> RollupWindow {
        self.infer(shown, stacks);
        let positions: BTreeMap<ProcessKey, usize> = self.processes.keys().copied().zip(0..).collect();
        let (groups, branches) = self.by_category();
        let places: BTreeMap<(ProcessKey, Category), usize> = groups.keys().copied().zip(0..).collect();
        let of_group = |((process, category), sum): (&(ProcessKey, Category), &ThreadRow)| ThreadRow {
            process: positions.get(process).copied().unwrap_or_default(),
            category: *category,
            ..sum.clone()
        };
        let threads: Vec<ThreadRow> = groups.iter().map(of_group).collect();
        let mut pooled = Vec::with_capacity(branches.len());
        let mut rows = Vec::with_capacity(branches.len());
        for ((process, category, _), branch) in &branches {
            let thread = places.get(&(*process, *category)).copied().unwrap_or_default();
            let Branch { path: branch, energy, cpu_ns, samples, by_bytes, pooled: beside } = *branch;
            rows.push(BranchRow { thread, kind: SampleKind::CpuTime, branch, cpu_ns, samples, energy, by_bytes });
            pooled.push(beside.rounded());
        }
        let own = std::mem::take(&mut self.threads).into_iter();
        let own = own.filter_map(|(key, row)| Some((self.processes.get(&(key.0, key.1))?.clone(), row)));
        let table = &stacks.table;
        let report = WindowReport {
            context: self.context.finish(),
            qualities: quality_rows(&threads, &rows, |branch| table.facts(branch)),
            jvms: jvm_rows(&threads, &rows, |branch| table.facts(branch)),
            processes: self.processes.values().cloned().collect(),
            threads,
            branches: rows,
            ..self.whole
        };
        let methods = method_rows(&report, &pooled, table);
        let report = WindowReport { methods, ..report };
        RollupWindow { report, pooled, threads: own.collect(), ..RollupWindow::default() }
    }

    /// Notes by how much paths differ from what was recorded.
    fn infer(&mut self, shown: &OfWindow, stacks: &ReadStacks) {
        for (thread, stack_id) in shown.keys() {
            if let Some(path) = stacks.get(*stack_id) {
                self.branches.entry((*thread, *stack_id)).or_insert(Branch::empty(path));
            }
        }
        for (key, branch) in &mut self.branches {
            branch.pooled.inferred = branch.difference(&shown.get(key).copied().unwrap_or_default());
        }
    }

    /// Threads of a category of a process become one, and their branches.
    #[allow(clippy::type_complexity, reason = "two maps with the same kind of key")]
    fn by_category(
        &self,
    ) -> (BTreeMap<(ProcessKey, Category), ThreadRow>, BTreeMap<(ProcessKey, Category, i64), Branch>) {
        let mut groups = BTreeMap::new();
        for (key, thread) in &self.threads {
            let new = || all_threads(0, thread.category);
            add_work(groups.entry(((key.0, key.1), thread.category)).or_insert_with(new), thread);
        }
        let mut branches = BTreeMap::new();
        for ((key, stack_id), branch) in &self.branches {
            let Some(thread) = self.threads.get(key) else { continue };
            let group = ((key.0, key.1), thread.category, *stack_id);
            branches.entry(group).or_insert(Branch::empty(branch.path)).plus(branch);
        }
        (groups, branches)
    }
}

fn add_work(sum: &mut ThreadRow, next: &ThreadRow) {
    sum.energy = sum.energy.saturating_add(next.energy);
    sum.cpu_ns = sum.cpu_ns.saturating_add(next.cpu_ns);
    sum.samples = sum.samples.saturating_add(next.samples);
    sum.by_bytes = sum.by_bytes.saturating_add(next.by_bytes);
}
