//! Tests baselines of several sessions, and what is said where nobody knows how sessions differ.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    super::{
        diff::{
            self, Choices, CompareBy, Comparison, Gate, Per, Verdict,
            baseline::{self, Baseline, BaselineError, Keep},
        },
        profile::Filter,
    },
    baseline::{choices, keep, runs_from, shown},
};
use crate::{events::RunInfo, model::policy::Policy};

/// Three runs, from a day on, that draw about so many percent of what the fixture draws.
fn session(day: i64, percent: u64) -> TempDir {
    session_of(day, percent, |_| {})
}

fn session_of(day: i64, percent: u64, change: impl Fn(&mut RunInfo)) -> TempDir {
    runs_from(day, &[percent, percent + 1, percent - 1], Policy::default(), change)
}

/// A file of a baseline.
struct Kept {
    folder: TempDir,
    choices: Choices,
}

impl Kept {
    fn of(first: &TempDir, choices: Choices, keep: &Keep) -> Self {
        let kept = Self { folder: tempfile::tempdir().unwrap(), choices };
        fs::write(kept.path(), baseline::save(first.path(), &Filter::default(), None, &kept.choices, keep).unwrap())
            .unwrap();
        kept
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("baseline.json")
    }

    fn read(&self) -> Baseline {
        Baseline::read(&self.path()).unwrap()
    }

    fn add(&self, data: &TempDir, keep: &Keep) -> Result<(), BaselineError> {
        let text = self.read().with_session(data.path(), &Filter::default(), None, &self.choices, keep)?;
        fs::write(self.path(), text).unwrap();
        Ok(())
    }

    fn check(&self, data: &TempDir) -> Comparison {
        self.read().check(data.path(), &Filter::default(), None, &self.choices).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path()).unwrap()).unwrap()
    }
}

fn by_method() -> Choices {
    choices(CompareBy::Method, Per::Run)
}

#[test]
fn one_session_has_a_gate_and_three_have_verdicts() {
    let kept = Kept::of(&session(0, 100), by_method(), &keep(None));
    let (same, warm, more) = (session(100, 100), session(100, 106), session(100, 125));
    let others = [session(10, 103), session(20, 98)];
    for (count, next) in (1..).zip(&others) {
        let missing = ["Add 2 sessions or more", "Add 1 session or more"][count - 1];
        for (b, gate) in [(&same, Gate::Passed), (&warm, Gate::Passed), (&more, Gate::Exceeded)] {
            let found = kept.check(b);
            let verdicts = found.rows.iter().chain(&found.phases).chain([&found.total]).map(|row| row.change.verdict);
            assert!(
                !verdicts.clone().any(|verdict| matches!(verdict, Verdict::More | Verdict::Less | Verdict::NoChange))
            );
            assert_eq!(found.gate(&kept.choices), gate, "{count}: {:?}", found.total);
            assert!(found.warnings.iter().any(|warning| warning.contains(missing)), "{:?}", found.warnings);
            let json = shown(&found, &kept.choices);
            assert_eq!((&json["intervals_from"], &json["a"]["sessions"]), (&json!("runs"), &json!(count)));
            assert_eq!(json["intervals_leave_out_sessions"], json!(true));
        }
        assert_eq!(kept.check(&more).total.change.verdict, Verdict::NotEnoughSessions);
        kept.add(next, &keep(None)).unwrap();
    }
    // What the runs of one day have in common is no change.
    for (b, verdict, gate) in [
        (&same, Verdict::NotCertain, Gate::Passed),
        (&warm, Verdict::NotCertain, Gate::Passed),
        (&more, Verdict::More, Gate::Exceeded),
    ] {
        let found = kept.check(b);
        assert_eq!((found.total.change.verdict, found.gate(&kept.choices)), (verdict, gate), "{:?}", found.total);
        let json = shown(&found, &kept.choices);
        assert_eq!((&json["intervals_from"], &json["a"]["sessions"]), (&json!("sessions"), &json!(3)));
        assert!(json["a"]["runs"] == json!(9) && !json["warnings"].to_string().contains("sessions"), "{json}");
    }
}

