//! Phases stay with their windows, and choose what is looked at.

use std::path::Path;

use crate::{
    dataset::{DataSetError, audit, compact, fixture, reattribute},
    model::policy::Policy,
    report::profile::{DataSet, Filter, Names, Profile},
};

fn filter(phases: &[&str]) -> Filter {
    let phases: Vec<String> = phases.iter().map(|phase| (*phase).to_owned()).collect();
    Filter { phases: Names::parse(&phases).unwrap(), ..Filter::default() }
}

/// Numbers of the windows in a phase.
fn windows(root: &Path, phases: &[&str]) -> Vec<i64> {
    let filter = filter(phases);
    let data = DataSet::open(root, &filter).unwrap();
    // The clock goes on by itself where the machine was suspended, behind these phases.
    let number = |start: i64| (start - fixture::STARTED) / 1_000_000;
    data.windows(&filter).iter().map(|window| number(window.start.0)).collect()
}

#[test]
fn phases_choose_the_windows_after_their_begin_up_to_their_end() {
    let root = tempfile::tempdir().unwrap();
    let [written, compacted, divided] = ["a", "b", "c"].map(|name| root.path().join(name));
    fixture::write(&written, Policy::default());
    compact::beside(&written, &compacted, None).unwrap();
    reattribute::run(&compacted, &divided, None, |run| Ok::<_, DataSetError>(run.policy.clone())).unwrap();
    for root in [&written, &compacted, &divided] {
        assert_eq!(windows(root, &["load"]), [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(windows(root, &["parse"]), [5, 6, 8, 9]);
        assert_eq!(windows(root, &["load/*"]), [5, 6, 8, 9]);
        assert_eq!(windows(root, &["parse", "load"]), [3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(windows(root, &["serve"]).len(), 10);
        assert_eq!(windows(root, &[]).len() as u64, fixture::WINDOWS);
    }
    assert!(audit::is_well(&audit::run(&divided).unwrap()));
}

#[test]
fn energy_of_phases_adds_up_to_that_of_the_run() {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    let energy = |filter: &Filter| {
        let profile = Profile::read(root.path(), &Filter { no_infer: true, ..filter.clone() }, None).unwrap();
        assert_eq!(profile.overview.attributed, profile.energy());
        profile.energy().0
    };
    let (load, parse) = (energy(&filter(&["load"])), energy(&filter(&["parse"])));
    assert!(0 < parse && parse < load && load < energy(&Filter::default()));
    assert_eq!(energy(&filter(&["load", "parse"])), load);
}

#[test]
fn a_phase_that_no_run_has_is_an_error_that_names_those_that_there_are() {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    let error = DataSet::open(root.path(), &filter(&["lode"])).unwrap_err().to_string();
    assert!(error.ends_with("no run has it; there are: load, load/parse, serve"), "{error}");
}

#[test]
fn what_happened_has_its_time_and_attributes() {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    let data = DataSet::open(root.path(), &Filter::default()).unwrap();
    let events = data.events(0, 10).unwrap();
    assert_eq!(events.len(), 1);
    let (at, rows) = (events[0].at.0 - fixture::STARTED, events[0].attributes.as_ref().unwrap());
    assert_eq!((events[0].name.raw(), rows.raw(), at), ("loaded", "rows=7", 9_998_000));
    assert!(data.events(0, 0).unwrap().is_empty());
    let phase = &data.catalog.runs[0].phases[0];
    let seconds = |moment: i64| (moment - fixture::STARTED) / 1_000_000;
    assert_eq!((seconds(phase.begun.0), phase.ended.map(|ended| seconds(ended.0))), (3, Some(10)));
}
