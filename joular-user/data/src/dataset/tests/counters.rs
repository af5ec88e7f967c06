//! What was counted is all in the data set, and stays there.

use std::{collections::BTreeMap, path::Path};

use crate::{
    dataset::{
        DataSetError, audit, compact, fixture,
        read::{columns::TableFile, files},
        reattribute, store,
        tables::{Counters, counters},
    },
    events::Event,
    model::policy::Policy,
};

/// Rows and their sum, by claimant and counter.
fn sums(root: &Path) -> BTreeMap<(String, String), (u64, i64)> {
    let mut sums = BTreeMap::new();
    for run in files::find(&store::open(root).unwrap()).unwrap() {
        for file in run.parts.iter().filter_map(|(_, part)| part.file::<Counters>()) {
            let batches = TableFile::open(file).unwrap().batches(|columns| {
                let (claimants, names) = (columns.names(counters::CLAIMANT)?, columns.names(counters::COUNTER)?);
                let (pids, counts) = (columns.ints(counters::PID)?, columns.ints(counters::COUNT)?);
                for row in 0..columns.rows() {
                    let claimant = claimants.get(row).unwrap();
                    assert_eq!(pids.maybe(row).is_some(), claimant == "thread");
                    let (rows, sum): &mut (u64, i64) =
                        sums.entry((claimant.to_owned(), names.get(row).unwrap().to_owned())).or_default();
                    *rows += 1;
                    *sum += counts.get(row).unwrap();
                }
                Ok(())
            });
            batches.unwrap();
        }
    }
    sums
}

/// What all threads of the run counted, of the counters in the order of the events.
fn told() -> Vec<u64> {
    let mut all = vec![0; 3];
    for event in fixture::events(Policy::default()) {
        let Event::Counters(counted) = event else { continue };
        for thread in &counted.threads {
            all.iter_mut().zip(&thread.counts).for_each(|(sum, count)| *sum += count);
        }
    }
    all
}

#[test]
fn every_count_has_its_claimant_and_stays_when_a_run_is_compacted_and_divided_again() {
    let root = tempfile::tempdir().unwrap();
    let [written, compacted, divided] = ["a", "b", "c"].map(|name| root.path().join(name));
    fixture::write(&written, Policy::default());
    compact::beside(&written, &compacted, None).unwrap();
    let policy =
        |run: &crate::events::RunInfo| Ok::<_, DataSetError>(Policy { smt_permille: 1_700, ..run.policy.clone() });
    reattribute::run(&compacted, &divided, None, policy).unwrap();
    let found = sums(&written);
    for (counter, told) in ["cache-misses", "major-faults", "context-switches"].into_iter().zip(told()) {
        let of = |claimant: &str| found.get(&(claimant.to_owned(), counter.to_owned())).copied().unwrap_or_default();
        let all: i64 = ["thread", "other_processes", "kernel", "profiler"].map(|claimant| of(claimant).1).iter().sum();
        assert_eq!(u64::try_from(all).unwrap(), told, "{counter}");
        // A group says that it counted nothing, a thread has no row.
        assert_eq!(["other_processes", "kernel", "profiler"].map(|group| of(group).0), [fixture::WINDOWS; 3]);
        assert_eq!(of("thread").0 > 0, told > 0, "{counter}");
    }
    assert_eq!(found, sums(&compacted));
    assert_eq!(found, sums(&divided));
    assert!(audit::is_well(&audit::run(&divided).unwrap()));
}
