//! Tests comparisons of data sets that differ in how energy was divided, made from the same events.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::super::{
    Format,
    diff::{self, Choices, CompareBy, Comparison, FailOn, Gate, Per, View},
    measure::Measure,
    profile::{Filter, Names},
};
use crate::{
    dataset::{OutputDirectory, ParquetOutput, fixture::*},
    events::RunInfo,
    model::policy::{IdlePolicy, Policy, WeightUnit},
};

/// Sides that differ are attributed alike in `again_in`, if it is given.
fn choices(again_in: Option<&Path>) -> Choices {
    Choices {
        measure: Measure::Energy,
        by: CompareBy::Method,
        view: View::Itself,
        per: Per::Time,
        margin: 1.0,
        fail_above: Some(0.05),
        fail_on: FailOn::Total,
        top: None,
        format: Format::Json,
        again_in: again_in.map(Path::to_owned),
    }
}

fn compare(a: &TempDir, b: &TempDir, again_in: Option<&Path>) -> Comparison {
    diff::run(a.path(), b.path(), &Filter::default(), None, &choices(again_in)).unwrap()
}

fn gate(found: &Comparison) -> Gate {
    found.gate(&choices(None))
}

fn written(policy: Policy) -> TempDir {
    written_as(policy, |_| {})
}

fn written_as(policy: Policy, change: impl Fn(&mut RunInfo)) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    add(root.path(), policy, change);
    root
}

fn add(root: &Path, policy: Policy, change: impl Fn(&mut RunInfo)) {
    let directory = OutputDirectory::create(root, None).unwrap();
    play_run(ParquetOutput::new(directory, FLUSH_NS), policy, change);
}

fn separate(idle_milliwatts: u64) -> Policy {
    Policy { idle_milliwatts, ..Policy::default() }
}

fn of_idle(idle: IdlePolicy) -> Policy {
    Policy { idle, ..Policy::default() }
}

/// Policies of A and of B, what the notices say of the difference, and the policy that both get.
type Case = (Policy, Policy, &'static str, Policy);

fn cases() -> [Case; 8] {
    let calibration = Some(calibrated());
    let spread = of_idle(IdlePolicy::Spread);
    let by_cycles = Policy { weight_unit: WeightUnit::Cycles, ..separate(5_000) };
    let calibrated = Policy { calibration, ..Policy::default() };
    [
        (separate(5_000), spread.clone(), "separate in A, spread in B", separate(5_000)),
        (spread.clone(), of_idle(IdlePolicy::Active), "spread in A, active in B", spread.clone()),
        (separate(0), Policy { smt_permille: 2_000, ..separate(0) }, "1.125 in A, 2.000 in B", separate(0)),
        (separate(5_000), by_cycles.clone(), "time in A, cycles in B", separate(5_000)),
        // Cycles that were not counted cannot be had afterwards.
        (by_cycles.clone(), separate(5_000), "cycles in A, time in B", separate(5_000)),
        (separate(5_000), separate(9_000), "10.00 W in A, 18.00 W in B", separate(5_000)),
        (calibrated.clone(), separate(0), "1.50 W in A, none in B", calibrated),
        (by_cycles, Policy { smt_permille: 1_000, ..spread }, "separate in A, spread in B", separate(5_000)),
    ]
}

#[test]
fn sides_that_were_divided_differently_are_attributed_alike() {
    for (of_a, of_b, words, expected) in cases() {
        let (a, b, temporary) = (written(of_a), written(of_b), tempfile::tempdir().unwrap());
        let before = (files(a.path()), files(b.path()));
        let found = compare(&a, &b, Some(temporary.path()));
        assert!(found.are_comparable, "{words}: {:?}", found.warnings);
        assert_eq!(found.warnings, compare(&a, &a, None).warnings, "{words}: no warning of how they were divided");
        assert_eq!(gate(&found), Gate::Passed, "{words}");
        let notices = found.notices.join("\n");
        assert!(notices.contains(words) && notices.contains("the data sets are unchanged"), "{notices}");
        assert_eq!((found.total.change.difference(), found.total.change.verdict.name()), (0.0, "no change"), "{words}");
        for row in &found.rows {
            assert_eq!(row.a.by_window, row.b.by_window, "{words}, {:?}", row.key);
        }
        // What both got is what a run with that policy has.
        let at_once = written(expected);
        assert_eq!(found.a.total.energy, compare(&at_once, &at_once, None).a.total.energy, "{words}");
        assert_eq!((found.a.data.as_path(), found.b.data.as_path()), (a.path(), b.path()), "names of the data sets");
        assert_eq!((files(a.path()), files(b.path())), before, "{words}");
        assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "{words}: something was left behind");
    }
}

