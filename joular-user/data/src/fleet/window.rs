//! Sums what a service has in a window of a tier.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    attribution::{
        allocated::SampledBy,
        window_report::{Category, CpuAudit, DomainAudit, ProcessRef, ThreadRow, Unattributed, WindowReport},
    },
    dataset::{
        read::{rollup::ReadRollupWindow, stacks::ReadStacks},
        write::{Amount, AmountKey, RollupWindow},
    },
    events::LossCount,
    model::{
        domain::{Domain, FaultCause},
        measure::Measure,
        target_text::TargetText,
        units::{MicroJoules, Tid},
    },
    rollup::{
        beside::{add_cpu, add_losses},
        grouped::{Branch, Grouped, ProcessKey, add_work},
    },
    stacks::BranchIndex,
    text::pool_of,
};

/// Place of a process among those of the service.
pub(super) type NameIndex = usize;

/// Call path, measure, class, and what shows where it was allocated.
type OfAmount = (i64, Measure, Option<String>, Option<SampledBy>);

/// What a service has so far.
#[derive(Debug, Default)]
pub(super) struct Window {
    pub(super) own: Own,
    threads: BTreeMap<(NameIndex, Category), ThreadRow>,
    branches: BTreeMap<(NameIndex, Category, i64), Branch>,
    /// Threads of a pool together.
    pools: BTreeMap<(NameIndex, Category, TargetText), ThreadRow>,
    amounts: BTreeMap<(NameIndex, Category, OfAmount), Amount>,
}

/// What a window has as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    pub(super) measured: MicroJoules,
    attributed: MicroJoules,
    static_share: MicroJoules,
    items: Unattributed,
    cpu: CpuAudit,
    losses: Vec<LossCount>,
    fault: Option<FaultCause>,
}

impl Own {
    /// Adds all of a host's window.
    pub(super) fn add(&mut self, read: &ReadRollupWindow) {
        for share in &read.shares {
            self.measured = self.measured.saturating_add(share.measured);
            self.attributed = self.attributed.saturating_add(share.attributed);
            self.static_share = self.static_share.saturating_add(share.static_share);
            self.items = self.items.plus(share.items);
        }
        add_cpu(&mut self.cpu, &read.window.report.cpu);
        add_losses(&mut self.losses, &read.window.report.losses);
        self.doubt(read.fault);
    }

    /// Takes from it what threads of a service have.
    pub(super) fn give(&mut self, thread: &ThreadRow) {
        self.measured = self.measured.saturating_sub(thread.energy);
        self.attributed = self.attributed.saturating_sub(thread.energy);
        for time in [&mut self.cpu.elapsed_ns, &mut self.cpu.busy_ns, &mut self.cpu.target_ns] {
            *time = time.saturating_sub(thread.cpu_ns);
        }
        self.cpu.samples = self.cpu.samples.saturating_sub(thread.samples);
    }

    /// The other way round.
    pub(super) fn take(&mut self, thread: &ThreadRow, fault: Option<FaultCause>) {
        self.measured = self.measured.saturating_add(thread.energy);
        self.attributed = self.attributed.saturating_add(thread.energy);
        for time in [&mut self.cpu.elapsed_ns, &mut self.cpu.busy_ns, &mut self.cpu.target_ns] {
            *time = time.saturating_add(thread.cpu_ns);
        }
        self.cpu.samples = self.cpu.samples.saturating_add(thread.samples);
        self.doubt(fault);
    }

    /// Of several causes one stays, whichever is read first.
    fn doubt(&mut self, fault: Option<FaultCause>) {
        self.fault = self.fault.max(fault);
    }

    fn audit(&self, domain: &Domain) -> DomainAudit {
        DomainAudit {
            measured: self.measured,
            attributed: self.attributed,
            static_share: self.static_share,
            unattributed: self.items,
            fault: self.fault,
            ..DomainAudit::new(domain, &crate::attribution::counter::Delta::default())
        }
    }
}

impl Window {
    pub(super) fn add_thread(&mut self, name: NameIndex, thread: &ThreadRow) {
        let sum = self.threads.entry((name, thread.category)).or_insert_with(|| without_work(thread));
        add_work(sum, thread);
    }

    /// One of the threads themselves, as a host knows it.
    pub(super) fn add_own(&mut self, name: NameIndex, thread: &ThreadRow) {
        let key = (name, thread.category, pool_of(&thread.name));
        add_work(self.pools.entry(key).or_insert_with(|| without_work(thread)), thread);
    }

    pub(super) fn add_branch(&mut self, name: NameIndex, category: Category, stack_id: i64, branch: &Branch) {
        self.branches.entry((name, category, stack_id)).or_insert(Branch::empty(branch.path)).plus(branch);
    }

    pub(super) fn add_amount(&mut self, name: NameIndex, key: AmountKey, amount: &Amount) {
        let AmountKey { category, stack_id, measure, class, sampled_by, process: _ } = key;
        let sum = self.amounts.entry((name, category, (stack_id, measure, class, sampled_by))).or_default();
        sum.add(amount.amount, &amount.sampled);
    }

    /// The paths that it has rows of.
    pub(super) fn paths(&self, stacks: &ReadStacks) -> BTreeSet<BranchIndex> {
        let of_amounts = self.amounts.keys().filter_map(|(_, _, key)| stacks.get(key.0));
        self.branches.values().map(|branch| branch.path).chain(of_amounts).collect()
    }

    /// The window, whose processes are these by their places; `whole` has its number, time and length.
    pub(super) fn finish(
        self,
        whole: WindowReport,
        domain: Option<&Domain>,
        processes: &[ProcessRef],
        stacks: &ReadStacks,
    ) -> RollupWindow {
        let key = |name: NameIndex| -> Option<(ProcessKey, &ProcessRef)> {
            let process = processes.get(name)?;
            Some(((process.pid, process.start_boottime_ns), process))
        };
        let mut grouped = Grouped::default();
        for ((name, _), thread) in &self.threads {
            let Some((key, process)) = key(*name) else { continue };
            grouped.processes.insert(key, process.clone());
            grouped.add_thread(key, thread);
        }
        for ((name, category, stack_id), branch) in &self.branches {
            let Some((key, _)) = key(*name) else { continue };
            grouped.add_branch(key, *category, *stack_id, branch);
        }
        let mut own: Vec<(ProcessRef, ThreadRow)> = Vec::new();
        for (((name, _, pool), thread), number) in self.pools.into_iter().zip(1..) {
            let Some((_, process)) = key(name) else { continue };
            own.push((process.clone(), ThreadRow { tid: Tid(number), name: pool, ..thread }));
        }
        let mut amounts = BTreeMap::new();
        for ((name, category, (stack_id, measure, class, sampled_by)), amount) in self.amounts {
            let Some((_, process)) = key(name) else { continue };
            let key = AmountKey { process: process.clone(), category, stack_id, measure, class, sampled_by };
            amounts.insert(key, amount);
        }
        let whole = WindowReport {
            domains: domain.map(|domain| self.own.audit(domain)).into_iter().collect(),
            cpu: self.own.cpu,
            losses: self.own.losses,
            ..whole
        };
        RollupWindow { amounts, ..grouped.finish(whole, own, &stacks.table) }
    }
}

/// The same threads, before anything is added.
fn without_work(thread: &ThreadRow) -> ThreadRow {
    ThreadRow {
        tid: Tid(0),
        start_boottime_ns: 0,
        name: TargetText::default(),
        cpu_ns: 0,
        samples: 0,
        energy: MicroJoules(0),
        by_bytes: MicroJoules(0),
        ..thread.clone()
    }
}
