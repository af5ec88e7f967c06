//! Sums call paths to methods: self where a method was the leaf, total where it stood anywhere in
//! the path, once per path however often it recurs.

use std::collections::BTreeMap;

use super::{
    collector::ChargeRow,
    window_report::{BranchRow, MethodRow, Share, ThreadRow},
};
use crate::{
    model::units::MicroJoules,
    stacks::{BranchIndex, FrameId},
};

/// Method rows of a window. `methods_of` gives a path's methods root → leaf; frames that differ
/// only by line are the same method.
pub(crate) fn method_rows<'a>(
    threads: &[ThreadRow],
    branches: &[BranchRow],
    charges: &[ChargeRow],
    methods_of: impl Fn(BranchIndex) -> &'a [FrameId],
) -> Vec<MethodRow> {
    let mut shares: BTreeMap<(usize, FrameId), (Share, Share)> = BTreeMap::new();
    let mut seen: Vec<FrameId> = Vec::new();
    let own = branches.iter().map(|row| (threads[row.thread].process, row.branch, Share::of_branch(row)));
    let charged = charges.iter().filter(|row| row.charged > MicroJoules(0));
    let charged = charged.map(|row| (row.process, row.branch, Share::of_charge(row)));
    for (process, branch, share) in own.chain(charged) {
        let methods = methods_of(branch);
        if let Some(leaf) = methods.last() {
            shares.entry((process, *leaf)).or_default().0.plus(&share);
        }
        seen.clear();
        seen.extend_from_slice(methods);
        seen.sort_unstable();
        seen.dedup();
        for method in &seen {
            shares.entry((process, *method)).or_default().1.plus(&share);
        }
    }
    let row = |((process, method), (own, total))| MethodRow { process, method, own, total };
    shares.into_iter().map(row).collect()
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
            units::{MicroJoules, Tid},
        },
        stacks::StackTable,
    };

    fn thread(process: usize) -> ThreadRow {
        ThreadRow {
            process,
            tid: Tid(1),
            start_boottime_ns: 0,
            name: "".into(),
            category: Category::Java,
            cpu_ns: 0,
            samples: 0,
            energy: MicroJoules(0),
            by_bytes: MicroJoules(0),
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
            by_bytes: MicroJoules(0),
        }
    }

    #[test]
    fn recursion_counts_once_and_only_the_leaf_is_self() {
        let paths: [&[FrameId]; 2] = [&[FrameId(1), FrameId(2), FrameId(2)], &[FrameId(1)]];
        let rows = method_rows(&[thread(0)], &[branch(0, 3, 300), branch(1, 1, 100)], &[], |b| paths[b.0 as usize]);
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
        let rows = method_rows(&[thread(0)], &[branch(index.0, 2, 200)], &[], |index| table.methods(index));
        let compiling = rows.iter().find(|row| table.frame(row.method).name == path[0]).unwrap();
        assert_eq!((compiling.own, compiling.total.energy.0), (Share::default(), 200));
    }

    /// What a window adds to the error must not be nothing because the window has one sample.
    #[test]
    fn squares_are_of_what_a_sample_stands_for() {
        let paths: [&[FrameId]; 3] = [&[FrameId(1), FrameId(2)], &[FrameId(1)], &[FrameId(3)]];
        let branches = [branch(0, 3, 300), branch(1, 1, 100), branch(2, 0, 70)];
        let rows = method_rows(&[thread(0)], &branches, &[], |b| paths[b.0 as usize]);
        let squares: Vec<_> = rows.iter().map(|row| (row.own.squares, row.total.squares)).collect();
        assert_eq!(squares, [(10_000, 40_000), (30_000, 30_000), (0, 0)]);
    }
}