#[test]
fn graphs_of_a_page_are_of_what_was_attributed_alike() {
    let (a, b) = (written(separate(5_000)), written(of_idle(IdlePolicy::Spread)));
    let temporary = tempfile::tempdir().unwrap();
    let found = compare(&a, &b, Some(temporary.path()));
    let page = found.page(&choices(None), &Filter::default(), None).unwrap();
    let page = String::from_utf8(page).unwrap();
    let (json, _) = page.split_once("id=\"figures\">").unwrap().1.split_once("</script>").unwrap();
    let figures: serde_json::Value = serde_json::from_str(json).unwrap();
    for (own, side) in [("self_a", &found.a), ("self_b", &found.b)] {
        let sum: u64 = figures["pair"][own].as_array().unwrap().iter().map(|amount| amount.as_u64().unwrap()).sum();
        assert_eq!(sum, side.total.energy.0, "{own}");
    }
    assert_ne!(found.b.total.energy, compare(&b, &b, None).b.total.energy, "B was attributed again");
}

#[test]
fn sides_are_compared_as_they_were_attributed_if_that_is_asked_for() {
    for (of_a, of_b, words, _) in cases() {
        let found = compare(&written(of_a), &written(of_b), None);
        assert_eq!((gate(&found), found.notices.len()), (Gate::NotComparable, 0), "{words}");
        let warnings = found.warnings.join("\n");
        assert!(warnings.contains(words) && warnings.contains("--as-attributed"), "{warnings}");
        assert_ne!(found.a.total.by_window, found.b.total.by_window, "{words}");
    }
}

#[test]
fn sides_that_are_alike_are_read_once_and_need_no_temporary_file() {
    let (a, absent) = (written(separate(5_000)), Path::new("/absent"));
    for b in [written(separate(5_000)), written(separate(5_100))] {
        let found = compare(&a, &b, Some(absent));
        assert!(found.are_comparable && found.notices.is_empty(), "{:?}", found.notices);
        assert_eq!(found.warnings, compare(&a, &b, None).warnings);
    }
}

/// How B differs from A, and words of the reason.
type Refusal = (Policy, fn(&mut RunInfo), &'static str);

#[test]
fn sides_that_cannot_be_attributed_alike_stay_refused_and_the_reason_is_said() {
    let cases: [Refusal; 3] = [
        (separate(9_000), |run| run.host = "other".into(), "idle power is a machine's own"),
        (of_idle(IdlePolicy::Spread), |run| run.energy_source = "model".into(), "something else was measured"),
        (of_idle(IdlePolicy::Spread), |run| run.cpu_model = "other".into(), "something else was measured"),
    ];
    let (a, temporary) = (written(separate(5_000)), tempfile::tempdir().unwrap());
    for (policy, change, reason) in cases {
        let b = written_as(policy, change);
        expect_refused(&a, &b, temporary.path(), reason);
    }
    let b = written(of_idle(IdlePolicy::Spread));
    expect_refused(&a, &b, Path::new("/absent\n"), "in /absent\\x0a: No such file or directory");
    // What energy was divided by was not copied.
    fs::remove_dir_all(b.path().join("weights")).unwrap();
    expect_refused(&a, &b, temporary.path(), "table weights");
}

#[track_caller]
fn expect_refused(a: &TempDir, b: &TempDir, temporary: &Path, reason: &str) {
    let (found, as_attributed) = (compare(a, b, Some(temporary)), compare(a, b, None));
    assert_eq!((gate(&found), found.notices.len()), (Gate::NotComparable, 0), "{reason}");
    let said = found.warnings.iter().find(|warning| warning.contains("not attributed alike"));
    assert!(said.is_some_and(|said| said.contains(reason)), "{reason}: {:?}", found.warnings);
    assert_eq!(found.b.total.by_window, as_attributed.b.total.by_window, "{reason}: figures are as they were");
}

#[test]
fn of_two_machines_neither_gets_the_idle_power_of_the_other() {
    let elsewhere = |run: &mut RunInfo| run.host = "other".into();
    let (a, temporary) = (written(separate(5_000)), tempfile::tempdir().unwrap());
    let b = written_as(of_idle(IdlePolicy::Spread), elsewhere);
    let found = compare(&a, &b, Some(temporary.path()));
    assert!(found.are_comparable, "both can be spread: {:?}", found.warnings);
    assert!(found.notices.join("\n").contains("idle policy spread"), "{:?}", found.notices);
    assert_eq!(found.a.total.by_window, found.b.total.by_window);
}

#[test]
fn runs_that_are_not_selected_are_neither_judged_nor_attributed() {
    let (a, temporary) = (written(separate(5_000)), tempfile::tempdir().unwrap());
    let b = written(of_idle(IdlePolicy::Spread));
    add(b.path(), separate(9_000), |run| {
        run.run_id = "another".into();
        run.host = "other".into();
    });
    let filter = Filter { runs: Names::parse(&[RUN_ID.to_owned()]).unwrap(), ..Filter::default() };
    let found = diff::run(a.path(), b.path(), &filter, None, &choices(Some(temporary.path()))).unwrap();
    assert!(found.are_comparable, "{:?}", found.warnings);
    assert_eq!((found.b.runs.len(), found.b.windows.len()), (1, found.a.windows.len()));
    assert_eq!(found.a.total.by_window, found.b.total.by_window);
}
