//! What a window ran under stays with it.

use std::{collections::BTreeSet, path::Path};

use crate::{
    dataset::{
        audit, compact,
        error::DataSetError,
        fixture::{self, SUSPENDED, WINDOWS},
        read::{columns::TableFile, files},
        reattribute, store,
        tables::{Windows, context, windows},
    },
    model::policy::Policy,
};

/// Number, time suspended, step, frequency, governor and item of suspends of each row.
type Facts = (i64, Option<i64>, Option<i64>, Option<i64>, Option<String>, Option<i64>);

fn facts(root: &Path) -> BTreeSet<Facts> {
    let mut found = BTreeSet::new();
    for run in files::find(&store::open(root).unwrap()).unwrap() {
        for file in run.parts.iter().filter_map(|(_, part)| part.file::<Windows>()) {
            let take = |columns: &crate::dataset::read::columns::Columns<'_>| {
                let governors = columns.texts(context::GOVERNOR)?;
                for row in 0..columns.rows() {
                    found.insert((
                        columns.ints(windows::WINDOW_INDEX)?.get(row)?,
                        columns.ints(context::SUSPENDED_NS)?.maybe(row),
                        columns.ints(context::CLOCK_STEP_US)?.maybe(row),
                        columns.ints(context::MEAN_FREQUENCY_KHZ)?.maybe(row),
                        governors.maybe(row).map(ToOwned::to_owned),
                        columns.ints(windows::SUSPENDED_UJ)?.maybe(row),
                    ));
                }
                Ok(())
            };
            TableFile::open(file).unwrap().batches(take).unwrap();
        }
    }
    found
}

fn again(from: &Path, to: &Path) {
    let policy_of = |run: &crate::events::RunInfo| Ok::<Policy, DataSetError>(run.policy.clone());
    reattribute::run(from, to, None, policy_of).unwrap();
}

#[test]
fn rewriting_keeps_what_windows_ran_under() {
    let root = tempfile::tempdir().unwrap();
    let [written, compacted, divided] = ["a", "b", "c"].map(|name| root.path().join(name));
    fixture::write(&written, Policy::default());
    let facts_written = facts(&written);
    let numbers: BTreeSet<i64> = facts_written.iter().map(|facts| facts.0).collect();
    assert_eq!(numbers.len() as u64, WINDOWS);
    let of = |index: u64| {
        facts_written.iter().filter(move |facts| facts.0 == i64::try_from(index).unwrap()).collect::<Vec<_>>()
    };
    assert!(of(SUSPENDED).iter().all(|facts| facts.1 == Some(3_600_000_000_000)));
    assert!(of(SUSPENDED).iter().any(|facts| facts.5 > Some(0)), "{:?}", of(SUSPENDED));
    assert!(of(SUSPENDED + 2).iter().all(|facts| facts.2 == Some(-500_000)));
    compact::beside(&written, &compacted, None).unwrap();
    again(&compacted, &divided);
    assert_eq!(facts(&compacted), facts_written);
    assert_eq!(facts(&divided), facts_written);
    assert!(audit::is_well(&audit::run(&divided).unwrap()));
}
