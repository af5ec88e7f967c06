//! Tests `diff` on data sets whose difference is known.

use std::path::{Path, PathBuf};

use joular_data::{
    events::{Event, RunEnd, RunInfo},
    model::{
        domain::{Meter, Reading},
        policy::{IdlePolicy, Policy, WeightUnit},
    },
};
use joular_tests::{dataset::DataSet, process::Finished};
use serde_json::Value;

use crate::{bad_sets, expect_usage_error, joular_bpf};

const REGRESSION: Option<i32> = Some(8);
const UNDECIDED: Option<i32> = Some(9);

fn diff(a: &Path, b: &Path, options: &[&str]) -> Finished {
    joular_bpf(&[&["diff", a.to_str().unwrap(), b.to_str().unwrap()], options].concat())
}

fn json(a: &Path, b: &Path, options: &[&str]) -> Value {
    let finished = diff(a, b, &[&["--json"], options].concat());
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

fn sum(rows: &Value, column: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[column].as_u64().unwrap()).sum()
}

/// Four runs of the recording on a machine that draws so many watts when busy, and
/// a little that differs by run.
fn runs(dir: &Path, watts: u64) -> PathBuf {
    runs_of(dir, watts, |_| {})
}

/// The same, of runs that were made a little differently.
pub fn runs_of(dir: &Path, watts: u64, change: impl Fn(&mut RunInfo)) -> PathBuf {
    std::fs::create_dir_all(dir).unwrap();
    for run in 0..4_u64 {
        let one = dir.join(format!("run {run}"));
        bad_sets::replay(&one, |mut event| {
            match &mut event {
                Event::RunStarted(info) => {
                    info.run_id = format!("example-{run}-1");
                    for domain in &mut info.domains {
                        domain.meter = Meter::Power;
                    }
                    change(info);
                }
                Event::Energy(read) => read.readings.fill(Reading::PowerUw(watts * 1_000_000 + run * 10_000)),
                _ => {}
            }
            Some(event)
        });
        copy(&one, &dir.join("all"));
    }
    dir.join("all")
}

/// Merges data sets, as their users do.
pub fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else if entry.file_name().to_str().unwrap().ends_with(".parquet") {
            std::fs::create_dir_all(to).unwrap();
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn a_data_set_does_not_differ_from_itself_and_its_rows_sum_to_it() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("a");
    bad_sets::good(&data);
    for by in ["method", "class", "package", "process", "thread", "category", "kind"] {
        let figures = [&["--per", "time"][..], &["--per", "cpu"], &["--per", "run"], &["--per", "none"]];
        for per in figures.into_iter().chain([&["--work-a", "7", "--work-b", "7"][..]]) {
            let found = json(&data, &data, &[&["--by", by], per].concat());
            for column in ["a_uj", "b_uj", "a_samples"] {
                assert_eq!(sum(&found["rows"], column), found["total"][column].as_u64().unwrap(), "{by}, {column}");
            }
            assert_eq!(found["total"]["change"], 0.0);
            for row in found["rows"].as_array().unwrap() {
                assert!(!matches!(row["verdict"].as_str().unwrap(), "more" | "less"), "{by}: {row}");
            }
            assert_eq!(found["a"]["label"], "modelled");
        }
    }
    // It has a few seconds only.
    assert_eq!(diff(&data, &data, &["--fail-above", "0"]).code(), UNDECIDED);
}

#[test]
fn whole_runs_of_commands_are_compared_by_joules_of_a_run_unless_told_otherwise() {
    let parent = tempfile::tempdir().unwrap();
    let (command, other) = (parent.path().join("command"), parent.path().join("other"));
    bad_sets::good(&other);
    bad_sets::replay(&command, |mut event| {
        if let Event::RunEnded(end) = &mut event {
            RunEnd::OF_COMMAND.clone_into(&mut end.reason);
        }
        Some(event)
    });
    for (a, b, options, unit) in [
        (&command, &command, &[][..], "J/run"),
        (&command, &command, &["--per", "time"], "W"),
        (&command, &command, &["--work-a", "7", "--work-b", "7"], "J/unit"),
        (&command, &command, &["--until", "1s"], "W"),
        (&command, &other, &[], "W"),
        (&other, &other, &[], "W"),
    ] {
        assert_eq!(json(a, b, options)["unit"], unit, "{options:?}");
    }
}

