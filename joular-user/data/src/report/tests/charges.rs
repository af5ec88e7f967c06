//! The energy of garbage collectors is at the paths that allocated if that is asked for, and nothing is lost on the way.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    baseline::choices,
    inference::{did, write},
};
use crate::{
    attribution::window_report::Category,
    dataset::{DataSetError, OutputDirectory, ParquetOutput, audit, fixture},
    events::Event,
    model::{
        measure::Measure,
        policy::Policy,
        units::{MicroJoules, Tid},
    },
    report::{
        diff::{CompareBy, Per, Side},
        profile::{ChargeBy, DataSet, Filter, Names, Profile},
        ranking::{By, MeasureTable, Sort, TableOf, context, rows::Cut},
    },
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

/// A thread that refines, and one that marks.
const REFINES: Tid = Tid(111);
const MARKS: Tid = Tid(116);

/// The fixture's data set, with two of the program's threads as G1's.
fn with_threads_of_g1() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let is_of_program = |tid| ![REFINES, MARKS].contains(&tid);
    let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), 7 * fixture::SECOND);
    fixture::play_changed(output, Policy::default(), |event| match event {
        Event::Window(window) => {
            for time in window.threads.iter_mut().filter(|time| !is_of_program(time.tid)) {
                let name: &[u8] = if time.tid == REFINES { b"G1 Refine#0" } else { b"G1 Conc#0" };
                time.comm = [0; 16];
                time.comm[..name.len()].copy_from_slice(name);
            }
        }
        Event::Allocations(allocations) => {
            allocations.threads.retain(|thread| is_of_program(thread.tid));
            allocations.samples.retain(|sample| is_of_program(sample.tid));
        }
        _ => {}
    });
    root
}

#[test]
fn what_refines_keeps_its_energy_and_what_marks_is_charged() {
    let root = with_threads_of_g1();
    for charging in [charging(), Filter { charge_gc: Some(ChargeBy::Survived), ..Filter::default() }] {
        let [own, charged] =
            [Filter::default(), charging].map(|filter| Profile::read(root.path(), &filter, None).unwrap());
        assert_eq!(charged.energy(), own.energy());
        let of = |profile: &Profile, tid: Tid| -> u64 {
            let is_it = |thread| profile.catalog.thread(thread).tid == tid;
            profile.entries.iter().filter(|entry| is_it(entry.thread)).map(|entry| entry.energy.0).sum()
        };
        let kept = of(&charged, REFINES);
        assert!(kept > 0 && kept == of(&own, REFINES) && kept == charged.overview.gc_kept.0);
        assert!(of(&charged, MARKS) * 10 < of(&own, MARKS), "{} µJ", of(&charged, MARKS));
        let said = context::gc_charged(&charged);
        assert!(said.len() == 2 && said[1].contains("writes of references"), "{said:?}");
        assert!(context::gc_charged(&own).is_empty());
    }
    let audits = audit::run(root.path()).unwrap();
    assert!(audit::is_well(&audits), "{audits:?}");
}

/// Σ v² of n values that sum to E is E² / n at least, and E² at most.
#[test]
#[allow(clippy::cast_precision_loss, reason = "an error estimate")]
fn sampled_objects_stand_for_what_their_paths_are_charged() {
    for root in [data_set(), with_threads_of_g1()] {
        for by in [ChargeBy::Allocated, ChargeBy::Survived] {
            let filter = Filter { charge_gc: Some(by), no_infer: true, ..Filter::default() };
            let profile = Profile::read(root.path(), &filter, None).unwrap();
            let charged = profile.entries.iter().map(|entry| entry.charged);
            let sampled: Vec<_> = charged.filter(|charged| charged.samples > 0).collect();
            assert!(sampled.len() > 4, "{by:?}: {sampled:?}");
            for charged in sampled {
                let energy = charged.energy.0 as f64;
                let effective = energy * energy / charged.squares;
                assert!(
                    effective > 0.999 && effective < charged.samples as f64 * 1.001,
                    "{by:?}: {charged:?} as {effective} objects"
                );
            }
        }
    }
}

#[test]
fn what_a_thread_is_charged_is_exact_by_allocated_bytes_and_what_a_process_is_always() {
    let root = data_set();
    for (by, allocated, survived) in [(By::Thread, true, false), (By::Process, true, true), (By::Method, false, false)]
    {
        for (charge_gc, is_exact) in [(ChargeBy::Allocated, allocated), (ChargeBy::Survived, survived)] {
            let filter = Filter { charge_gc: Some(charge_gc), ..Filter::default() };
            let profile = Profile::read(root.path(), &filter, None).unwrap();
            let cut = Cut { top: 0, sort: Sort::Own, is_partial: false };
            let table = MeasureTable::of(&profile, TableOf { by, measure: Measure::Energy }, cut);
            assert_eq!(table.all_rows().all(|row| row.own.is_exact()), is_exact, "{by:?}, {charge_gc:?}");
        }
    }
}

#[test]
fn a_comparison_is_as_uncertain_as_the_objects_that_charges_go_by() {
    let root = data_set();
    let names = |name: &str| Names::parse(&[name.to_owned()]).unwrap();
    let profile = Profile::read(root.path(), &charging(), None).unwrap();
    let charged = profile.entries.iter().filter(|entry| entry.charged.samples > 0);
    let frames = charged.flat_map(|entry| profile.catalog.paths.frames_of(entry.path));
    let methods: BTreeSet<String> = frames.map(|frame| frame.method().raw().to_owned()).collect();
    let variance = |method: &String, charge_gc| {
        let filter = Filter { charge_gc, methods: names(method), threads: names("a thread"), ..Filter::default() };
        Side::read(root.path(), &filter, None, &choices(CompareBy::Method, Per::Time)).unwrap().total.sampling
    };
    let of_methods = |charge_gc| -> f64 { methods.iter().map(|method| variance(method, charge_gc)).sum() };
    for charge_gc in [ChargeBy::Allocated, ChargeBy::Survived] {
        assert!(of_methods(Some(charge_gc)) > 1.01 * of_methods(None), "{charge_gc:?}");
    }
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
        let summed = data.sums(&filter, &mut |_, _| ()).unwrap();
        let mut in_time = MicroJoules(0);
        data.scan_in_time(&filter, &summed, &mut |_, row| in_time = in_time.saturating_add(row.energy)).unwrap();
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
