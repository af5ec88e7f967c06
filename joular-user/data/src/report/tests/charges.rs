//! The energy of garbage collectors is at the paths that allocated if that is asked for, and nothing is lost on the way.

use std::collections::BTreeMap;

use super::inference::{did, write};
use crate::{
    attribution::window_report::Category,
    dataset::{DataSetError, fixture},
    model::{policy::Policy, units::MicroJoules},
    report::profile::{ChargeBy, DataSet, Filter, Names, Profile},
};

fn data_set() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    root
}

fn charging() -> Filter {
    Filter { charge_gc: Some(ChargeBy::Allocated), ..Filter::default() }
}

fn of_category(profile: &Profile, category: Category) -> u64 {
    let is_it = |thread| profile.catalog.thread(thread).category == category;
    profile.entries.iter().filter(|entry| is_it(entry.thread)).map(|entry| entry.energy.0).sum()
}

#[test]
fn the_collectors_energy_moves_to_paths_that_allocated_and_the_sum_stays() {
    let root = data_set();
    let [own, charged] =
        [Filter::default(), charging()].map(|filter| Profile::read(root.path(), &filter, None).unwrap());
    assert_eq!(charged.energy(), own.energy());
    let moved = charged.overview.gc_charged.0;
    assert!(moved > 0 && own.overview.gc_charged == MicroJoules(0));
    let gc = of_category(&own, Category::Gc);
    assert_eq!(of_category(&charged, Category::Gc), gc - moved);
    assert!(moved * 10 > gc * 9, "{moved} of {gc} µJ: all but in windows in which nothing counts");
    // Who is charged is a thread that allocated.
    let by_thread = |profile: &Profile| {
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for entry in &profile.entries {
            *sums.entry(profile.catalog.thread(entry.thread).tid.0).or_default() += entry.energy.0;
        }
        sums
    };
    let (before, after, allocated) = (by_thread(&own), by_thread(&charged), fixture::allocated_by_thread());
    for (thread, energy) in &after {
        let is_charged = *energy > before.get(thread).copied().unwrap_or(0);
        assert!(!is_charged || allocated.contains_key(thread), "thread {thread}");
    }
}

#[test]
fn charged_by_what_survived_the_sum_is_the_same_and_paths_have_other_parts() {
    let root = data_set();
    let read = |by| Profile::read(root.path(), &Filter { charge_gc: Some(by), ..Filter::default() }, None).unwrap();
    let [allocated, survived] = [ChargeBy::Allocated, ChargeBy::Survived].map(read);
    assert_eq!(allocated.energy(), survived.energy());
    assert_eq!(allocated.overview.gc_charged, survived.overview.gc_charged);
    let energies = |profile: &Profile| -> Vec<u64> { profile.entries.iter().map(|entry| entry.energy.0).collect() };
    assert_ne!(energies(&allocated), energies(&survived));
}

#[test]
fn views_in_time_and_sums_have_the_same_energy_whatever_is_selected() {
    let root = data_set();
    let threads = |names: &[&str]| Names::parse(&names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    for filter in [
        charging(),
        Filter { charge_gc: Some(ChargeBy::Survived), ..Filter::default() },
        Filter { no_infer: true, ..charging() },
        Filter { threads: threads(&["a thread"]), ..charging() },
        Filter { categories: vec![Category::Gc], ..charging() },
    ] {
        let mut data = DataSet::open(root.path(), &filter).unwrap();
        let summed = data.sums(&filter, |_, _| ()).unwrap();
        let mut in_time = MicroJoules(0);
        data.scan_in_time(&filter, &summed, |_, row| in_time = in_time.saturating_add(row.energy)).unwrap();
        assert_eq!(in_time, summed.entries.iter().map(|entry| entry.energy).sum(), "{filter:?}");
    }
}

#[test]
fn a_data_set_without_charges_says_how_to_get_them() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 4, &[vec![did(100, "main", 300_000, &[(1, 1), (2, 2)])]]);
    let error = Profile::read(root.path(), &charging(), None).unwrap_err();
    assert!(matches!(error, DataSetError::NoCharges { .. }) && error.to_string().contains("--alloc"), "{error}");
}
