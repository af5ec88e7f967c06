//! Makes a window of a rollup of what categories of threads have by call path.

use std::collections::BTreeMap;

use crate::{
    attribution::{
        jvms::jvm_rows,
        quality::quality_rows,
        window_report::{BranchRow, Category, ProcessRef, ThreadRow, WindowReport},
    },
    dataset::{
        read::rollup::all_threads,
        write::{Pooled, RollupWindow, method_rows},
    },
    events::SampleKind,
    model::units::{MicroJoules, Pid},
    stacks::{BranchIndex, StackTable},
};

pub(crate) type ProcessKey = (Pid, u64);

/// A call path, and what it got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    pub(crate) path: BranchIndex,
    pub(crate) energy: MicroJoules,
    pub(crate) cpu_ns: u64,
    pub(crate) samples: u64,
    pub(crate) by_bytes: MicroJoules,
    pub(crate) pooled: Pooled,
}

impl Branch {
    /// That of a row.
    pub(crate) const fn of(row: &BranchRow, pooled: Pooled) -> Self {
        let BranchRow { branch: path, energy, cpu_ns, samples, by_bytes, .. } = *row;
        Self { path, energy, cpu_ns, samples, by_bytes, pooled }
    }

    pub(crate) const fn empty(path: BranchIndex) -> Self {
        Self { path, energy: MicroJoules(0), cpu_ns: 0, samples: 0, by_bytes: MicroJoules(0), pooled: Pooled::NONE }
    }

    pub(crate) fn plus(&mut self, other: &Self) {
        self.energy = self.energy.saturating_add(other.energy);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.samples = self.samples.saturating_add(other.samples);
        self.by_bytes = self.by_bytes.saturating_add(other.by_bytes);
        self.pooled.squares = self.pooled.squares.saturating_add(other.pooled.squares);
        self.pooled.inferred.plus(other.pooled.inferred);
    }
}

/// What threads of a category of a process have together.
#[derive(Debug, Default)]
pub(crate) struct Grouped {
    pub(crate) processes: BTreeMap<ProcessKey, ProcessRef>,
    threads: BTreeMap<(ProcessKey, Category), ThreadRow>,
    branches: BTreeMap<(ProcessKey, Category, i64), Branch>,
}

impl Grouped {
    pub(crate) fn add_thread(&mut self, process: ProcessKey, thread: &ThreadRow) {
        let new = || all_threads(0, thread.category);
        add_work(self.threads.entry((process, thread.category)).or_insert_with(new), thread);
    }

    pub(crate) fn add_branch(&mut self, process: ProcessKey, category: Category, stack_id: i64, branch: &Branch) {
        self.branches.entry((process, category, stack_id)).or_insert(Branch::empty(branch.path)).plus(branch);
    }

    /// The window, of which `whole` has what is neither of threads nor of paths; `own` are the threads themselves.
    pub(crate) fn finish(
        self,
        whole: WindowReport,
        own: Vec<(ProcessRef, ThreadRow)>,
        table: &StackTable,
    ) -> RollupWindow {
        let positions: BTreeMap<ProcessKey, usize> = self.processes.keys().copied().zip(0..).collect();
        let places: BTreeMap<(ProcessKey, Category), usize> = self.threads.keys().copied().zip(0..).collect();
        let of_group = |((process, category), sum): (&(ProcessKey, Category), &ThreadRow)| ThreadRow {
            process: positions.get(process).copied().unwrap_or_default(),
            category: *category,
            ..sum.clone()
        };
        let threads: Vec<ThreadRow> = self.threads.iter().map(of_group).collect();
        let mut pooled = Vec::with_capacity(self.branches.len());
        let mut rows = Vec::with_capacity(self.branches.len());
        for ((process, category, _), branch) in &self.branches {
            let thread = places.get(&(*process, *category)).copied().unwrap_or_default();
            let Branch { path: branch, energy, cpu_ns, samples, by_bytes, pooled: beside } = *branch;
            rows.push(BranchRow { thread, kind: SampleKind::CpuTime, branch, cpu_ns, samples, energy, by_bytes });
            pooled.push(beside.rounded());
        }
        let report = WindowReport {
            qualities: quality_rows(&threads, &rows, |branch| table.facts(branch)),
            jvms: jvm_rows(&threads, &rows, |branch| table.facts(branch)),
            processes: self.processes.into_values().collect(),
            threads,
            branches: rows,
            ..whole
        };
        let methods = method_rows(&report, &pooled, table);
        let report = WindowReport { methods, ..report };
        RollupWindow { report, pooled, threads: own, ..RollupWindow::default() }
    }
}

pub(crate) fn add_work(sum: &mut ThreadRow, next: &ThreadRow) {
    sum.energy = sum.energy.saturating_add(next.energy);
    sum.cpu_ns = sum.cpu_ns.saturating_add(next.cpu_ns);
    sum.samples = sum.samples.saturating_add(next.samples);
    sum.by_bytes = sum.by_bytes.saturating_add(next.by_bytes);
}
