//! Divides what threads have of domains that go by bytes among the call paths that moved or allocated them.
//!
//! Samples of CPU time say nothing of such energy: a thread may send all its bytes on a path on which no sample hit it.
//! So a path gets it by its bytes, beside what it gets by samples.

use std::collections::BTreeMap;

use super::{
    split::apportion,
    window_report::BranchRow,
    work::{Claimant, WindowWork},
};
use crate::{
    events::SampleKind,
    model::{
        domain::{DividedBy, Domain},
        units::MicroJoules,
    },
    stacks::{BranchIndex, StackTable},
};

/// What paths have by bytes, of all domains together.
#[derive(Debug, Default)]
pub(super) struct ByBytes(BTreeMap<(usize, BranchIndex), MicroJoules>);

impl ByBytes {
    /// Divides `parts`, one for each thread, of a domain. What a thread has without bytes of the domain in this window (its
    /// energy came late), and all of a domain that does not go by bytes, is left to samples.
    pub(super) fn share(&mut self, domain: &Domain, parts: &[MicroJoules], work: &mut WindowWork, table: &StackTable) {
        for (thread, mut paths) in paths(domain, work) {
            let (Some(part), Some(row)) = (parts.get(thread), work.threads.get_mut(thread)) else { continue };
            // What does not divide goes by stack id, and not by the order in which paths were seen.
            paths.sort_unstable_by_key(|(branch, _)| table.stack_id(*branch));
            let weights: Vec<u64> = paths.iter().map(|(_, weight)| *weight).collect();
            for ((branch, _), energy) in paths.iter().zip(apportion(part.0, &weights)) {
                let energy = MicroJoules(energy);
                row.by_bytes = row.by_bytes.saturating_add(energy);
                let sum = self.0.entry((thread, *branch)).or_default();
                *sum = sum.saturating_add(energy);
            }
        }
    }

    /// Adds it to the rows of paths, which are all of CPU time. A path on which no sample hit the thread gets a row.
    pub(super) fn add_to(self, branches: &mut Vec<BranchRow>, table: &StackTable) {
        let mut left = self.0;
        left.retain(|_, energy| *energy > MicroJoules(0));
        if left.is_empty() {
            return;
        }
        for row in branches.iter_mut() {
            if let Some(energy) = left.remove(&(row.thread, row.branch)) {
                row.energy = row.energy.saturating_add(energy);
                row.by_bytes = energy;
            }
        }
        branches.extend(left.into_iter().map(|((thread, branch), energy)| BranchRow {
            thread,
            kind: SampleKind::CpuTime,
            branch,
            cpu_ns: 0,
            samples: 0,
            energy,
            by_bytes: energy,
        }));
        branches.sort_by_key(|row| (row.thread, table.stack_id(row.branch)));
    }
}

/// By thread: paths, and what their bytes weigh.
fn paths(domain: &Domain, work: &WindowWork) -> BTreeMap<usize, Vec<(BranchIndex, u64)>> {
    let mut sums: BTreeMap<(usize, BranchIndex), u64> = BTreeMap::new();
    let mut add = |thread, branch, weight: u64| {
        let sum = sums.entry((thread, branch)).or_default();
        *sum = sum.saturating_add(weight);
    };
    match &domain.divided_by {
        DividedBy::Bytes(costs) => {
            for row in work.moved.iter().flat_map(|moved| &moved.rows) {
                if let (Claimant::Thread(thread), Some(branch)) = (row.claimant, row.branch) {
                    add(thread, branch, u64::try_from(costs.of(&row.bytes)).unwrap_or(u64::MAX));
                }
            }
        }
        DividedBy::Allocation => work.allocations.iter().for_each(|row| add(row.thread, row.branch, row.bytes)),
        _ => {}
    }
    let mut by_thread: BTreeMap<usize, Vec<(BranchIndex, u64)>> = BTreeMap::new();
    for ((thread, branch), weight) in sums {
        by_thread.entry(thread).or_default().push((branch, weight));
    }
    by_thread
}
