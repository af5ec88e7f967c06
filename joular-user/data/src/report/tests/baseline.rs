//! Tests that a check against a baseline says what a comparison of the two data sets says, and that
//! JUnit XML of it is what CI systems read.

use std::{fs, path::Path};

use quick_xml::{Reader, events::Event as Xml};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::{
    Format,
    diff::{
        self, Choices, CompareBy, Comparison, FailOn, Gate, Per, View, Work,
        baseline::{self, Baseline, BaselineError, Keep},
    },
    measure::Measure,
    profile::{Filter, Names, Profile},
};
use crate::{
    dataset::{OutputDirectory, ParquetOutput, fixture::*},
    events::{Event, RunInfo},
    model::{
        counter::Counter,
        domain::Reading,
        policy::{IdlePolicy, Policy},
    },
};

const DAY_US: i64 = 86_400_000_000;

pub(super) fn choices(by: CompareBy, per: Per) -> Choices {
    Choices {
        measure: Measure::Energy,
        by,
        view: View::Itself,
        per,
        margin: 0.05,
        fail_above: Some(0.05),
        fail_on: FailOn::Total,
        top: None,
        format: Format::Json,
        again_in: None,
    }
}

pub(super) fn keep(top: Option<usize>) -> Keep {
    Keep { part: json!({}), work: Vec::new(), top, session: None, sessions: None }
}

/// Runs of which each draws so many percent of what the fixture draws.
fn runs(percents: &[u64], change: impl Fn(&mut RunInfo)) -> TempDir {
    runs_from(0, percents, Policy::default(), change)
}

/// One run a day, from a day on.
pub(super) fn runs_from(day: i64, percents: &[u64], policy: Policy, change: impl Fn(&mut RunInfo)) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (percent, run) in percents.iter().zip(day..) {
        let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), FLUSH_NS);
        play_changed(output, policy.clone(), |event| match event {
            Event::RunStarted(info) => {
                info.run_id = format!("run-{run}");
                info.started.0 += run * DAY_US;
                change(info);
            }
            Event::Window(window) => window.wall_start.0 += run * DAY_US,
            Event::Energy(read) => {
                for reading in &mut read.readings {
                    if let Reading::CounterUj(total) = reading {
                        *total = *total * percent / 100;
                    }
                }
            }
            _ => {}
        });
    }
    root
}

fn saved(data: &Path, filter: &Filter, choices: &Choices, keep: &Keep, to: &TempDir) -> Baseline {
    let path = to.path().join("baseline.json");
    fs::write(&path, baseline::save(data, filter, None, choices, keep).unwrap()).unwrap();
    Baseline::read(&path).unwrap()
}

pub(super) fn shown(comparison: &Comparison, choices: &Choices) -> Value {
    let mut out = Vec::new();
    comparison.write(choices, None, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// Whether two values are the same but for the last digits of numbers that are not integers.
fn expect_same(at: &str, one: &Value, other: &Value) {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len(), "{at}");
            one.iter().zip(other).for_each(|(one, other)| expect_same(at, one, other));
        }
        (Value::Object(one), Value::Object(other)) => {
            assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>(), "{at}");
            one.iter().for_each(|(key, value)| expect_same(&format!("{at}.{key}"), value, &other[key]));
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            let size = one.abs().max(other.abs());
            assert!((one - other).abs() <= 1e-9 * size + 1e-12, "{at}: {one} {other}");
        }
        (one, other) => assert_eq!(one, other, "{at}"),
    }
}

