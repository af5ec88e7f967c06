//! What was moved is all in the data set, and stays there.

use std::{collections::BTreeMap, path::Path};

use joular_ebpf::abi::IoKind;

use crate::{
    dataset::{
        DataSetError, audit,
        column::{Column, Table, kind},
        compact, fixture,
        fixture_io::{self, write_with_devices},
        read::{columns::TableFile, files},
        reattribute, store,
        tables::{Branches, Io, Methods, Threads, Windows, counters, io, methods, shared, windows},
        tampering,
    },
    model::policy::{IdlePolicy, Policy},
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

/// A column's sum over the rows of a table that another column, if any, has this text in.
fn sum<T: Table>(root: &Path, column: Column<kind::Int>, only: Option<(Column<kind::Name>, &str)>) -> u64 {
    let mut sum = 0;
    for run in files::find(&store::open(root).unwrap()).unwrap() {
        for file in run.parts.iter().filter_map(|(_, part)| part.file::<T>()) {
            let batches = TableFile::open(file).unwrap().batches(|columns| {
                let values = columns.ints(column)?;
                let texts = only.map(|(column, _)| columns.names(column)).transpose()?;
                for row in 0..columns.rows() {
                    let found = texts.as_ref().map(|texts| texts.maybe(row)).transpose()?.flatten();
                    if only.is_none_or(|(_, text)| found == Some(text)) {
                        sum += values.natural::<u64>(row)?;
                    }
                }
                Ok(())
            });
            batches.unwrap();
        }
    }
    sum
}

#[test]
fn energy_of_network_and_disk_goes_to_threads_and_paths_by_what_they_moved() {
    let root = tempfile::tempdir().unwrap();
    let [without, with] = ["a", "b"].map(|name| root.path().join(name));
    fixture::write(&without, Policy::default());
    write_with_devices(&with, Policy::default());
    let of_domain = |name, column| sum::<Windows>(&with, column, Some((windows::DOMAIN, name)));
    let measured = ["network", "disk"].map(|name| of_domain(name, windows::MEASURED_UJ));
    let attributed = ["network", "disk"].map(|name| of_domain(name, windows::ATTRIBUTED_UJ)).iter().sum::<u64>();
    // 30 windows of a second, in one of which the machine is suspended: no clock of windows goes on then.
    let idle = ["network", "disk"].map(|name| of_domain(name, windows::STATIC_UJ));
    assert_eq!(idle, [30_000_000, 60_000_000]);
    let moved = sums(&with).0;
    let costs_pj = [2_070, 1_300, 0, 0, 0, 0, 9_000, 9_200_u64];
    let cost_uj = |kinds: std::ops::Range<usize>| {
        let of = |bytes: &[u64; 8]| kinds.clone().map(|kind| costs_pj[kind] * bytes[kind]).sum::<u64>();
        moved.values().map(of).sum::<u64>() / 1_000_000
    };
    assert_eq!(measured, [idle[0] + cost_uj(0..2), idle[1] + cost_uj(6..8)]);
    assert!(attributed > 0);
    for (table, found) in [
        ("threads", sum::<Threads>(&with, shared::BY_BYTES_UJ, None)),
        ("branches", sum::<Branches>(&with, shared::BY_BYTES_UJ, None)),
        ("methods", sum::<Methods>(&with, methods::SELF_BY_BYTES_UJ, None)),
    ] {
        assert_eq!(found, attributed, "{table}");
    }
    // What the other domains gave is as it was.
    let others = sum::<Threads>(&without, shared::ENERGY_UJ, None);
    assert_eq!(sum::<Threads>(&with, shared::ENERGY_UJ, None), others + attributed);
    let audits = audit::run(&with).unwrap();
    assert!(audit::is_well(&audits), "{:?}", audits[0].told);
}

/// Under another policy paths get other energies, and back again.
#[test]
fn energy_by_bytes_is_divided_again_as_a_recording_would_have_divided_it() {
    let root = tempfile::tempdir().unwrap();
    let [recorded, spread, again, expected] = ["a", "b", "c", "d"].map(|name| root.path().join(name));
    let policies = [IdlePolicy::Separate, IdlePolicy::Spread].map(|idle| Policy { idle, ..Policy::default() });
    write_with_devices(&recorded, policies[0].clone());
    write_with_devices(&expected, policies[1].clone());
    for (from, to, policy) in [(&recorded, &spread, &policies[1]), (&spread, &again, &policies[0])] {
        reattribute::run(from, to, None, |_| Ok::<_, DataSetError>(policy.clone())).unwrap();
    }
    for (found, expected) in [(&spread, &expected), (&again, &recorded)] {
        assert!(fixture::files(found) == fixture::files(expected));
    }
}

#[test]
fn a_byte_that_is_not_in_the_data_set_is_missed_by_the_audit() {
    let root = tempfile::tempdir().unwrap();
    write_with_devices(root.path(), Policy::default());
    let file = tampering::file(root.path(), "io", 0);
    tampering::tamper(&file, &io::bytes_of(IoKind::Sent).name(), |values| {
        values.iter_mut().step_by(2).flatten().for_each(|bytes| *bytes /= 2);
    });
    let audits = audit::run(root.path()).unwrap();
    let told = audits[0].told.join("\n");
    assert!(told.contains("network: energy of its bytes") && told.contains("by_bytes_uj of thread"), "{told}");
}
