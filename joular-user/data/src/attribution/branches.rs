//! Divides a thread's time and energy among its call paths.
//!
//! Samples hit a thread at moments that do not depend on what it does, so each sample stands for an
//! equal part of the thread's time in the window. (Giving a sample the time since the thread was
//! last switched in would favour whatever runs late in a slice: see the test.) The parts sum to the
//! thread's figures exactly. Samples of anything but CPU time do not show where CPU time went, so
//! their rows get none of it.

use std::collections::BTreeMap;

use super::{
    split::apportion,
    window_report::{BranchRow, ThreadRow},
};
use crate::{events::SampleKind, model::units::MicroJoules, stacks::BranchIndex};

/// Samples of one thread by kind and call path; each pair at most once.
pub(super) type BranchSamples = BTreeMap<(SampleKind, BranchIndex), u64>;

/// Paths for time that no sample explains.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkerBranches {
    pub(super) no_sample: BranchIndex,
    pub(super) lost_stack: BranchIndex,
}

/// Rows of one thread, without energy, by kind, and in the order of `stack_id`. `position` is
/// its index among the window's threads.
pub(super) fn branch_rows(
    position: usize,
    thread: &ThreadRow,
    mut samples: BranchSamples,
    markers: MarkerBranches,
    stack_id: impl Fn(BranchIndex) -> i64,
) -> Vec<BranchRow> {
    let of_cpu_time = || samples.iter().filter(|((kind, _), _)| *kind == SampleKind::CpuTime);
    let counted = of_cpu_time().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let is_unseen = of_cpu_time().next().is_none();
    if thread.samples > counted {
        add(&mut samples, (SampleKind::CpuTime, markers.lost_stack), thread.samples - counted);
    } else if is_unseen {
        add(&mut samples, (SampleKind::CpuTime, markers.no_sample), 0);
    }
    let row = |((kind, branch), samples)| BranchRow {
        thread: position,
        kind,
        branch,
        cpu_ns: 0,
        samples,
        energy: MicroJoules(0),
        by_bytes: MicroJoules(0),
    };
    let mut rows: Vec<BranchRow> = samples.into_iter().map(row).collect();
    rows.sort_by_key(|row| (row.kind, stack_id(row.branch)));
    let timed = of_kind(&mut rows, SampleKind::CpuTime);
    let times = apportion(thread.cpu_ns, &weights(timed));
    timed.iter_mut().zip(times).for_each(|(row, cpu_ns)| row.cpu_ns = cpu_ns);
    rows
}

/// The rows of one kind among a thread's rows; they stand together.
fn of_kind(rows: &mut [BranchRow], kind: SampleKind) -> &mut [BranchRow] {
    let start = rows.partition_point(|row| row.kind < kind);
    let end = rows.partition_point(|row| row.kind <= kind);
    rows.get_mut(start..end).unwrap_or_default()
}

/// Divides each thread's energy, but for what goes by bytes, among its branches of CPU time. A thread's rows stand
/// together.
pub(super) fn share_energy(threads: &[ThreadRow], branches: &mut [BranchRow]) {
    for rows in branches.chunk_by_mut(|a, b| a.thread == b.thread) {
        let thread = rows.first().and_then(|row| threads.get(row.thread));
        let energy = thread.map_or(0, |thread| thread.energy.0.saturating_sub(thread.by_bytes.0));
        let rows = of_kind(rows, SampleKind::CpuTime);
        let energies = apportion(energy, &weights(rows));
        rows.iter_mut().zip(energies).for_each(|(row, energy)| row.energy = MicroJoules(energy));
    }
}

/// Weights are samples. The only row of a thread weighs something even if no sample hit it.
fn weights(rows: &[BranchRow]) -> Vec<u64> {
    match rows {
        [only] => vec![only.samples.max(1)],
        _ => rows.iter().map(|row| row.samples).collect(),
    }
}

/// Adds samples of a kind and path, merging with those it already has.
pub(super) fn add(samples: &mut BranchSamples, of: (SampleKind, BranchIndex), count: u64) {
    let sum = samples.entry(of).or_default();
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{attribution::window_report::Category, model::units::Tid};

    const MARKERS: MarkerBranches = MarkerBranches { no_sample: BranchIndex(0), lost_stack: BranchIndex(1) };

    fn thread(cpu_ns: u64, samples: u64, energy: u64) -> ThreadRow {
        ThreadRow {
            process: 0,
            tid: Tid(1),
            start_boottime_ns: 0,
            name: "".into(),
            category: Category::Java,
            cpu_ns,
            samples,
            energy: MicroJoules(energy),
            by_bytes: MicroJoules(0),
        }
    }

    fn rows(thread: &ThreadRow, samples: BranchSamples) -> Vec<BranchRow> {
        let mut rows = branch_rows(0, thread, samples, MARKERS, |branch| branch.0.into());
        share_energy(std::slice::from_ref(thread), &mut rows);
        rows
    }

    fn cpu_time<const N: usize>(samples: [(u32, u64); N]) -> BranchSamples {
        samples.into_iter().map(|(branch, count)| ((SampleKind::CpuTime, BranchIndex(branch)), count)).collect()
    }

    /// One path sampled for two reasons: the energy of its CPU time follows the samples of CPU time
    /// alone.
    #[test]
    fn samples_of_another_kind_are_rows_of_their_own_without_time_or_energy() {
        let thread = thread(1_000, 4, 100);
        let mut samples = cpu_time([(4, 1), (5, 3)]);
        add(&mut samples, (SampleKind::Allocation, BranchIndex(4)), 1_000_000);
        let shown: Vec<_> = rows(&thread, samples)
            .into_iter()
            .map(|row| (row.kind, row.branch.0, row.samples, row.cpu_ns, row.energy.0))
            .collect();
        let expected = [
            (SampleKind::CpuTime, 4, 1, 250, 25),
            (SampleKind::CpuTime, 5, 3, 750, 75),
            (SampleKind::Allocation, 4, 1_000_000, 0, 0),
        ];
        assert_eq!(shown, expected);
    }

    /// Samples of allocation do not show where time went, however little time there was.
    #[test]
    fn a_thread_that_only_allocated_keeps_its_time_and_energy_at_a_marker() {
        let allocated = BTreeMap::from([((SampleKind::Allocation, BranchIndex(4)), 9)]);
        for (samples, marker) in [(0, MARKERS.no_sample), (2, MARKERS.lost_stack)] {
            let rows = rows(&thread(500, samples, 20), allocated.clone());
            let shown: Vec<_> = rows.iter().map(|row| (row.kind, row.branch, row.cpu_ns, row.energy.0)).collect();
            let expected = [(SampleKind::CpuTime, marker, 500, 20), (SampleKind::Allocation, BranchIndex(4), 0, 0)];
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn rows_sum_to_the_thread() {
        let thread = thread(1_000_003, 7, 10_001);
        let rows = rows(&thread, cpu_time([(5, 3), (4, 3)]));
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
        let samples = || cpu_time([(5, 1), (4, 1)]);
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