#[test]
fn a_check_says_what_a_comparison_of_the_two_data_sets_says() {
    let (a, kept) = (runs(&[100, 103, 98, 101], |_| {}), tempfile::tempdir().unwrap());
    let load = Filter { phases: Names::parse(&["load".to_owned()]).unwrap(), ..Filter::default() };
    let work = || Per::Work { a: Work::OfRuns(vec![9.0, 10.0, 11.0, 10.0]), b: Work::OfRuns(vec![10.0, 9.5, 10.0]) };
    for percents in [[112, 109, 115], [100, 102, 99], [80, 120, 100]] {
        let b = runs(&percents, |run| run.kernel = "6.12".to_owned());
        for (by, per, filter) in [
            (CompareBy::Method, Per::Run, &Filter::default()),
            (CompareBy::Method, Per::Time, &load),
            (CompareBy::Process, Per::Cpu, &Filter::default()),
            (CompareBy::Category, Per::Nothing, &load),
            (CompareBy::Package, work(), &Filter::default()),
        ] {
            let choices = choices(by, per.clone());
            let whole = diff::run(a.path(), b.path(), filter, None, &choices).unwrap();
            let of_file = saved(a.path(), filter, &choices, &keep(None), &kept);
            let checked = of_file.check(b.path(), filter, None, &choices).unwrap();
            // What fails is decided on what was compared.
            for fail_on in [FailOn::Total, FailOn::Row, FailOn::Phase] {
                let choices = Choices { fail_on, ..choices.clone() };
                assert_eq!(checked.gate(&choices), whole.gate(&choices), "{by:?} {per:?} {fail_on:?}");
                assert!(whole.warnings.iter().any(|warning| warning.contains("kernels differ")));
                let (mut one, mut other) = (shown(&checked, &choices), shown(&whole, &choices));
                // The name of the file is not that of the data set.
                one["a"]["data"] = Value::Null;
                other["a"]["data"] = Value::Null;
                expect_same("", &one, &other);
            }
        }
    }
}

#[test]
fn gates_tell_apart_what_is_more_and_where() {
    let (a, b) = (runs(&[100, 101, 99], |_| {}), runs(&[120, 121, 119], |_| {}));
    let gate = |a: &TempDir, b: &TempDir, fail_on| {
        let choices = Choices { fail_on, ..choices(CompareBy::Process, Per::Run) };
        diff::run(a.path(), b.path(), &Filter::default(), None, &choices).unwrap().gate(&choices)
    };
    for fail_on in [FailOn::Total, FailOn::Row, FailOn::Phase] {
        assert_eq!(gate(&a, &b, fail_on), Gate::Exceeded, "{fail_on:?}");
        assert_eq!(gate(&b, &a, fail_on), Gate::Passed, "{fail_on:?}: less is not a failure");
        assert_eq!(gate(&a, &runs(&[120, 121], |_| {}), fail_on), Gate::NotEnoughRuns, "{fail_on:?}");
        let other = runs(&[120, 121, 119], |run| run.cpu_model = "other".to_owned());
        assert_eq!(gate(&a, &other, fail_on), Gate::NotComparable, "{fail_on:?}");
    }
    // No window is in a phase before the first of them begins.
    let early = Filter {
        until: Some(super::super::profile::Moment::Into(std::time::Duration::from_secs(2))),
        ..Filter::default()
    };
    let phases = Choices { fail_on: FailOn::Phase, ..choices(CompareBy::Process, Per::Run) };
    let found = diff::run(a.path(), b.path(), &early, None, &phases).unwrap();
    assert!(found.phases.iter().all(|phase| phase.b.energy.0 == 0), "{:?}", found.phases);
}

#[test]
fn the_energy_of_a_phase_is_that_of_its_windows() {
    let a = runs(&[100, 101, 99], |_| {});
    let choices = choices(CompareBy::Method, Per::Time);
    let found = diff::run(a.path(), a.path(), &Filter::default(), None, &choices).unwrap();
    let names: Vec<String> = found.phases.iter().map(|phase| phase.key.name.to_string()).collect();
    assert_eq!(names, ["load", "load/parse", "serve"]);
    for (name, phase) in names.iter().zip(&found.phases) {
        let only = Filter { phases: Names::parse(std::slice::from_ref(name)).unwrap(), ..Filter::default() };
        let of_filter = diff::Side::read(a.path(), &only, None, &choices).unwrap();
        assert_eq!(phase.a.energy, of_filter.total.energy, "{name}");
        assert!((phase.change.a - of_filter.total.energy.joules() / 3.0).abs() < 1e-9, "{name}: joules of a run");
        assert_eq!(phase.a.sampling, 0.0, "{name}: whole windows are not sampled");
    }
}

