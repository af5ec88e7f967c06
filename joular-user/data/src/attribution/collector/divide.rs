//! Divides the energy of collectors: among the collections of a window, and among paths that allocated.

use std::collections::BTreeMap;

use super::{ChargeRow, CollectionKind, CollectionRow};
use crate::{
    attribution::{split::apportion, window_report::JvmRow},
    model::units::MicroJoules,
    stacks::JvmWork,
};

/// Divides what each JVM's collector used. All of it is charged if any bytes count, and none if none do: what a path is
/// charged for is always something that it allocated. Rows of a process stand together.
/// Those of a process whose collector did nothing are left out.
pub(in crate::attribution) fn charge(
    jvms: &[JvmRow],
    collections: &mut [CollectionRow],
    charges: &mut Vec<ChargeRow>,
    window_ns: u64,
) {
    let collected = |process: usize| {
        let gc = jvms.iter().find(|jvm| jvm.process == process).map(|jvm| jvm.part(JvmWork::Gc));
        gc.is_some_and(|gc| gc.cpu_ns > 0 || gc.energy > MicroJoules(0))
    };
    let worked: BTreeMap<usize, bool> = charges.iter().map(|row| (row.process, collected(row.process))).collect();
    charges.retain(|row| worked.get(&row.process).copied().unwrap_or(false));
    for jvm in jvms {
        let energy = jvm.part(JvmWork::Gc).energy;
        let collections = of_process(collections, jvm.process, |row| row.process);
        let took: Vec<u64> = collections.iter().map(|row| row.within_ns(window_ns)).collect();
        for (row, part) in collections.iter_mut().zip(apportion(energy.0, &took)) {
            row.energy = MicroJoules(part);
        }
        let charges = of_process(charges, jvm.process, |row| row.process);
        charge_process(energy, collections, charges);
    }
}

fn of_process<T>(rows: &mut [T], process: usize, process_of: impl Fn(&T) -> usize) -> &mut [T] {
    let start = rows.partition_point(|row| process_of(row) < process);
    let end = rows.partition_point(|row| process_of(row) <= process);
    rows.get_mut(start..end).unwrap_or_default()
}

fn charge_process(energy: MicroJoules, collections: &[CollectionRow], charges: &mut [ChargeRow]) {
    if collections.is_empty() {
        return divide(energy.0, charges, |row| (row.window_bytes, 0));
    }
    for kind in CollectionKind::ALL {
        let of_kind = collections.iter().filter(|row| row.kind() == kind).map(|row| row.energy);
        let of_kind: MicroJoules = of_kind.sum();
        divide(of_kind.0, charges, |row| match kind {
            CollectionKind::Young => (row.since_young_bytes, row.young_survived_bytes),
            CollectionKind::Old => (row.since_old_bytes, row.old_survived_bytes),
        });
    }
}

