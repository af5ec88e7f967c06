//! Divides the energy of collectors: among the collections of a window, and among paths that allocated.

use std::collections::BTreeMap;

use super::{ChargeRow, CollectionKind, CollectionRow, threads::GcEnergy};
use crate::{
    attribution::{
        split::apportion,
        window_report::{JvmRow, ThreadRow},
    },
    model::units::MicroJoules,
};

/// Divides what each JVM's collector used for collections. All of it is charged if any bytes count, and none if none do:
/// what a path is charged for is always something that it allocated. What a collector's threads do for themselves stays
/// with it ([`GcThread::Own`](super::GcThread::Own)). Rows of a process stand together. Those of a process whose collector
/// did nothing else are left out.
pub(in crate::attribution) fn charge(
    (jvms, threads): (&[JvmRow], &[ThreadRow]),
    collections: &mut [CollectionRow],
    charges: &mut Vec<ChargeRow>,
    window_ns: u64,
) {
    let energies: BTreeMap<usize, GcEnergy> =
        jvms.iter().map(|jvm| (jvm.process, GcEnergy::of(jvm, threads))).collect();
    charges.retain(|row| energies.get(&row.process).is_some_and(|energy| energy.has_worked));
    for (process, energy) in energies {
        let collections = of_process(collections, process, |row| row.process);
        let beside = share_collections(energy, collections, window_ns);
        let charges = of_process(charges, process, |row| row.process);
        charge_process(beside, collections, charges);
    }
}

/// Gives collections their parts by how long they took, and returns the energy that is no collection's: of threads that
/// mark the whole heap, or that worked in a window without a collection.
fn share_collections(energy: GcEnergy, collections: &mut [CollectionRow], window_ns: u64) -> MicroJoules {
    let is_of = |kind| move |row: &CollectionRow| row.is_cycle() && row.kind() == kind;
    let young = share(energy.young, collections, window_ns, is_of(CollectionKind::Young));
    let old = share(energy.old, collections, window_ns, is_of(CollectionKind::Old));
    // Without a cycle of its own, the young generation is collected as a part of the whole heap.
    let any = share(energy.any.saturating_add(young), collections, window_ns, |_| true);
    old.saturating_add(any)
}

/// Divides energy among the collections that count, and returns it if none does.
fn share(
    energy: MicroJoules,
    collections: &mut [CollectionRow],
    window_ns: u64,
    counts: impl Fn(&CollectionRow) -> bool,
) -> MicroJoules {
    let took: Vec<u64> = collections.iter().map(|row| if counts(row) { row.within_ns(window_ns) } else { 0 }).collect();
    if took.iter().all(|ns| *ns == 0) {
        return energy;
    }
    for (row, part) in collections.iter_mut().zip(apportion(energy.0, &took)) {
        row.energy = row.energy.saturating_add(MicroJoules(part));
    }
    MicroJoules(0)
}

fn of_process<T>(rows: &mut [T], process: usize, process_of: impl Fn(&T) -> usize) -> &mut [T] {
    let start = rows.partition_point(|row| process_of(row) < process);
    let end = rows.partition_point(|row| process_of(row) <= process);
    rows.get_mut(start..end).unwrap_or_default()
}

/// Bytes of a row that count: allocated, and survived.
type Counted = fn(&ChargeRow) -> (u64, u64);

const SINCE_YOUNG: Counted = |row| (row.since_young_bytes, row.young_survived_bytes);
const SINCE_OLD: Counted = |row| (row.since_old_bytes, row.old_survived_bytes);
const IN_WINDOW: Counted = |row| (row.window_bytes, 0);

fn charge_process(beside: MicroJoules, collections: &[CollectionRow], charges: &mut [ChargeRow]) {
    let of = |kind| collections.iter().filter(|row| row.kind() == kind).map(|row| row.energy).sum::<MicroJoules>();
    divide(of(CollectionKind::Young), charges, [SINCE_YOUNG, SINCE_OLD, IN_WINDOW]);
    divide(of(CollectionKind::Old).saturating_add(beside), charges, [SINCE_OLD, IN_WINDOW, SINCE_YOUNG]);
}

