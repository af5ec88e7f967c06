use std::fs;

use super::super::{
    profile::{App, Filter, Moment, Names, OUTSIDE_APP, Profile},
    ranking,
};
use crate::{attribution::window_report::Category, dataset::fixture::*, model::policy::Policy, model::units::*};

fn written() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    root
}

fn read(root: &tempfile::TempDir, filter: &Filter) -> Profile {
    Profile::read(root.path(), filter, None).unwrap()
}

#[test]
fn entries_sum_to_what_the_machines_audit_says_went_to_targets() {
    let profile = read(&written(), &Filter::default());
    let overview = &profile.overview;
    assert!(profile.energy().0 > 0 && profile.catalog.processes.len() > 1);
    assert_eq!(profile.energy(), overview.attributed);
    let rest = overview.static_share.saturating_add(overview.unattributed_total());
    assert_eq!(overview.measured, overview.attributed.saturating_add(rest));
    assert_eq!((overview.windows, overview.duration_ns), (WINDOWS, WINDOWS * SECOND));
    assert_eq!(profile.threads.iter().map(|thread| thread.energy).sum::<MicroJoules>(), overview.attributed);
    assert_eq!(overview.qualities.values().map(|sums| sums.energy).sum::<MicroJoules>(), overview.attributed);
    let jvm = overview.jvms.values().map(|jvm| jvm.whole).sum::<MicroJoules>();
    assert_eq!(overview.jvms.values().flat_map(|jvm| jvm.parts).sum::<MicroJoules>(), jvm);
}

#[test]
fn parts_of_a_data_set_sum_to_the_whole() {
    let root = written();
    let whole = read(&root, &Filter::default());
    let middle = Moment::Into(std::time::Duration::from_secs(12));
    let parts = |filters: Vec<Filter>| -> Vec<Profile> { filters.iter().map(|filter| read(&root, filter)).collect() };
    let by_time =
        vec![Filter { until: Some(middle), ..Filter::default() }, Filter { since: Some(middle), ..Filter::default() }];
    let by_process: Vec<Filter> = [1, 2, 3].map(|pid| Filter { pids: vec![Pid(pid)], ..Filter::default() }).into();
    let by_category: Vec<Filter> =
        Category::ALL.map(|category| Filter { categories: vec![category], ..Filter::default() }).into();
    for filters in [by_time.clone(), by_process, by_category] {
        let parts = parts(filters);
        assert!(parts.iter().filter(|part| part.energy().0 > 0).count() > 1);
        assert_eq!(parts.iter().map(Profile::energy).sum::<MicroJoules>(), whole.energy());
        let samples = |profile: &Profile| profile.entries.iter().map(|entry| entry.samples).sum::<u64>();
        assert_eq!(parts.iter().map(samples).sum::<u64>(), samples(&whole));
    }
    let measured = parts(by_time).iter().map(|part| part.overview.measured).sum::<MicroJoules>();
    assert_eq!(measured, whole.overview.measured, "windows are divided by time too");
}

#[test]
fn a_method_chooses_paths_and_leaves_threads_whole() {
    let root = written();
    let whole = read(&root, &Filter::default());
    let methods = Names::parse(&["*.m100".to_owned()]).unwrap();
    let some = read(&root, &Filter { methods, ..Filter::default() });
    assert!(0 < some.energy().0 && some.energy() < whole.energy());
    assert_eq!(some.threads, whole.threads);
    for entry in &some.entries {
        assert!(some.catalog.paths.frames_of(entry.path).any(|frame| frame.name == "m100"));
    }
}

#[test]
fn the_apps_view_moves_energy_and_loses_none() {
    let root = written();
    let whole = read(&root, &Filter::default());
    let app = App::of(&["com.example".to_owned()]);
    let seen = Profile::read(root.path(), &Filter::default(), app.as_ref()).unwrap();
    assert_eq!(seen.energy(), whole.energy());
    let paths = &seen.catalog.paths;
    let is_app = |name: &str| name.starts_with('m') || name == OUTSIDE_APP;
    assert!(seen.entries.iter().all(|entry| paths.frames_of(entry.path).all(|frame| is_app(frame.name.raw()))));
}

#[test]
fn a_row_whose_stack_is_missing_is_an_error_and_no_panic() {
    let root = written();
    fs::remove_dir_all(root.path().join("stacks")).unwrap();
    let message = Profile::read(root.path(), &Filter::default(), None).unwrap_err().to_string();
    assert!(message.contains("is not in table stacks"), "{message}");
}

/// Of the last flush a crash took table `windows`, which is written last.
#[test]
fn rows_of_a_window_that_a_crash_took_count_for_nothing() {
    let root = written();
    let whole = read(&root, &Filter::default());
    let mut windows = files(root.path()).into_iter().map(|(name, _)| name).filter(|name| name.starts_with("windows"));
    fs::remove_file(root.path().join(windows.next_back().unwrap())).unwrap();
    let cut = read(&root, &Filter::default());
    assert!(cut.overview.windows < WINDOWS && cut.overview.left_out.energy.0 > 0);
    assert_eq!(cut.energy(), cut.overview.attributed);
    assert_eq!(cut.energy().saturating_add(cut.overview.left_out.energy), whole.energy());
    assert_eq!(cut.overview.qualities.values().map(|sums| sums.energy).sum::<MicroJoules>(), cut.energy());
    assert_eq!(whole.overview.left_out.energy.0, 0);
}

#[test]
fn a_second_counter_of_the_same_energy_is_told() {
    let (ours, theirs) = read(&written(), &Filter::default()).overview.checked.unwrap();
    assert!(ours.0 > 0 && theirs.0 > 0 && ours != theirs);
}

#[test]
fn a_host_that_was_recorded_twice_at_once_has_its_time_once_and_a_warning() {
    let root = written();
    write_as(root.path(), Policy::default(), "node-1-20260301T235954-4712");
    let twice = read(&root, &Filter::default()).overview;
    assert_eq!((twice.windows, twice.duration_ns, twice.overlap_ns), (2 * WINDOWS, WINDOWS * SECOND, WINDOWS * SECOND));
    let warnings = ranking::context::warnings(&twice).join("\n");
    assert!(warnings.contains("overlap: for 30.0 s"), "{warnings}");
    let one = Filter { runs: Names::parse(&[RUN_ID.to_owned()]).unwrap(), ..Filter::default() };
    let once = read(&root, &one).overview;
    assert_eq!((once.duration_ns, once.overlap_ns), (WINDOWS * SECOND, 0));
    assert_eq!(once.measured.saturating_add(once.measured), twice.measured, "told, because it counts twice");
}