/// Divides energy twice: by bytes allocated, and by bytes that survived if any are known to have.
fn divide(energy_uj: u64, charges: &mut [ChargeRow], bytes: impl Fn(&ChargeRow) -> (u64, u64)) {
    let (allocated, survived): (Vec<u64>, Vec<u64>) = charges.iter().map(bytes).unzip();
    let is_nothing = |weights: &[u64]| weights.iter().all(|weight| *weight == 0);
    if is_nothing(&allocated) {
        return;
    }
    let by_allocation = apportion(energy_uj, &allocated);
    let by_survival = if is_nothing(&survived) { by_allocation.clone() } else { apportion(energy_uj, &survived) };
    for (row, (allocated, survived)) in charges.iter_mut().zip(by_allocation.into_iter().zip(by_survival)) {
        row.charged = row.charged.saturating_add(MicroJoules(allocated));
        row.charged_by_survival = row.charged_by_survival.saturating_add(MicroJoules(survived));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        attribution::window_report::{Amount, Category},
        model::units::Tid,
        stacks::BranchIndex,
    };

    const WINDOW_NS: u64 = 1_000;

    fn jvm(process: usize, gc_uj: u64) -> JvmRow {
        let mut parts = [Amount::default(); JvmWork::ALL.len()];
        parts[JvmWork::Gc as usize].energy = MicroJoules(gc_uj);
        JvmRow { process, whole: Amount::default(), parts }
    }

    fn collection(process: usize, collector: &str, since_start_ns: i64, duration_ns: Option<u64>) -> CollectionRow {
        CollectionRow {
            process,
            collector: collector.into(),
            cause: None,
            since_start_ns,
            duration_ns,
            before_bytes: 0,
            after_bytes: None,
            ages: Vec::new(),
            energy: MicroJoules(0),
        }
    }

    fn row(process: usize, [since_young_bytes, since_old_bytes, window_bytes]: [u64; 3]) -> ChargeRow {
        ChargeRow {
            process,
            tid: Tid(1),
            start_boottime_ns: 0,
            name: "main".into(),
            category: Category::Java,
            branch: BranchIndex(0),
            since_young_bytes,
            since_old_bytes,
            window_bytes,
            young_survived_bytes: 0,
            old_survived_bytes: 0,
            charged: MicroJoules(0),
            charged_by_survival: MicroJoules(0),
        }
    }

    fn charged(jvms: &[JvmRow], collections: &mut [CollectionRow], charges: &mut Vec<ChargeRow>) -> Vec<u64> {
        charge(jvms, collections, charges, WINDOW_NS);
        charges.iter().map(|row| row.charged.0).collect()
    }

    #[test]
    fn a_young_collection_is_for_what_was_allocated_since_the_last_one() {
        let mut charges = vec![row(0, [300, 0, 0]), row(0, [100, 9_000, 0])];
        let mut collections = [collection(0, "Copy", 10, Some(20))];
        assert_eq!(charged(&[jvm(0, 1_000)], &mut collections, &mut charges), [750, 250]);
        assert_eq!(collections[0].energy.0, 1_000);
    }

    #[test]
    fn what_survived_counts_in_the_second_division_and_what_was_allocated_where_nothing_is_known_to_have() {
        let mut rows = vec![row(0, [300, 500, 0]), row(0, [100, 500, 0])];
        (rows[0].young_survived_bytes, rows[1].young_survived_bytes) = (10, 30);
        let by_survival = |rows: &[ChargeRow]| rows.iter().map(|row| row.charged_by_survival.0).collect::<Vec<_>>();
        let young = collection(0, "Copy", 0, Some(20));
        assert_eq!(charged(&[jvm(0, 1_000)], &mut [young.clone()], &mut rows), [750, 250]);
        assert_eq!(by_survival(&rows), [250, 750]);
        let old = collection(0, "MarkSweepCompact", 0, Some(20));
        let mut rows = vec![row(0, [300, 500, 0]), row(0, [100, 500, 0])];
        (rows[0].young_survived_bytes, rows[1].young_survived_bytes) = (10, 30);
        assert_eq!(charged(&[jvm(0, 1_000)], &mut [young, old], &mut rows), [375 + 250, 125 + 250]);
        assert_eq!(by_survival(&rows), [125 + 250, 375 + 250]);
    }

    #[test]
    fn collections_share_the_energy_by_how_long_each_took_of_the_window() {
        let mut charges = vec![row(0, [1, 0, 0]), row(0, [0, 1, 0])];
        let mut collections =
            [collection(0, "G1 Old Generation", -5_000, Some(5_300)), collection(0, "G1 Young Generation", 900, None)];
        assert_eq!(charged(&[jvm(0, 400)], &mut collections, &mut charges), [100, 300]);
        assert_eq!(collections.map(|row| row.energy.0), [300, 100]);
    }

    #[test]
    fn a_collector_that_works_beside_the_program_is_for_what_is_allocated_meanwhile() {
        let mut charges = vec![row(0, [0, 0, 10]), row(0, [0, 0, 30])];
        assert_eq!(charged(&[jvm(0, 400)], &mut [], &mut charges), [100, 300]);
    }

    #[test]
    fn nobody_is_charged_for_what_nobody_allocated() {
        let mut charges = vec![row(0, [0, 5, 0])];
        let mut collections = [collection(0, "Copy", 0, Some(1))];
        assert_eq!(charged(&[jvm(0, 400)], &mut collections, &mut charges), [0]);
        assert_eq!(collections[0].energy.0, 400);
    }

    #[test]
    fn each_process_is_charged_for_its_own_collector() {
        let mut charges = vec![row(1, [1, 0, 0]), row(2, [1, 0, 0]), row(2, [1, 0, 0])];
        let mut collections =
            [collection(0, "Copy", 0, Some(1)), collection(1, "Copy", 0, Some(1)), collection(2, "Copy", 0, Some(1))];
        assert_eq!(charged(&[jvm(0, 7), jvm(1, 10), jvm(2, 30)], &mut collections, &mut charges), [10, 15, 15]);
    }

    #[test]
    fn collectors_that_collect_a_young_generation_are_known_by_name() {
        for (name, expected) in [
            ("Copy", CollectionKind::Young),
            ("PS Scavenge", CollectionKind::Young),
            ("G1 Young Generation", CollectionKind::Young),
            ("ZGC Minor Cycles", CollectionKind::Young),
            ("MarkSweepCompact", CollectionKind::Old),
            ("PS MarkSweep", CollectionKind::Old),
            ("G1 Old Generation", CollectionKind::Old),
            ("G1 Concurrent GC", CollectionKind::Old),
            ("ZGC Cycles", CollectionKind::Old),
            ("Shenandoah Cycles", CollectionKind::Old),
        ] {
            assert_eq!(CollectionKind::of(name), expected, "{name}");
        }
    }

    proptest! {
        /// Either all of the energy is charged, or what cannot be is of collections that nothing counts for.
        #[test]
        fn not_a_microjoule_is_lost_or_made(
            energy in 0_u64..1_000_000,
            bytes in proptest::collection::vec([0_u64..1_000, 1_u64..1_000, 0_u64..1_000], 1..20),
            took in proptest::collection::vec((0_usize..2, 0_i64..900, 1_u64..100), 0..5),
        ) {
            let mut charges: Vec<_> = bytes.iter().map(|bytes| row(0, *bytes)).collect();
            let mut collections: Vec<_> = took
                .iter()
                .map(|(kind, start, duration)| {
                    collection(0, ["Copy", "MarkSweepCompact"][*kind], *start, Some(*duration))
                })
                .collect();
            let charged: u64 = charged(&[jvm(0, energy)], &mut collections, &mut charges).iter().sum();
            let of = |kind| collections.iter().filter(move |row| row.kind() == kind).map(|row| row.energy.0).sum::<u64>();
            let any = |position: usize| bytes.iter().any(|bytes| bytes[position] > 0);
            let expected = match took.is_empty() {
                true => if any(2) { energy } else { 0 },
                false => (if any(0) { of(CollectionKind::Young) } else { 0 }) + of(CollectionKind::Old),
            };
            prop_assert_eq!(charged, expected);
            let by_survival: u64 = charges.iter().map(|row| row.charged_by_survival.0).sum();
            prop_assert_eq!(by_survival, expected);
        }
    }
}
