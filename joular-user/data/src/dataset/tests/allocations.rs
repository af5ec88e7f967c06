//! What was allocated is all in the data set, and stays there.

use std::{collections::BTreeMap, path::Path};

use crate::{
    dataset::{
        DataSetError, audit, compact, fixture,
        read::{columns::TableFile, files},
        reattribute, store,
        tables::{Allocations, allocations, shared},
    },
    model::policy::Policy,
};

/// Bytes by thread, and those of them without a class.
fn sums(root: &Path) -> BTreeMap<u32, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for run in files::find(&store::open(root).unwrap()).unwrap() {
        for file in run.parts.iter().filter_map(|(_, part)| part.file::<Allocations>()) {
            let batches = TableFile::open(file).unwrap().batches(|columns| {
                let (tids, classes) = (columns.ints(shared::TID)?, columns.names(allocations::CLASS)?);
                let (bytes, samples) =
                    (columns.ints(allocations::ALLOCATED_BYTES)?, columns.ints(allocations::SAMPLES)?);
                for row in 0..columns.rows() {
                    let class = classes.maybe(row).unwrap();
                    assert_eq!(class.is_some(), samples.get(row).unwrap() > 0);
                    assert!(class.is_none_or(|class| ["m100", "m200"].contains(&class)), "{class:?}");
                    let (all, unseen): &mut (u64, u64) = sums.entry(tids.natural(row)?).or_default();
                    let bytes: u64 = bytes.natural(row)?;
                    *all += bytes;
                    *unseen += if class.is_none() { bytes } else { 0 };
                }
                Ok(())
            });
            batches.unwrap();
        }
    }
    sums
}

#[test]
fn bytes_of_a_threads_rows_are_what_it_allocated_and_stay_when_a_run_is_compacted_and_divided_again() {
    let root = tempfile::tempdir().unwrap();
    let [written, compacted, divided] = ["a", "b", "c"].map(|name| root.path().join(name));
    fixture::write(&written, Policy::default());
    compact::beside(&written, &compacted, None).unwrap();
    let policy =
        |run: &crate::events::RunInfo| Ok::<_, DataSetError>(Policy { smt_permille: 1_700, ..run.policy.clone() });
    reattribute::run(&compacted, &divided, None, policy).unwrap();
    let found = sums(&written);
    assert_eq!(
        found.iter().map(|(tid, (all, _))| (*tid, *all)).collect::<BTreeMap<_, _>>(),
        fixture::allocated_by_thread()
    );
    for (tid, (all, unseen)) in &found {
        assert_eq!(*unseen, if tid % 3 == 0 { *all } else { 0 }, "{tid}");
    }
    assert_eq!(found, sums(&compacted));
    assert_eq!(found, sums(&divided));
    assert!(audit::is_well(&audit::run(&divided).unwrap()));
}