#[test]
fn rows_that_a_baseline_does_not_keep_are_one_row_of_both() {
    let (a, kept) = (runs(&[100, 103, 98], |_| {}), tempfile::tempdir().unwrap());
    let b = runs(&[112, 109, 115], |_| {});
    let choices = choices(CompareBy::Method, Per::Run);
    let whole = diff::run(a.path(), b.path(), &Filter::default(), None, &choices).unwrap();
    assert!(whole.rows.len() > 2, "{}", whole.rows.len());
    let of_file = saved(a.path(), &Filter::default(), &choices, &keep(Some(1)), &kept);
    let found = of_file.check(b.path(), &Filter::default(), None, &choices).unwrap();
    assert_eq!(found.rows.len(), 2);
    assert!(found.rows.iter().any(|row| row.key.name == *"[other rows]"));
    assert!(found.notices.join("\n").contains("keeps the 1 largest rows"), "{:?}", found.notices);
    for (of_file, of_data) in [(true, found.a.total.energy), (false, found.b.total.energy)] {
        let sum: u64 = found.rows.iter().map(|row| if of_file { row.a.energy.0 } else { row.b.energy.0 }).sum();
        assert_eq!(sum, of_data.0, "rows sum to the total");
    }
    for row in found.rows.iter().filter(|row| row.key.name != *"[other rows]") {
        let same = whole.rows.iter().find(|other| other.key == row.key).unwrap();
        assert_eq!((row.a.energy, row.b.energy), (same.a.energy, same.b.energy));
        // Floating-point sums end in other digits if their parts come in another order.
        let (p, expected) = (row.change.p.unwrap(), same.change.p.unwrap());
        assert!((p - expected).abs() <= 1e-9 * expected, "{p} {expected}");
    }
}

#[test]
fn data_that_was_divided_differently_is_attributed_as_the_baseline_was() {
    let (kept, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let spread = Policy { idle: IdlePolicy::Spread, ..Policy::default() };
    let separate = Policy { idle_milliwatts: 5_000, ..Policy::default() };
    let a = runs_from(0, &[100, 101, 99], separate.clone(), |_| {});
    let b = runs_from(0, &[100, 101, 99], spread, |_| {});
    let choices = Choices { again_in: Some(temporary.path().to_owned()), ..choices(CompareBy::Method, Per::Run) };
    let of_file = saved(a.path(), &Filter::default(), &choices, &keep(None), &kept);
    let found = of_file.check(b.path(), &Filter::default(), None, &choices).unwrap();
    assert!(found.are_comparable, "{:?}", found.warnings);
    assert_eq!(found.a.total.energy, found.b.total.energy);
    // Only windows can be divided again: cycles that B lacks would have to go from the baseline.
    let cycles = Policy { weight_unit: crate::model::policy::WeightUnit::Cycles, ..separate };
    let by_cycles = runs_from(0, &[100, 101, 99], cycles, |_| {});
    let of_file = saved(by_cycles.path(), &Filter::default(), &choices, &keep(None), &kept);
    let found = of_file.check(a.path(), &Filter::default(), None, &choices).unwrap();
    assert_eq!(found.gate(&choices), Gate::NotComparable);
    assert!(found.warnings.join("\n").contains("a baseline keeps sums"), "{:?}", found.warnings);
}

#[test]
fn what_is_no_baseline_is_refused_in_words() {
    let (a, kept) = (runs(&[100, 101, 99], |_| {}), tempfile::tempdir().unwrap());
    let choices = choices(CompareBy::Method, Per::Run);
    let text = baseline::save(a.path(), &Filter::default(), None, &choices, &keep(None)).unwrap();
    assert!(text.len() < 100_000, "{}", text.len());
    let changed = |change: fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&text).unwrap();
        change(&mut value);
        value.to_string()
    };
    for (text, words) in [
        (text[..text.len() / 2].to_owned(), "is not a baseline: EOF"),
        (String::new(), "is not a baseline"),
        ("[".repeat(1_000_000), "is not a baseline"),
        ("{\"dependencies\":{}}".to_owned(), "is not a baseline: missing field"),
        (changed(|value| value["format"] = json!("other")), "does not say that it is one"),
        (changed(|value| value["version"] = json!(1)), "of version 1, and this joular-bpf reads version 3"),
        (changed(|value| value["sessions"] = json!([])), "is damaged: it has no session"),
        (changed(|value| value["later"] = json!(1)), "is damaged: unknown field"),
        (changed(|value| value["sessions"][0]["runs"] = json!([])), "is damaged: it has no run"),
        (changed(|value| value["sessions"][0]["runs"][0]["context"] = json!(7)), "context that is not there"),
        (changed(|value| value["sessions"][0]["total"]["amounts"] = json!([1])), "has 1 amounts of 3 runs"),
        (changed(|value| value["sessions"][0]["runs"][0]["work"] = json!(0)), "not above 0"),
        (changed(|value| value["sessions"][0]["rows"][0]["samples"] = json!(-1)), "is damaged: invalid value"),
        (changed(|value| value["sessions"][0]["rows"][1] = value["sessions"][0]["rows"][0].clone()), "is there twice"),
        ("x".repeat((16 << 20) + 1), "is larger than a baseline can be"),
    ] {
        let path = kept.path().join("other.json");
        fs::write(&path, text).unwrap();
        let message = Baseline::read(&path).unwrap_err().to_string();
        assert!(message.contains(words) && message.contains("other.json"), "{words}: {message}");
    }
    assert!(matches!(Baseline::read(Path::new("/absent")), Err(BaselineError::Read { .. })));
}