/// Divides energy twice: by bytes allocated, and by bytes that survived if any are known to have. Of what could count, the
/// first counts that is not 0 for all rows.
fn divide(energy: MicroJoules, charges: &mut [ChargeRow], counted: [Counted; 3]) {
    let Some(bytes) = counted.into_iter().find(|bytes| charges.iter().any(|row| bytes(row).0 > 0)) else { return };
    let (allocated, survived): (Vec<u64>, Vec<u64>) = charges.iter().map(bytes).unzip();
    let by_allocation = apportion(energy.0, &allocated);
    let has_survivors = survived.iter().any(|bytes| *bytes > 0);
    let by_survival = if has_survivors { apportion(energy.0, &survived) } else { by_allocation.clone() };
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
        stacks::{BranchIndex, JvmWork},
    };

    const WINDOW_NS: u64 = 1_000;

    fn jvm(process: usize, gc_uj: u64) -> JvmRow {
        let mut parts = [Amount::default(); JvmWork::ALL.len()];
        parts[JvmWork::Gc as usize].energy = MicroJoules(gc_uj);
        JvmRow { process, whole: Amount::default(), parts }
    }

    fn gc_thread(name: &str, energy: u64) -> ThreadRow {
        ThreadRow {
            process: 0,
            tid: Tid(1),
            start_boottime_ns: 0,
            name: name.into(),
            category: Category::Gc,
            cpu_ns: 10 * energy,
            samples: 0,
            energy: MicroJoules(energy),
            by_bytes: MicroJoules(0),
        }
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
        charge((jvms, &[]), collections, charges, WINDOW_NS);
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

    /// Energy by thread of one JVM, and what its paths are charged.
    fn charged_for(
        threads: &[(&str, u64)],
        collections: &mut [CollectionRow],
        charges: &mut Vec<ChargeRow>,
    ) -> Vec<u64> {
        let of_jvm: u64 = threads.iter().map(|(_, energy)| energy).sum();
        let threads: Vec<_> = threads.iter().map(|(name, energy)| gc_thread(name, *energy)).collect();
        charge((&[jvm(0, of_jvm)], &threads), collections, charges, WINDOW_NS);
        charges.iter().map(|row| row.charged.0).collect()
    }

    #[test]
    fn what_marks_is_for_the_whole_heap_however_short_the_pauses_and_what_refines_is_for_no_allocation() {
        let threads = [("GC Thread#0", 30), ("G1 Conc#0", 400), ("G1 Main Marker", 4), ("G1 Refine#0", 1_000)];
        let rows = || vec![row(0, [10, 10, 0]), row(0, [20, 30, 0])];
        let mut pauses = [collection(0, "G1 Young Generation", 0, Some(900))];
        assert_eq!(charged_for(&threads, &mut pauses, &mut rows()), [10 + 101, 20 + 303]);
        assert_eq!(pauses[0].energy.0, 30);
        // Pauses of marking are as long as they are, and no longer.
        let mut pauses =
            [collection(0, "G1 Young Generation", 0, Some(20)), collection(0, "G1 Concurrent GC", 30, Some(10))];
        assert_eq!(charged_for(&threads, &mut pauses, &mut rows()), [7 + 104, 13 + 310]);
        assert_eq!(pauses.map(|row| row.energy.0), [20, 10]);
        assert_eq!(charged_for(&threads[1..], &mut [], &mut vec![row(0, [0, 1, 0]), row(0, [0, 3, 0])]), [101, 303]);
    }

    #[test]
    fn nobody_is_charged_for_a_collector_that_only_refines() {
        let mut charges = vec![row(0, [0, 0, 10])];
        assert_eq!(charged_for(&[("G1 Refine#0", 1_000)], &mut [], &mut charges), [0; 0]);
    }

    #[test]
    fn threads_of_a_generation_work_for_its_cycles() {
        let threads = [("ZWorkerYoung#0", 300), ("ZWorkerOld#0", 100)];
        let cycles = |young: &str| [collection(0, young, 0, Some(10)), collection(0, "ZGC Major Cycles", 0, Some(90))];
        let rows = || vec![row(0, [1, 0, 0]), row(0, [0, 1, 0])];
        let mut collections = cycles("ZGC Minor Cycles");
        assert_eq!(charged_for(&threads, &mut collections, &mut rows()), [300, 100]);
        assert_eq!(collections.map(|row| row.energy.0), [300, 100]);
        // A major cycle collects the young generation, too.
        let mut major = [collection(0, "ZGC Major Cycles", 0, Some(90))];
        assert_eq!(charged_for(&threads, &mut major, &mut rows()), [0, 400]);
        assert_eq!(major[0].energy.0, 400);
    }

    #[test]
    fn where_nothing_was_allocated_that_a_collection_is_for_what_else_counts_is_charged() {
        let threads = [("GC Thread#0", 40), ("G1 Conc#0", 400)];
        for bytes in [[[10, 0, 0], [30, 0, 0]], [[0, 10, 0], [0, 30, 0]]] {
            let mut pauses = [collection(0, "G1 Young Generation", 0, Some(900))];
            assert_eq!(charged_for(&threads, &mut pauses, &mut bytes.map(|bytes| row(0, bytes)).into()), [110, 330]);
        }
    }

    #[test]
    fn nobody_is_charged_for_what_nobody_allocated() {
        let mut charges = vec![row(0, [0; 3])];
        charges[0].young_survived_bytes = 5;
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
        /// All of the energy is charged, unless nothing counts.
        #[test]
        fn not_a_microjoule_is_lost_or_made(
            energy in 0_u64..1_000_000,
            bytes in proptest::collection::vec([0_u64..3, 0_u64..3, 0_u64..3], 1..4),
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
            let expected = if bytes.iter().flatten().any(|bytes| *bytes > 0) { energy } else { 0 };
            prop_assert_eq!(charged, expected);
            let by_survival: u64 = charges.iter().map(|row| row.charged_by_survival.0).sum();
            prop_assert_eq!(by_survival, expected);
        }
    }
}
