//! Sums call paths to methods: self where a method was the leaf, total where it stood anywhere in
//! the path, once per path however often it recurs.

use std::collections::BTreeMap;

use super::window_report::{BranchRow, MethodRow, Share, ThreadRow};
use crate::{
    model::units::MicroJoules,
    stacks::{BranchIndex, FrameId},
};

/// Method rows of a window. `methods_of` gives a path's methods root → leaf; frames that differ
/// only by line are the same method.
pub(super) fn method_rows<'a>(
    threads: &[ThreadRow],
    branches: &[BranchRow],
    methods_of: impl Fn(BranchIndex) -> &'a [FrameId],
) -> Vec<MethodRow> {
    let mut shares: BTreeMap<(usize, FrameId), (Share, Share)> = BTreeMap::new();
    let mut samples_of: BTreeMap<usize, u64> = BTreeMap::new();
    let mut seen: Vec<FrameId> = Vec::new();
    for branch in branches {
        let process = threads[branch.thread].process;
        let samples = samples_of.entry(process).or_default();
        *samples = samples.saturating_add(branch.samples);
        let methods = methods_of(branch.branch);
        if let Some(leaf) = methods.last() {
            add(&mut shares.entry((process, *leaf)).or_default().0, branch);
        }
        seen.clear();
        seen.extend_from_slice(methods);
        seen.sort_unstable();
        seen.dedup();
        for method in &seen {
            add(&mut shares.entry((process, *method)).or_default().1, branch);
        }
    }
    shares
        .into_iter()
        .map(|((process, method), (own, total))| {
            let samples = samples_of.get(&process).copied().unwrap_or(0);
            MethodRow { process, method, own: with_sigma(own, samples), total: with_sigma(total, samples) }
        })
        .collect()
}

fn add(share: &mut Share, branch: &BranchRow) {
    share.energy = share.energy.saturating_add(branch.energy);
    share.cpu_ns = share.cpu_ns.saturating_add(branch.cpu_ns);
    share.samples = share.samples.saturating_add(branch.samples);
}

/// One standard deviation of a share that `of` independent samples gave: `energy · √((1 − p) / (p ·
/// n))` with `p = samples / n` (binomial). Energy that needed no sample has no deviation.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an error estimate; the operands are far below 2^53 and not negative"
)]
fn with_sigma(share: Share, of: u64) -> Share {
    if share.samples == 0 || of == 0 {
        return share;
    }
    let p = (share.samples as f64 / of as f64).min(1.0);
    let relative = ((1.0 - p) / (p * of as f64)).sqrt();
    Share { sigma: MicroJoules((share.energy.0 as f64 * relative).round() as u64), ..share }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::window_report::Category,
        events::SampleKind,
        model::{
            frame::{Frame, FrameKind},
            quality::PathQuality,
            units::Tid,
        },
        stacks::StackTable,
    };

    fn thread(process: usize) -> ThreadRow {
        ThreadRow {
            process,
            tid: Tid(1),
            start_boottime_ns: 0,
            name: String::new(),
            category: Category::Java,
            cpu_ns: 0,
            samples: 0,
            energy: MicroJoules(0),
        }
    }

    fn branch(index: u32, samples: u64, energy: u64) -> BranchRow {
        BranchRow {
            thread: 0,
            kind: SampleKind::CpuTime,
            branch: BranchIndex(index),
            cpu_ns: energy * 10,
            samples,
            energy: MicroJoules(energy),
        }
    }

    #[test]
    fn recursion_counts_once_and_only_the_leaf_is_self() {
        let paths: [&[FrameId]; 2] = [&[FrameId(1), FrameId(2), FrameId(2)], &[FrameId(1)]];
        let rows = method_rows(&[thread(0)], &[branch(0, 3, 300), branch(1, 1, 100)], |b| paths[b.0 as usize]);
        let figures: Vec<_> =
            rows.iter().map(|row| (row.method.0, row.own.energy.0, row.total.energy.0, row.total.samples)).collect();
        assert_eq!(figures, [(1, 100, 400, 4), (2, 300, 300, 3)]);
    }

    #[test]
    fn what_is_compiled_is_a_method_with_a_total_and_nothing_of_its_own() {
        let mut table = StackTable::default();
        let path = ["compiling a.B.run", "start_thread", "Compile::Optimize()"];
        let frames: Vec<FrameId> = path.map(|name| table.frame_id(Frame::new(FrameKind::Vm, name))).to_vec();
        let index = table.branch_index(&frames, PathQuality::default());
        let rows = method_rows(&[thread(0)], &[branch(index.0, 2, 200)], |index| table.methods(index));
        let compiling = rows.iter().find(|row| table.frame(row.method).name == path[0]).unwrap();
        assert_eq!((compiling.own, compiling.total.energy.0), (Share::default(), 200));
    }

    #[test]
    fn sampling_error_is_binomial() {
        let share = with_sigma(Share { energy: MicroJoules(1_000_000), samples: 594, ..Share::default() }, 5_940);
        // p = 10 %, n = 5940 (99 Hz for 60 s): 3.9 % of the value.
        assert!((38_900..=39_000).contains(&share.sigma.0), "{}", share.sigma.0);
        assert_eq!(with_sigma(Share { energy: MicroJoules(5), ..Share::default() }, 10).sigma, MicroJoules(0));
    }
}