#[test]
fn parts_are_compared_as_they_were_asked_for() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("a");
    bad_sets::good(&data);
    let whole = json(&data, &data, &[]);
    let heavy = json(&data, &data, &["--method", "Hot.heavy"]);
    let row = |found: &Value, name: &str| {
        let rows = found["rows"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {found}"))
    };
    assert_eq!(row(&heavy, "Hot.heavy")["a_uj"], row(&whole, "Hot.heavy")["a_uj"]);
    assert!(heavy["total"]["a_uj"].as_u64() < whole["total"]["a_uj"].as_u64());
    // Main calls both, and takes nothing itself.
    let total = json(&data, &data, &["--view", "total"]);
    assert!(row(&total, "Hot.main")["a_uj"].as_u64() > row(&total, "Hot.heavy")["a_uj"].as_u64());
    assert_eq!(total["total"], whole["total"]);
    let app = json(&data, &data, &["--app", "Hot"]);
    assert_eq!(app["total"]["a_uj"], whole["total"]["a_uj"]);
}

#[test]
fn several_runs_tell_a_change_and_a_gate_stops_it() {
    let parent = tempfile::tempdir().unwrap();
    let (a, b) = (runs(&parent.path().join("a"), 30), runs(&parent.path().join("b"), 20));
    let gate = ["--per", "none", "--fail-above", "5%"];
    // Fewer joules are not a regression, more of them are.
    let found = json(&a, &b, &["--per", "none"]);
    assert_eq!((&found["intervals_from"], &found["a"]["runs"]), (&"runs".into(), &4.into()));
    assert_eq!(found["total"]["verdict"], "less", "{}", found["total"]);
    assert_eq!(diff(&a, &b, &gate).code(), Some(0));
    let finished = diff(&b, &a, &gate);
    assert_eq!(finished.code(), REGRESSION, "{finished:?}");
    assert!(finished.stderr.contains("--fail-above"), "{finished:?}");
    for name in ["total", "row", "method"] {
        assert_eq!(diff(&b, &a, &[&gate[..], &["--fail-on", name]].concat()).code(), REGRESSION, "{name}");
    }
    assert_eq!(diff(&b, &a, &["--per", "none", "--fail-above", "500%"]).code(), Some(0));
}

#[test]
fn joules_per_unit_of_work_are_judged_if_each_run_has_a_count() {
    let parent = tempfile::tempdir().unwrap();
    let (a, b) = (runs(&parent.path().join("a"), 30), runs(&parent.path().join("b"), 30));
    let work = |a: &'static str, b: &'static str| ["--work-a", a, "--work-b", b, "--fail-above", "5%"];
    // The runs need alike, and those of B do half of the work.
    let half = work("100,101,99,100", "50,51,49,50");
    let finished = diff(&a, &b, &half);
    assert_eq!(finished.code(), REGRESSION, "{finished:?}");
    let same = json(&a, &b, &work("100,101,99,100", "99,100,100,101"));
    assert_ne!(same["total"]["verdict"], "more", "{same}");
    // Of how much work varies nothing is known, so nothing can be said.
    let one = diff(&a, &b, &work("400", "200"));
    assert_eq!(one.code(), UNDECIDED, "{one:?}");
    assert!(one.stdout.contains("not enough runs") && one.stdout.contains("--work-a 100,98,101"), "{one:?}");
    let too_few = diff(&a, &b, &work("100,101,99", "50,51,49,50"));
    assert_eq!(too_few.code(), Some(1), "{too_few:?}");
    assert!(too_few.stderr.contains("--work-a has 3 counts of work") && too_few.stderr.contains("has 4 runs"));
}

#[test]
fn joules_of_single_runs_are_not_judged() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("a");
    bad_sets::good(&data);
    for per in ["run", "none"] {
        let finished = diff(&data, &data, &["--per", per, "--fail-above", "0"]);
        assert_eq!(finished.code(), UNDECIDED, "{finished:?}");
        assert!(finished.stdout.contains("at least 3 runs on each side"), "{finished:?}");
    }
}

#[test]
fn every_output_says_how_the_energy_came_about() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("a");
    bad_sets::good(&data);
    for options in [&[][..], &["--json"], &["--csv"], &["--markdown"]] {
        let finished = diff(&data, &data, options);
        assert!(finished.stdout.contains("modelled"), "{options:?}: {finished:?}");
        assert!(finished.stdout.contains("Hot.heavy"), "{options:?}: {finished:?}");
    }
}

