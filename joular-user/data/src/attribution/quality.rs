//! Sums call paths by how good their stacks are: by process, kind of thread, way of unwinding, end,
//! and whether frames have names.

use std::collections::BTreeMap;

use super::window_report::{Amount, BranchRow, QualityRow, ThreadRow};
use crate::stacks::{BranchIndex, PathFacts};

/// Quality rows of a window, in an order that does not depend on the order of the input rows.
pub(crate) fn quality_rows(
    threads: &[ThreadRow],
    branches: &[BranchRow],
    facts_of: impl Fn(BranchIndex) -> PathFacts,
) -> Vec<QualityRow> {
    let mut amounts: BTreeMap<_, Amount> = BTreeMap::new();
    for branch in branches {
        let Some(thread) = threads.get(branch.thread) else { continue };
        let PathFacts { quality, unnamed, .. } = facts_of(branch.branch);
        amounts.entry((thread.process, thread.category, quality, unnamed)).or_default().add(branch);
    }
    let row =
        |((process, category, quality, unnamed), amount)| QualityRow { process, category, quality, unnamed, amount };
    amounts.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attribution::window_report::Category,
        events::SampleKind,
        model::{
            frame::Marker,
            quality::{PathQuality, StackQuality, Unwinder, WalkEnd},
            units::{MicroJoules, Tid},
        },
        stacks::JvmWork,
    };

    #[test]
    fn stacks_are_counted_by_how_they_were_obtained_and_why_they_end() {
        let thread = |process, category| ThreadRow {
            process,
            tid: Tid(1),
            start_boottime_ns: 0,
            name: "".into(),
            category,
            cpu_ns: 0,
            samples: 0,
            energy: MicroJoules(0),
            by_bytes: MicroJoules(0),
        };
        let threads = [thread(0, Category::Java), thread(0, Category::Java), thread(0, Category::Gc)];
        let branch = |thread, branch, samples| BranchRow {
            thread,
            kind: SampleKind::CpuTime,
            branch: BranchIndex(branch),
            cpu_ns: samples * 100,
            samples,
            energy: MicroJoules(samples * 7),
            by_bytes: MicroJoules(0),
        };
        let walked = |end| PathQuality::Walked(StackQuality { unwinder: Unwinder::Tables, end });
        let facts = [
            (walked(WalkEnd::Root), None),
            (walked(WalkEnd::Root), Some(Marker::Evicted)),
            (walked(WalkEnd::NoRule), None),
            (PathQuality::NoSample, None),
        ];
        let facts = facts.map(|(quality, unnamed)| PathFacts {
            quality,
            unnamed,
            java_work: JvmWork::Unknown,
            vm_work: JvmWork::Vm,
        });
        let branches =
            [branch(0, 0, 5), branch(0, 1, 1), branch(1, 0, 3), branch(1, 2, 2), branch(2, 0, 4), branch(2, 3, 0)];
        let rows = quality_rows(&threads, &branches, |index| facts[index.0 as usize]);
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.category, row.quality.end_name(), row.unnamed, row.amount.samples, row.amount.energy.0))
            .collect();
        let expected = [
            (Category::Java, "root", None, 8, 56),
            (Category::Java, "root", Some(Marker::Evicted), 1, 7),
            (Category::Java, "no-rule", None, 2, 14),
            (Category::Gc, "root", None, 4, 28),
            (Category::Gc, "no-sample", None, 0, 0),
        ];
        assert_eq!(found, expected);
    }
}
