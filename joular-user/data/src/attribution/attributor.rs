//! Turns a window's work into its report under a policy: it decides who gets which joule.
//!
//! Only the policy, the run's domains and the windows before it (for energy that comes late)
//! decide. So a data set that keeps the work can be attributed again, exactly.

use super::{
    branches::share_energy,
    by_bytes::ByBytes,
    claims::Claims,
    collector::charge,
    conservation::divide,
    idle::{Covered, Machine, static_wish},
    jvms::jvm_rows,
    methods::method_rows,
    missed::{Missed, ThreadIdentity},
    owed::set_apart,
    quality::quality_rows,
    shown_parts::{self, Beside},
    window_report::{DomainAudit, WindowReport},
    work::{DomainWork, WindowWork},
};
use crate::{
    events::{RunInfo, SampleKind},
    model::{
        domain::{Domain, FaultCause, Role},
        policy::Policy,
        units::MicroJoules,
    },
    stacks::StackTable,
};

/// Attributes a run's windows, in their order.
#[derive(Debug, Default)]
pub struct Attributor {
    domains: Vec<Domain>,
    policy: Policy,
    sockets: u32,
    /// Parallel to `domains`: what is only shown, and beside which domain.
    places: Vec<Option<(usize, Beside)>>,
    /// Parallel to `domains`.
    missed: Vec<Missed>,
    /// Parallel to `domains`: idle energy that windows have lacked; `None` before the first window.
    owed: Vec<Option<MicroJoules>>,
}

impl Attributor {
    pub fn new(run: &RunInfo) -> Self {
        Self {
            places: shown_parts::places(&run.domains),
            domains: run.domains.clone(),
            policy: run.policy.clone(),
            sockets: run.sockets,
            missed: run.domains.iter().map(|_| Missed::default()).collect(),
            owed: vec![None; run.domains.len()],
        }
    }

    /// Divides each domain's energy among the threads that ran in its place, a
    /// thread's among its call paths, and sums paths to methods.
    pub fn attribute(&mut self, mut work: WindowWork, table: &StackTable) -> WindowReport {
        let (domains, by_bytes) = self.divide(&mut work, table);
        share_energy(&work.threads, &mut work.branches);
        // All that is reported, methods, qualities and the `branches` of data sets, is of
        // CPU time. Samples of other kinds have nothing to be reported in yet.
        work.branches.retain(|row| row.kind == SampleKind::CpuTime);
        by_bytes.add_to(&mut work.branches, table);
        let qualities = quality_rows(&work.threads, &work.branches, |branch| table.facts(branch));
        let jvms = jvm_rows(&work.threads, &work.branches, |branch| table.facts(branch));
        charge((&jvms, &work.threads), &mut work.collections, &mut work.charges, work.length_ns);
        let methods = method_rows(&work.threads, &work.branches, &work.charges, table);
        WindowReport {
            index: work.index,
            start: work.start,
            wall_start: work.wall_start,
            length_ns: work.length_ns,
            domains,
            cpu: work.cpu,
            context: work.context,
            marks: work.marks,
            counts: work.counts,
            processes: work.processes,
            threads: work.threads,
            branches: work.branches,
            allocations: work.allocations,
            collections: work.collections,
            charges: work.charges,
            moved: work.moved,
            methods,
            qualities,
            jvms,
            slices: work.slices,
            losses: work.losses,
        }
    }

    /// The audits of the domains that count, in order, and what paths have by bytes.
    fn divide(&mut self, work: &mut WindowWork, table: &StackTable) -> (Vec<DomainAudit>, ByBytes) {
        let identities = identities(work);
        let none = DomainWork::default();
        let mut audits = Vec::with_capacity(self.domains.len());
        let mut by_bytes = ByBytes::default();
        for index in 0..self.domains.len() {
            let measured = work.domains.get(index).unwrap_or(&none);
            let mut audit = DomainAudit::new(&self.domains[index], &measured.delta);
            audit.detail.clone_from(&measured.detail);
            audit.read_delay_ns = measured.read_delay_ns;
            audit.owed = *self.owed[index].get_or_insert(measured.owed.unwrap_or_default());
            match self.domains[index].role {
                Role::Shared => {
                    let parts = self.share(index, &mut audit, work, &identities);
                    by_bytes.share(&self.domains[index], &parts, work, table);
                    for (thread, part) in work.threads.iter_mut().zip(parts) {
                        thread.energy = thread.energy.saturating_add(part);
                    }
                }
                Role::Unshared => audit.unattributed.unshared = audit.measured,
                Role::Part { .. } | Role::Check { .. } => continue,
            }
            shown_parts::show(&mut audit, index, &self.places, &work.domains);
            audits.push(audit);
        }
        (audits, by_bytes)
    }

    /// What each thread gets of a domain. It gets nothing yet if the read failed; after a good read
    /// it also gets what was missed since the last good one. What a counter gained over a suspend
    /// is an item of its own.
    fn share(
        &mut self,
        index: usize,
        audit: &mut DomainAudit,
        work: &WindowWork,
        identities: &[ThreadIdentity],
    ) -> Vec<MicroJoules> {
        let domain = &self.domains[index];
        let mut claims = Claims::on(domain, work, &self.policy);
        if audit.fault.is_some_and(FaultCause::is_failed_read) {
            self.missed[index].keep(&claims, identities.iter().copied(), work.length_ns);
            return Vec::new();
        }
        if audit.fault == Some(FaultCause::Suspended) {
            // Nor can what was missed before be told from it.
            self.missed[index] = Missed::default();
            audit.unattributed.suspended = audit.measured;
            return Vec::new();
        }
        let mut covered = Covered { window_ns: work.length_ns, cpus: claims.cpus };
        let missed = std::mem::take(&mut self.missed[index]).claim(&mut claims, identities.iter().copied());
        covered.window_ns = covered.window_ns.saturating_add(missed.window_ns);
        covered.cpus.add(missed.cpus);
        let machine = Machine { domains: &self.domains, sockets: self.sockets };
        let delta = work.domains.get(index).map(|measured| measured.delta).unwrap_or_default();
        let wish = static_wish(domain, &delta, covered, &self.policy, machine);
        let (static_share, owed) = set_apart(wish, audit.owed, audit.measured);
        self.owed[index] = Some(owed);
        divide(audit, static_share, &claims)
    }
}

/// Identifies each row's thread across all windows.
fn identities(work: &WindowWork) -> Vec<ThreadIdentity> {
    let identity = |thread: &super::window_report::ThreadRow| {
        let process = work.processes.get(thread.process);
        (process.map_or_else(Default::default, |process| process.pid), thread.tid, thread.start_boottime_ns)
    };
    work.threads.iter().map(identity).collect()
}