#[test]
fn unlike_energies_are_warned_of() {
    let parent = tempfile::tempdir().unwrap();
    let (a, b) = (parent.path().join("a"), parent.path().join("b"));
    bad_sets::good(&a);
    bad_sets::replay(&b, |mut event| {
        if let Event::RunStarted(run) = &mut event {
            run.host = "other".into();
            run.energy_source = "rapl".into();
        }
        Some(event)
    });
    let warnings = json(&a, &b, &[])["warnings"].to_string();
    for words in ["hosts differ: example in A, other in B", "energy is from different sources: model in A, rapl in B"] {
        assert!(warnings.contains(words), "{warnings}");
    }
    // However the figures are, their difference is not the code's.
    let finished = diff(&a, &b, &["--fail-above", "5%"]);
    assert_eq!(finished.code(), UNDECIDED, "{finished:?}");
    assert!(finished.stderr.contains("made differently"), "{finished:?}");
}

#[test]
fn sides_that_divide_energy_differently_are_attributed_alike_unless_told_otherwise() {
    let parent = tempfile::tempdir().unwrap();
    let in_parent = |name: &str| parent.path().join(name);
    // The policy of runs, as they were recorded on the same host from the same events.
    let of = |policy: Policy| move |run: &mut RunInfo| run.policy = policy.clone();
    let separate = Policy { idle_milliwatts: 4_000, ..Policy::default() };
    let spread = Policy { idle: IdlePolicy::Spread, smt_permille: 1_500, ..Policy::default() };
    let by_cycles = Policy { weight_unit: WeightUnit::Cycles, ..separate.clone() };
    let a = runs_of(&in_parent("a"), 30, of(separate));
    let before = DataSet::at(&a).files().unwrap();
    let gate = ["--per", "none", "--fail-above", "5%", "--margin", "5%"];
    for (name, policy, words) in [
        ("idle", spread, "idle policies differ: separate in A, spread in B"),
        ("cycles", by_cycles, "energy is divided by different weights: time in A, cycles in B"),
    ] {
        let b = runs_of(&in_parent(name), 30, of(policy));
        let of_b = DataSet::at(&b).files().unwrap();
        let finished = diff(&a, &b, &gate);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        let found = json(&a, &b, &gate);
        assert_eq!(
            (&found["total"]["verdict"], &found["total"]["change"]),
            (&"no change".into(), &0.0.into()),
            "{name}"
        );
        assert_eq!((&found["are_comparable"], &found["warnings"]), (&true.into(), &Value::Array(Vec::new())), "{name}");
        for said in [finished.stdout, found["notices"].to_string(), diff(&a, &b, &["--csv"]).stderr] {
            assert!(said.contains(words) && said.contains("the data sets are unchanged"), "{name}: {said}");
        }
        let as_attributed = diff(&a, &b, &[&gate[..], &["--as-attributed"]].concat());
        assert_eq!(as_attributed.code(), UNDECIDED, "{as_attributed:?}");
        assert!(as_attributed.stdout.contains(&format!("warning: {words}")), "{as_attributed:?}");
        assert!(DataSet::at(&a).files().unwrap() == before && DataSet::at(&b).files().unwrap() == of_b, "{name}");
    }
    // The idle power of one machine is not another's.
    let elsewhere = runs_of(&in_parent("elsewhere"), 30, |run| {
        run.host = "other".into();
        run.policy.idle_milliwatts = 9_000;
    });
    let finished = diff(&a, &elsewhere, &gate);
    assert_eq!(finished.code(), UNDECIDED, "{finished:?}");
    assert!(finished.stdout.contains("A and B are not attributed alike: idle power"), "{finished:?}");
}