#[test]
fn a_baseline_keeps_any_measure() {
    let (a, kept) = (runs(&[100, 101, 99], |_| {}), tempfile::tempdir().unwrap());
    let profile = Profile::read(a.path(), &Filter::default(), None).unwrap();
    let measures: Vec<Measure> = profile.measures_beside_energy().collect();
    assert!(measures.len() > 3, "{measures:?}");
    for measure in measures {
        let choices = Choices { measure, ..choices(CompareBy::Method, Per::Run) };
        let text = baseline::save(a.path(), &Filter::default(), None, &choices, &keep(Some(3))).unwrap();
        let path = kept.path().join("baseline.json");
        fs::write(&path, &text).unwrap();
        let baseline = Baseline::read(&path).unwrap();
        assert_eq!(baseline.measure(), measure.name());
        let found = baseline.check(a.path(), &Filter::default(), None, &choices).unwrap();
        let all: u64 = profile.facts(measure).map(|fact| fact.amount).sum();
        assert_eq!((found.a.total.energy.0, found.b.total.energy.0), (all, all), "{}", measure.name());
        assert!(found.rows.iter().all(|row| row.a.energy == row.b.energy), "{}", measure.name());
    }
    let nothing = Choices { measure: Measure::Counted(Counter::Instructions), ..choices(CompareBy::Method, Per::Run) };
    let error = baseline::save(a.path(), &Filter::default(), None, &nothing, &keep(None)).unwrap_err().to_string();
    assert!(error.contains("--counters instructions"), "{error}");
}

#[test]
fn figures_that_no_machine_has_are_taken_without_a_panic() {
    let (a, kept) = (runs(&[100, 101, 99], |_| {}), tempfile::tempdir().unwrap());
    let choices = choices(CompareBy::Method, Per::Time);
    let text = baseline::save(a.path(), &Filter::default(), None, &choices, &keep(None)).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    for run in value["sessions"][0]["runs"].as_array_mut().unwrap() {
        for column in ["windows", "length_ns", "cpu_ns"] {
            run[column] = json!(u64::MAX);
        }
    }
    value["sessions"][0]["total"]["amounts"] = json!([u64::MAX, 0, u64::MAX]);
    value["sessions"][0]["total"]["sampling_variance"] = json!(f64::MAX);
    let path = kept.path().join("baseline.json");
    fs::write(&path, value.to_string()).unwrap();
    let found = Baseline::read(&path).unwrap().check(a.path(), &Filter::default(), None, &choices).unwrap();
    assert!(shown(&found, &choices).is_object() && !found.junit(&choices).is_empty());
}

/// Elements of a document with their attributes, in order, as another parser reads them.
fn elements(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut reader = Reader::from_str(text);
    let mut found = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Xml::Start(element) | Xml::Empty(element) => {
                let utf8 = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                let attributes = element.attributes().map(|attribute| {
                    let attribute = attribute.unwrap();
                    let value = quick_xml::escape::unescape(std::str::from_utf8(&attribute.value).unwrap()).unwrap();
                    (utf8(attribute.key.as_ref()), value.into_owned())
                });
                let attributes = attributes.collect();
                found.push((utf8(element.name().as_ref()), attributes));
            }
            Xml::Eof => return found,
            _ => {}
        }
    }
}

