//! A thread's time and energy → its call paths.
//!
//! Samples hit a thread at moments that do not depend on what it does, so each
//! sample stands for an equal part of the thread's time in the window. (Giving
//! a sample the time since the thread was last switched in instead would
//! favour whatever runs late in a slice: see the test.) The parts sum to the
//! thread's figures exactly.

use std::collections::BTreeMap;

use super::{
    report::{BranchRow, ThreadRow},
    split::apportion,
};
use crate::{model::units::MicroJoules, stacks::BranchIndex};

/// Samples of one thread by call path; each path at most once.
pub(super) type BranchSamples = BTreeMap<BranchIndex, u64>;

/// Paths for what no sample tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkerBranches {
    pub(super) no_sample: BranchIndex,
    pub(super) lost_stack: BranchIndex,
}

/// Rows of one thread, without energy, in the order of `stack_id`. `position` is
/// its index among the window's threads.
pub(super) fn branch_rows(
    position: usize,
    thread: &ThreadRow,
    mut samples: BranchSamples,
    markers: MarkerBranches,
    stack_id: impl Fn(BranchIndex) -> i64,
) -> Vec<BranchRow> {
    let counted = samples.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    if thread.samples > counted {
        add(&mut samples, markers.lost_stack, thread.samples - counted);
    }
    if samples.is_empty() {
        add(&mut samples, markers.no_sample, 0);
    }
    let mut rows: Vec<BranchRow> = samples
        .into_iter()
        .map(|(branch, samples)| BranchRow { thread: position, branch, cpu_ns: 0, samples, energy: MicroJoules(0) })
        .collect();
    rows.sort_by_key(|row| stack_id(row.branch));
    let times = apportion(thread.cpu_ns, &weights(&rows));
    rows.iter_mut().zip(times).for_each(|(row, cpu_ns)| row.cpu_ns = cpu_ns);
    rows
}

/// Gives each thread's energy to its branches, whose rows stand together.
pub(super) fn share_energy(threads: &[ThreadRow], branches: &mut [BranchRow]) {
    for rows in branches.chunk_by_mut(|a, b| a.thread == b.thread) {
        let thread = rows.first().and_then(|row| threads.get(row.thread));
        let energies = apportion(thread.map_or(0, |thread| thread.energy.0), &weights(rows));
        rows.iter_mut().zip(energies).for_each(|(row, energy)| row.energy = MicroJoules(energy));
    }
}

/// Samples; a row that stands for a thread that no sample hit weighs anything.
fn weights(rows: &[BranchRow]) -> Vec<u64> {
    match rows {
        [only] => vec![only.samples.max(1)],
        _ => rows.iter().map(|row| row.samples).collect(),
    }
}

/// Adds samples of a path, merging with those it already has.
pub(super) fn add(samples: &mut BranchSamples, branch: BranchIndex, count: u64) {
    let sum = samples.entry(branch).or_default();
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attribution::report::Category, model::units::Tid};

    const MARKERS: MarkerBranches = MarkerBranches { no_sample: BranchIndex(0), lost_stack: BranchIndex(1) };

    fn thread(cpu_ns: u64, samples: u64, energy: u64) -> ThreadRow {
        ThreadRow {
            process: 0,
            tid: Tid(1),
            start_boottime_ns: 0,
            name: String::new(),
            category: Category::Java,
            cpu_ns,
            samples,
            energy: MicroJoules(energy),
        }
    }

    fn rows(thread: &ThreadRow, samples: BranchSamples) -> Vec<BranchRow> {
        let mut rows = branch_rows(0, thread, samples, MARKERS, |branch| branch.0.into());
        share_energy(std::slice::from_ref(thread), &mut rows);
        rows
    }

    #[test]
    fn rows_sum_to_the_thread() {
        let thread = thread(1_000_003, 7, 10_001);
        let rows = rows(&thread, BTreeMap::from([(BranchIndex(5), 3), (BranchIndex(4), 3)]));
        assert_eq!(rows.iter().map(|row| row.cpu_ns).sum::<u64>(), thread.cpu_ns);
        assert_eq!(rows.iter().map(|row| row.energy.0).sum::<u64>(), thread.energy.0);
        let lost = rows.iter().find(|row| row.branch == MARKERS.lost_stack);
        assert_eq!(lost.map(|row| row.samples), Some(1), "a sample without a stack stays visible");
    }

    #[test]
    fn time_that_no_sample_hit_is_marked() {
        let rows = rows(&thread(500, 0, 20), BTreeMap::new());
        assert_eq!((rows.len(), rows[0].branch, rows[0].cpu_ns), (1, MARKERS.no_sample, 500));
        assert_eq!(rows[0].energy, MicroJoules(20));
    }

    #[test]
    fn what_does_not_divide_goes_by_stack_id_and_not_by_order_of_appearance() {
        let samples = || BTreeMap::from([(BranchIndex(5), 1), (BranchIndex(4), 1)]);
        let [falling, rising] = [true, false].map(|is_falling| {
            let id = |branch: BranchIndex| if is_falling { -i64::from(branch.0) } else { i64::from(branch.0) };
            branch_rows(0, &thread(1, 2, 0), samples(), MARKERS, id)
        });
        let first = |rows: &[BranchRow]| (rows[0].branch, rows[0].cpu_ns);
        assert_eq!((first(&falling), first(&rising)), ((BranchIndex(5), 1), (BranchIndex(4), 1)));
    }

    /// A thread that runs A for 5 ms, then B for 5 ms, then sleeps, sampled
    /// every 10.1 ms of wall-clock time: equal shares find the true 50 %,
    /// shares by time since switch-in would find 25 %.
    #[test]
    fn bursts_shorter_than_the_sampling_period_are_not_biased() {
        let (burst_us, cycle_us) = (5_000_u64, 13_700_u64);
        let (mut equal, mut by_slice) = ([0_u64; 2], [0_u64; 2]);
        for sample in 0..100_000_u64 {
            let offset = (sample * 10_101) % cycle_us;
            if offset < 2 * burst_us {
                let method = usize::from(offset >= burst_us);
                equal[method] += 1;
                by_slice[method] += offset;
            }
        }
        let share = |counts: [u64; 2]| counts[0] * 1000 / (counts[0] + counts[1]);
        assert!((490..=510).contains(&share(equal)), "{}", share(equal));
        assert!(share(by_slice) < 300, "{}", share(by_slice));
    }
}