#[test]
fn a_baseline_stops_what_a_comparison_with_its_data_set_stops() {
    let parent = tempfile::tempdir().unwrap();
    let (a, b) = (runs(&parent.path().join("a"), 30), runs(&parent.path().join("b"), 20));
    let other = runs_of(&parent.path().join("other"), 30, |run| run.cpu_model = "other".to_owned());
    let file = parent.path().join("baseline.json");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let saved = joular_bpf(&["baseline", "save", &path(&b), &path(&file), "--work", "10,11,10,9"]);
    assert_eq!((saved.code(), saved.stdout.as_str()), (Some(0), ""), "{saved:?}");
    let junit = parent.path().join("energy.xml");
    let check = |data: &Path, options: &[&str]| {
        let command = ["baseline", "check", &path(&file), &path(data), "--fail-above", "5%", "--junit", &path(&junit)];
        joular_bpf(&[&command[..], options].concat())
    };
    for (data, options, code, failures) in [
        (&a, &[][..], REGRESSION, 1),
        (&b, &[], Some(0), 0),
        (&b, &["--work", "5,5,5,5"], REGRESSION, 1),
        (&a, &["--fail-on", "phase"], UNDECIDED, 0),
        (&other, &[], UNDECIDED, 0),
    ] {
        let finished = check(data, &[&["--markdown"], options].concat());
        assert_eq!(finished.code(), code, "{options:?}: {finished:?}");
        let first = match code {
            Some(0) => "**Passed:** ",
            Some(8) => "**Failed:** ",
            _ => "**Undecided:** ",
        };
        assert!(finished.stdout.starts_with(first), "{finished:?}");
        let xml = std::fs::read_to_string(&junit).unwrap();
        assert_eq!(xml.matches("<failure ").count(), failures, "{xml}");
    }
    let found: Value = serde_json::from_str(&check(&a, &["--json"]).stdout).unwrap();
    assert_eq!((&found["is_above"], &found["a"]["runs"]), (&true.into(), &4.into()));
    let too_few = check(&a, &["--work", "1,2"]);
    assert!(too_few.code() == Some(1) && too_few.stderr.contains("--work has 2 counts of work"), "{too_few:?}");
    std::fs::write(&file, "{\"version\": 1}").unwrap();
    let foreign = check(&a, &[]);
    assert!(foreign.code() == Some(1) && foreign.stderr.contains("is not a baseline"), "{foreign:?}");
}

#[test]
fn a_baseline_of_several_sessions_tells_a_change_from_what_differs_between_sessions() {
    let parent = tempfile::tempdir().unwrap();
    // Four runs each, recorded at other times; one draws as much more as a warm day may take.
    let session = |name: &str, watts| {
        runs_of(&parent.path().join(name), watts, |run| {
            run.run_id = format!("{name}-{}", run.run_id);
            run.started.0 += i64::from(name.as_bytes()[0]) * 3_600_000_000;
        })
    };
    let [first, second, third] = [("a", 30), ("b", 31), ("c", 30)].map(|(name, watts)| session(name, watts));
    let [warm, more] = [("d", 31), ("e", 45)].map(|(name, watts)| session(name, watts));
    let file = parent.path().join("baseline.json");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let save = |data: &Path, options: &[&str]| {
        joular_bpf(&[&["baseline", "save", &path(data), &path(&file), "--session"], options].concat())
    };
    let verdict = |data: &Path| {
        let found = joular_bpf(&["baseline", "check", &path(&file), &path(data), "--json"]);
        let found: Value = serde_json::from_str(&found.stdout).unwrap_or_else(|error| panic!("{error}: {found:?}"));
        (found["total"]["verdict"].as_str().unwrap().to_owned(), found["warnings"].to_string())
    };
    let gate = |data: &Path| joular_bpf(&["baseline", "check", &path(&file), &path(data), "--fail-above", "5%"]).code();
    // The first session begins the file, and says what is missing.
    assert_eq!(save(&first, &["--by", "class"]).code(), Some(0));
    for data in [&warm, &more] {
        let (verdict, warnings) = verdict(data);
        assert_eq!(verdict, "not enough sessions");
        assert!(warnings.contains("Add 2 sessions or more") && warnings.contains("--session"), "{warnings}");
    }
    assert_eq!((gate(&warm), gate(&more)), (Some(0), REGRESSION));
    for (data, options, code, words) in [
        (&second, &["--by", "method"][..], 2, "a baseline of --by class"),
        (&second, &[], 0, ""),
        (&second, &[], 1, "already"),
        (&third, &["--keep-sessions", "3"], 0, ""),
    ] {
        let saved = save(data, options);
        assert!(saved.code() == Some(code) && saved.stderr.contains(words), "{saved:?}");
    }
    assert_eq!((verdict(&warm).0.as_str(), verdict(&more).0.as_str()), ("not certain", "more"));
    assert_eq!((gate(&warm), gate(&more)), (Some(0), REGRESSION));
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for (options, word) in [
        (&["--work-a", "1"][..], "--work-b"),
        (&["--by", "line"], "--by"),
        (&["--fail-on", "row"], "--fail-above"),
        (&["--json", "--csv"], "--csv"),
        (&["--fail-above", "much"], "--fail-above"),
    ] {
        expect_usage_error(&[&["diff", "a", "b"], options].concat(), &[word]);
    }
}
