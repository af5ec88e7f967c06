//! What was moved is all in the data set, and stays there.

use std::{collections::BTreeMap, path::Path};

use joular_ebpf::abi::IoKind;

use crate::{
    dataset::{
        DataSetError, audit, compact, fixture, fixture_io,
        read::{columns::TableFile, files},
        reattribute, store,
        tables::{Io, counters, io},
    },
    model::policy::Policy,
};

type Sums = BTreeMap<(String, u32), [u64; IoKind::ALL.len()]>;

/// Bytes by claimant, and by those of its rows that samples saw.
fn sums(root: &Path) -> (Sums, Sums) {
    let (mut sums, mut seen) = (Sums::new(), Sums::new());
    for run in files::find(&store::open(root).unwrap()).unwrap() {
        for file in run.parts.iter().filter_map(|(_, part)| part.file::<Io>()) {
            let batches = TableFile::open(file).unwrap().batches(|columns| {
                let (claimants, tids) = (columns.names(counters::CLAIMANT)?, columns.ints(counters::TID)?);
                let (branches, samples) = (columns.ints(io::BRANCH_ID)?, columns.ints(io::SAMPLES)?);
                for kind in IoKind::ALL {
                    let bytes = columns.ints(io::bytes_of(kind))?;
                    for row in 0..columns.rows() {
                        let claimant = claimants.maybe(row).unwrap().unwrap().to_owned();
                        let tid = tids.maybe(row);
                        assert_eq!(
                            (claimant == "thread", tid.is_some()),
                            (tid.is_some(), branches.maybe(row).is_some())
                        );
                        let key = (claimant, tid.map_or(0, |tid| u32::try_from(tid).unwrap()));
                        let bytes = bytes.maybe(row).map_or(0, |bytes| u64::try_from(bytes).unwrap());
                        seen.entry(key.clone()).or_default()[kind as usize] +=
                            if samples.get(row).unwrap() > 0 { bytes } else { 0 };
                        sums.entry(key).or_default()[kind as usize] += bytes;
                    }
                }
                Ok(())
            });
            batches.unwrap();
        }
    }
    (sums, seen)
}

#[test]
fn bytes_of_a_claimants_rows_are_what_it_moved_and_stay_when_a_run_is_compacted_and_divided_again() {
    let root = tempfile::tempdir().unwrap();
    let [written, compacted, divided] = ["a", "b", "c"].map(|name| root.path().join(name));
    fixture::write(&written, Policy::default());
    compact::beside(&written, &compacted, None).unwrap();
    let policy =
        |run: &crate::events::RunInfo| Ok::<_, DataSetError>(Policy { smt_permille: 1_700, ..run.policy.clone() });
    reattribute::run(&compacted, &divided, None, policy).unwrap();
    let (found, seen) = sums(&written);
    let expected: Sums =
        fixture_io::moved_in_all().into_iter().map(|((name, tid), sums)| ((name.to_owned(), tid), sums)).collect();
    assert_eq!(found, expected);
    for (claimant, all) in &found {
        let is_seen = claimant.0 == "thread" && !claimant.1.is_multiple_of(3);
        assert_eq!(seen[claimant], if is_seen { *all } else { [0; 8] }, "{claimant:?}");
    }
    assert_eq!(found, sums(&compacted).0);
    assert_eq!(found, sums(&divided).0);
    assert!(audit::is_well(&audit::run(&divided).unwrap()));
}