#[test]
fn sessions_of_a_baseline_add_up_to_their_data_sets_and_the_oldest_go() {
    let (first, second, third) = (session(0, 100), session(10, 110), session(20, 120));
    let named = |name: &str| Keep { session: Some(name.to_owned()), ..keep(Some(1)) };
    let kept = Kept::of(&first, by_method(), &named("one"));
    let rows = kept.read().check(first.path(), &Filter::default(), None, &kept.choices).unwrap().rows.len();
    kept.add(&second, &named("two")).unwrap();
    let energy =
        |data: &TempDir| diff::Side::read(data.path(), &Filter::default(), None, &kept.choices).unwrap().total.energy.0;
    let found = kept.check(&first);
    assert_eq!(found.a.total.energy.0, energy(&first) + energy(&second));
    assert_eq!(found.rows.iter().map(|row| row.a.energy.0).sum::<u64>(), found.a.total.energy.0);
    assert_eq!((found.rows.len(), found.a.runs_with_windows()), (rows, 6), "rows are those of the first session");
    kept.add(&third, &Keep { sessions: Some(2), ..keep(None) }).unwrap();
    let found = kept.check(&first);
    assert_eq!(found.a.total.energy.0, energy(&second) + energy(&third));
    assert_eq!(
        (kept.json()["sessions"][0]["name"].clone(), kept.json()["sessions"][1]["name"].clone()),
        (json!("two"), Value::Null)
    );
}

#[test]
fn what_is_no_other_session_is_refused_in_words() {
    let first = session(0, 100);
    let named = |name: &str| Keep { session: Some(name.to_owned()), ..keep(None) };
    let kept = Kept::of(&first, by_method(), &named("night"));
    let before = kept.json();
    let other = session_of(10, 100, |run| run.cpu_model = "other".to_owned());
    let with_work = Keep { work: vec![1.0; 3], ..keep(None) };
    for (data, keep, words) in [
        (&first, keep(None), "run run-0 of "),
        (&session(2, 100), keep(None), "is in session night of"),
        (&session(10, 100), named("night"), "has a session night already"),
        (&other, keep(None), "processors differ"),
        (&session(10, 100), with_work, "has no counts of work"),
    ] {
        let message = kept.add(data, &keep).unwrap_err().to_string();
        assert!(message.contains(words) && message.contains("baseline.json"), "{words}: {message}");
        assert_eq!(kept.json(), before, "the file stays as it was");
    }
    let of_work = Kept::of(&first, by_method(), &Keep { work: vec![1.0; 3], ..keep(None) });
    let message = of_work.add(&session(10, 100), &keep(None)).unwrap_err().to_string();
    assert!(message.contains("give --work"), "{message}");
}

#[test]
fn joules_of_all_runs_are_not_compared_with_several_sessions() {
    let kept = Kept::of(&session(0, 100), choices(CompareBy::Method, Per::Nothing), &keep(None));
    for day in [10, 20] {
        kept.add(&session(day, 100), &keep(None)).unwrap();
    }
    let error = kept.read().check(session(100, 100).path(), &Filter::default(), None, &kept.choices).unwrap_err();
    assert!(error.to_string().contains("has 3 sessions") && error.to_string().contains("--per run"), "{error}");
}

#[test]
fn a_file_that_does_not_know_sessions_is_one_session_and_says_so() {
    let kept = Kept::of(&session(0, 100), by_method(), &keep(None));
    let b = session(100, 106);
    let new = kept.check(&b);
    let mut old = kept.json();
    let mut of_session = old["sessions"][0].take();
    of_session.as_object_mut().unwrap().remove("name");
    old.as_object_mut().unwrap().remove("sessions");
    old.as_object_mut().unwrap().extend(of_session.as_object().unwrap().clone());
    old["version"] = json!(2);
    fs::write(kept.path(), old.to_string()).unwrap();
    let found = kept.check(&b);
    assert_eq!(found.total.change, new.total.change);
    assert!(found.notices.join("\n").contains("is of version 2"), "{:?}", found.notices);
    assert_eq!(new.notices, <[String; 0]>::default());
    kept.add(&session(10, 100), &keep(None)).unwrap();
    assert_eq!((kept.json()["version"].clone(), kept.check(&b).a.sessions_with_windows()), (json!(3), 2));
}

#[test]
fn two_data_sets_of_different_days_say_what_their_intervals_leave_out() {
    let (a, b) = (session(0, 100), session(100, 106));
    let notices =
        |b: &TempDir| diff::run(a.path(), b.path(), &Filter::default(), None, &by_method()).unwrap().notices.join("\n");
    assert!(notices(&b).contains("recorded one after the other"), "{}", notices(&b));
    assert_eq!(notices(&session(0, 106)), "", "runs that took turns have the same sessions");
}
