//! Sums the windows of a run that become one.

use std::collections::BTreeMap;

use super::{
    beside,
    grouped::{Branch, Grouped, ProcessKey, add_work},
    inferred::{OfWindow, Shown, ThreadKey},
};
use crate::{
    attribution::window_report::{BranchRow, ProcessRef, ThreadRow, WindowReport, squares_of},
    dataset::{
        read::stacks::ReadStacks,
        tables::rollup::Inferred,
        write::{Pooled, RollupWindow},
    },
    model::units::MicroJoules,
    stacks::StackTable,
};

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

/// What a path needs to become what is shown.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "for an error estimate")]
fn difference(branch: &Branch, shown: &Shown) -> Inferred {
    Inferred {
        energy_uj: shown.energy_uj.wrapping_sub(branch.energy.0).cast_signed(),
        cpu_ns: shown.cpu_ns.wrapping_sub(branch.cpu_ns).cast_signed(),
        squares_uj2: (shown.squares - branch.pooled.squares as f64).round() as i64,
        unsampled_uj: shown.unsampled_uj,
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
        let mut grouped = Grouped::default();
        for (key, thread) in &self.threads {
            grouped.add_thread((key.0, key.1), thread);
        }
        for ((key, stack_id), branch) in &self.branches {
            let Some(thread) = self.threads.get(key) else { continue };
            grouped.add_branch((key.0, key.1), thread.category, *stack_id, branch);
        }
        let own = self.threads.into_iter();
        let own = own.filter_map(|(key, row)| Some((self.processes.get(&(key.0, key.1))?.clone(), row))).collect();
        grouped.processes = self.processes;
        let whole = WindowReport { context: self.context.finish(), ..self.whole };
        grouped.finish(whole, own, &stacks.table)
    }

    /// Notes by how much paths differ from what was recorded.
    fn infer(&mut self, shown: &OfWindow, stacks: &ReadStacks) {
        for (thread, stack_id) in shown.keys() {
            if let Some(path) = stacks.get(*stack_id) {
                self.branches.entry((*thread, *stack_id)).or_insert(Branch::empty(path));
            }
        }
        for (key, branch) in &mut self.branches {
            branch.pooled.inferred = difference(branch, &shown.get(key).copied().unwrap_or_default());
        }
    }
}
