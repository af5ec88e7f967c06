//! Compares joules per request of data sets whose every number is known.

use std::{fmt::Write as _, path::PathBuf};

use super::{
    super::{
        Format,
        diff::{self, Choices, CompareBy, Comparison, DiffError, Per, Verdict},
        profile::Filter,
        requests::{self, RequestsWanted},
    },
    baseline::{choices, runs_from, shown},
    handlers,
};
use crate::{dataset::fixture::*, model::policy::Policy};

const RUNS: i64 = 4;
const HEADING: &str = "route,count,handler,begin,end\n";

/// A file with a row of each run, or of each second of it.
fn counted(
    folder: &tempfile::TempDir,
    name: &str,
    row: impl Fn(i64) -> Vec<(&'static str, u64, &'static str)>,
    seconds: i64,
) -> PathBuf {
    let mut text = HEADING.to_owned();
    for run in 0..RUNS {
        for begin in (0..30).step_by(usize::try_from(seconds).unwrap()) {
            let begin = STARTED / 1_000_000 + run * 86_400 + begin;
            for (route, count, handler) in row(run) {
                writeln!(text, "{route},{count},{handler},{begin},{}", begin + seconds).unwrap();
            }
        }
    }
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn filter() -> Filter {
    let (_root, rules) = handlers::written();
    Filter { handler_rules: Some(rules), no_infer: true, ..Filter::default() }
}

fn choices_of(a: PathBuf, b: PathBuf) -> Choices {
    choices(CompareBy::Handler, Per::Request { a, b })
}

#[test]
fn half_the_requests_for_the_same_energy_are_twice_the_joules_of_one() {
    let (folder, filter) = (tempfile::tempdir().unwrap(), filter());
    let data = runs_from(0, &[100, 101, 99, 100], Policy::default(), |_| {});
    let many = counted(&folder, "a", |_| vec![("all", 1000, "*"), ("gone", 5, "none.such")], 30);
    let few = counted(&folder, "b", |_| vec![("all", 500, "*"), ("new", 7, "none.other")], 30);
    let choices = choices_of(many.clone(), few);
    let found = diff::run(data.path(), data.path(), &filter, None, &choices).unwrap();
    let [row] = found.rows.as_slice() else { panic!("{:?}", found.rows) };
    assert_eq!((row.key.name.to_string(), row.change.verdict, row.exceeds), ("all".to_owned(), Verdict::More, true));
    assert!((row.change.ratio().unwrap() - 1.0).abs() < 1e-9, "{:?}", row.change);
    assert!((found.total.change.difference() - row.change.difference()).abs() < 1e-12);
    let (low, high) = row.change.relative.unwrap();
    assert!(low > 0.0 && low < 1.0 && high > 1.0, "{low} {high}");
    let wanted = RequestsWanted { filter, counts: many, format: Format::Text };
    let alone = requests::read(data.path(), &wanted).unwrap().routes[0].needs.unwrap().direct.joules;
    assert!((row.change.a - alone).abs() < 1e-9 * alone, "{} {alone}", row.change.a);
    let notices = found.notices.join("\n");
    assert!(notices.contains("gone: no sample is of a handler with such a name in A"), "{notices}");
    assert!(notices.contains("new: no request was counted in A"), "{notices}");
    says(&found, &choices);
}

/// Text and JSON name what rows and figures are.
fn says(found: &Comparison, choices: &Choices) {
    let json = shown(found, choices);
    assert_eq!((&json["by"], &json["unit"]), (&"route".into(), &"J/request".into()));
    assert_eq!((&json["intervals_from"], &json["rows"][0]["name"]), (&"runs".into(), &"all".into()));
    let mut text = Vec::new();
    found.write(&Choices { format: Format::Text, ..choices.clone() }, None, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("J/request, by route; 95 % intervals from 4 and 4 runs"), "{text}");
}

#[test]
fn times_of_counting_show_how_figures_vary_where_there_is_one_run() {
    let (folder, filter) = (tempfile::tempdir().unwrap(), filter());
    let (root, _) = handlers::written();
    let file = counted(&folder, "counts", |_| vec![("all", 100, "*")], 1);
    let choices = choices_of(file.clone(), file);
    let found = diff::run(root.path(), root.path(), &filter, None, &choices).unwrap();
    // Of the days on which nothing was recorded, nothing counts.
    assert_eq!((found.of_runs, found.times), (false, Some([30, 30])));
    assert!(found.notices.iter().any(|note| note.starts_with("A: 9000 requests left out")), "{:?}", found.notices);
    assert!(found.rows[0].change.a > 0.0 && found.rows[0].change.difference() == 0.0);
    assert!(!matches!(found.rows[0].change.verdict, Verdict::More | Verdict::Less));
    assert_eq!(shown(&found, &choices)["intervals_from"], "counts");
}

#[test]
fn one_handler_cannot_have_two_routes() {
    let (folder, filter) = (tempfile::tempdir().unwrap(), filter());
    let data = runs_from(0, &[100; 4], Policy::default(), |_| {});
    let file = counted(&folder, "counts", |_| vec![("one", 1, "*"), ("two", 1, "**")], 30);
    let error = diff::run(data.path(), data.path(), &filter, None, &choices_of(file.clone(), file)).unwrap_err();
    assert!(matches!(&error, DiffError::Requests(_)) && error.to_string().contains("one and two"), "{error}");
}
