//! Sums call paths to methods: self where a method was the leaf, total where it stood anywhere in
//! the path, once per path however often it recurs.

use std::collections::BTreeMap;

use super::{
    collector::ChargeRow,
    window_report::{BranchRow, MethodRow, Share, ThreadRow},
};
use crate::{
    model::units::MicroJoules,
    stacks::{FrameId, StackTable},
};

/// Method rows of a window.
pub(crate) fn method_rows(
    threads: &[ThreadRow],
    branches: &[BranchRow],
    charges: &[ChargeRow],
    stacks: &StackTable,
) -> Vec<MethodRow> {
    let mut shares: BTreeMap<(usize, FrameId), (Share, Share)> = BTreeMap::new();
    let own = branches.iter().map(|row| (threads[row.thread].process, row.branch, Share::of_branch(row)));
    let charged = charges.iter().filter(|row| row.charged > MicroJoules(0));
    let charged = charged.map(|row| (row.process, row.branch, Share::of_charge(row)));
    for (process, branch, share) in own.chain(charged) {
        if let Some(leaf) = stacks.leaf_method(branch) {
            shares.entry((process, leaf)).or_default().0.plus(&share);
        }
        for method in stacks.distinct_methods(branch) {
            shares.entry((process, method)).or_default().1.plus(&share);
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
        stacks::BranchIndex,
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

    /// Paths of native functions by name, numbered in order.
    fn table(paths: &[&[&str]]) -> StackTable {
        let mut table = StackTable::default();
        for path in paths {
            let frames: Vec<_> = path.iter().map(|name| table.frame_id(Frame::new(FrameKind::Native, *name))).collect();
            table.branch_index(&frames, PathQuality::default());
        }
        table
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
        let table = table(&[&["a", "b", "b"], &["a"]]);
        let rows = method_rows(&[thread(0)], &[branch(0, 3, 300), branch(1, 1, 100)], &[], &table);
        let figures = |row: &MethodRow| (row.method.0, row.own.energy.0, row.total.energy.0, row.total.samples);
        assert_eq!(rows.iter().map(figures).collect::<Vec<_>>(), [(0, 100, 400, 4), (1, 300, 300, 3)]);
    }

    #[test]
    fn what_is_compiled_is_a_method_with_a_total_and_nothing_of_its_own() {
        let mut table = StackTable::default();
        let path = ["compiling a.B.run", "start_thread", "Compile::Optimize()"];
        let frames: Vec<FrameId> = path.map(|name| table.frame_id(Frame::new(FrameKind::Vm, name))).to_vec();
        let index = table.branch_index(&frames, PathQuality::default());
        let rows = method_rows(&[thread(0)], &[branch(index.0, 2, 200)], &[], &table);
        let compiling = rows.iter().find(|row| table.frame(row.method).name == path[0]).unwrap();
        assert_eq!((compiling.own, compiling.total.energy.0), (Share::default(), 200));
    }

    /// What a window adds to the error must not be nothing because the window has one sample.
    #[test]
    fn squares_are_of_what_a_sample_stands_for() {
        let table = table(&[&["a", "b"], &["a"], &["c"]]);
        let branches = [branch(0, 3, 300), branch(1, 1, 100), branch(2, 0, 70)];
        let rows = method_rows(&[thread(0)], &branches, &[], &table);
        let squares: Vec<_> = rows.iter().map(|row| (row.own.squares, row.total.squares)).collect();
        assert_eq!(squares, [(10_000, 40_000), (30_000, 30_000), (0, 0)]);
    }
}