fn attribute<'a>(element: &'a (String, Vec<(String, String)>), name: &str) -> &'a str {
    &element.1.iter().find(|(key, _)| key == name).unwrap_or_else(|| panic!("no {name} in {element:?}")).1
}

#[test]
fn junit_has_a_case_for_the_total_each_phase_and_each_row_and_counts_them() {
    let (a, b) = (runs(&[100, 101, 99], |_| {}), runs(&[120, 121, 119], |_| {}));
    let other = runs(&[120, 121, 119], |run| run.cpu_model = "<other> & \"more\"\u{1}\u{fffe}".to_owned());
    let few = runs(&[120, 121], |_| {});
    for (b, fail_on, class, outcome) in [
        (&b, FailOn::Total, "joular-bpf.total", "failure"),
        (&b, FailOn::Row, "joular-bpf.row", "failure"),
        (&b, FailOn::Phase, "joular-bpf.phase", "failure"),
        (&a, FailOn::Total, "joular-bpf.total", "properties"),
        (&other, FailOn::Total, "joular-bpf.total", "skipped"),
        (&few, FailOn::Row, "joular-bpf.phase", "skipped"),
    ] {
        let choices = Choices { fail_on, ..choices(CompareBy::Method, Per::Run) };
        let found = diff::run(a.path(), b.path(), &Filter::default(), None, &choices).unwrap();
        let text = found.junit(&choices);
        assert!(!text.contains(['\u{1}', '\u{fffe}']), "{text}");
        let elements = elements(&text);
        let all = |name: &str| elements.iter().filter(|element| element.0 == name).collect::<Vec<_>>();
        let (suites, suite) = (all("testsuites"), all("testsuite"));
        assert_eq!((suites.len(), suite.len()), (1, 1));
        for (counted, name) in [("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")] {
            assert_eq!(attribute(suite[0], counted), all(name).len().to_string(), "{counted}");
        }
        let classes: Vec<&str> = all("testcase").iter().map(|case| attribute(case, "classname")).collect();
        assert_eq!(classes.iter().filter(|class| **class == "joular-bpf.total").count(), 1);
        assert_eq!(classes.iter().filter(|class| **class == "joular-bpf.phase").count(), 3);
        // What follows the properties of the first case of the class.
        let start = elements.iter().position(|case| case.0 == "testcase" && attribute(case, "classname") == class);
        let case: Vec<&str> = elements[start.unwrap() + 1..]
            .iter()
            .take_while(|element| element.0 != "testcase")
            .map(|element| element.0.as_str())
            .filter(|name| !matches!(*name, "property" | "system-out"))
            .collect();
        let expected = if outcome == "properties" { vec!["properties"] } else { vec!["properties", outcome] };
        assert_eq!(case, expected, "{text}");
        let is_failed = !all("failure").is_empty();
        assert_eq!(is_failed, found.gate(&choices) == Gate::Exceeded, "a case fails if and only if the gate does");
    }
}

#[test]
fn markdown_says_first_what_the_gate_says() {
    let (a, b) = (runs(&[100, 101, 99], |_| {}), runs(&[120, 121, 119], |_| {}));
    let other = runs(&[120, 121, 119], |run| run.cpu_model = "other".to_owned());
    for (b, fail_above, first) in [
        (&b, Some(0.05), "**Failed:** <code>total</code> is certainly more than 5 % above A. Energy of a run: "),
        (&a, Some(0.05), "**Passed:** nothing is certainly more than 5 % above A. Energy of a run: "),
        (&other, Some(0.05), "**Undecided:** A and B were made differently. Energy of a run: "),
        (&b, None, "**Energy of a run:** "),
    ] {
        let choices = Choices { fail_above, format: Format::Markdown, ..choices(CompareBy::Method, Per::Run) };
        let found = diff::run(a.path(), b.path(), &Filter::default(), None, &choices).unwrap();
        let mut out = Vec::new();
        found.write(&choices, None, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(first), "{first}: {text}");
        let parts = ["| method |", "| phase |", "**What was compared**", "- B: "];
        let places: Vec<usize> =
            parts.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"))).collect();
        assert!(places.is_sorted(), "{text}");
    }
}
