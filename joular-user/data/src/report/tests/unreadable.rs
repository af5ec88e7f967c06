//! Tests that runs that cannot be read are left out whole and named, or are an error.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::super::{
    Format, diff,
    export::{ExportFormat, Selection},
    flamegraph::{self, Drawing},
    measure::Measure,
    profile::{Filter, Names, Profile, SkippedRuns, Unreadable},
    ranking::{Look, Request, Sort, TableOf, command},
    runs,
    tree::Shape,
};
use crate::{
    dataset::{OutputDirectory, ParquetOutput, audit, fixture::*, tampering},
    model::policy::Policy,
};

/// A data set of these runs.
fn of_runs(names: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for name in names {
        let output = ParquetOutput::new(OutputDirectory::create(root.path(), None).unwrap(), FLUSH_NS);
        play_run(output, Policy::default(), |run| {
            (run.run_id, run.version) = ((*name).to_owned(), "7.8.9".to_owned());
        });
    }
    root
}

/// Files of a run's table.
fn of_run(root: &Path, table: &str, run: &str) -> Vec<PathBuf> {
    let is_of_run = |name: &String| name.starts_with(&format!("{table}/")) && name.contains(&format!("/{run}-"));
    files(root).into_iter().map(|(name, _)| name).filter(is_of_run).map(|name| root.join(name)).collect()
}

fn cut(file: &Path) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

/// Changes bytes of rows, and none of what the file says of itself.
fn damage_rows(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let end = bytes.len() - 8;
    let footer = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    bytes[4..end - footer].fill(0xff);
    fs::write(file, bytes).unwrap();
}

/// What is wrong with a run, and what is said of it.
type Damage = (&'static str, fn(&Path, &str), &'static str);

const DAMAGES: &[Damage] = &[
    ("a row that was cut off", |root, run| cut(&of_run(root, "runs", run)[0]), "the file is damaged"),
    ("no row", |root, run| fs::remove_file(&of_run(root, "runs", run)[0]).unwrap(), "no row in table runs"),
    (
        "a newer row",
        |root, run| tampering::rewrite_rows(&of_run(root, "runs", run)[0], Some(13), |rows| rows),
        "it has schema version 13 (written by joular-bpf 7.8.9), this joular-bpf reads versions 10 to 12: use a newer",
    ),
    (
        "a newer file",
        |root, run| tampering::rewrite_rows(&of_run(root, "quality", run)[1], Some(13), |rows| rows),
        "it has schema version 13, this",
    ),
    ("stacks that were cut off", |root, run| cut(&of_run(root, "stacks", run)[0]), "the file is damaged"),
    (
        "branches that were cut off",
        |root, run| cut(of_run(root, "branches", run).last().unwrap()),
        "the file is damaged",
    ),
    ("damaged rows", |root, run| damage_rows(of_run(root, "branches", run).last().unwrap()), ""),
    (
        "an energy that cannot be",
        |root, run| tampering::tamper(&of_run(root, "branches", run)[1], "energy_uj", |values| values[0] = Some(-1)),
        "column energy_uj is out of range",
    ),
];

fn forgiving() -> Filter {
    Filter { unreadable: Unreadable::left_out(), ..Filter::default() }
}

fn read(root: &Path, filter: &Filter) -> Profile {
    let read = || Profile::read(root, filter, None);
    filter.unreadable.reading(read).unwrap()
}

fn request(filter: Filter, format: Format) -> Request {
    let tables = vec![TableOf::named("method", Measure::Energy).unwrap()];
    let (top, sort, activations) = (0, Sort::Own, false);
    Request { filter, app: None, tables, top, sort, activations, footprint: None, format }
}

fn report(root: &Path, filter: &Filter, format: Format) -> (String, Vec<String>) {
    let mut out = Vec::new();
    let said = command::run(root, &request(filter.clone(), format), Look::default(), &mut out).unwrap();
    said.written.unwrap();
    (String::from_utf8(out).unwrap(), said.notices)
}

#[test]
fn a_run_that_cannot_be_read_is_left_out_whole_and_named() {
    let whole = of_runs(&["r-1", "r-3"]);
    let expected = read(whole.path(), &Filter::default());
    for (what, damage, why) in DAMAGES {
        let root = of_runs(&["r-1", "r-2", "r-3"]);
        damage(root.path(), "r-2");
        assert!(Profile::read(root.path(), &Filter::default(), None).is_err(), "{what}: strict");
        let filter = forgiving();
        let profile = read(root.path(), &filter);
        assert_eq!(profile.entries, expected.entries, "{what}");
        assert_eq!(profile.overview.measured, expected.overview.measured, "{what}");
        let SkippedRuns { skipped, looked_at } = filter.unreadable.skipped();
        assert_eq!((skipped.len(), looked_at), (1, 3), "{what}: {skipped:?}");
        assert!(skipped[0].why.contains(why) && !skipped[0].why.starts_with("reading"), "{what}: {skipped:?}");
        assert!(skipped[0].path.starts_with(root.path().to_str().unwrap()), "{what}: {skipped:?}");
        let line = filter.unreadable.skipped().line().unwrap();
        assert!(line.starts_with("1 of 3 runs was left out: /") && !line.contains('\n'), "{what}: {line}");
        assert_eq!(profile.overview.skipped.line(), Some(line), "{what}");
        assert!(!matches!(audit::run(root.path()), Ok(audits) if audit::is_well(&audits)), "{what}: an audit fails");
    }
}

#[test]
fn of_many_that_cannot_be_read_some_are_named_and_of_nothing_else_it_is_an_error() {
    let names: Vec<String> = (0..DAMAGES.len()).map(|number| format!("r-{number}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).chain(["good"]).collect();
    let root = of_runs(&all);
    for ((_, damage, _), name) in DAMAGES.iter().zip(&names) {
        damage(root.path(), name);
    }
    let filter = forgiving();
    let whole = of_runs(&["good"]);
    assert_eq!(read(root.path(), &filter).entries, read(whole.path(), &Filter::default()).entries);
    let line = filter.unreadable.skipped().line().unwrap();
    assert!(line.starts_with("8 of 9 runs were left out: ") && line.ends_with("; and 5 more"), "{line}");
    for file in files(root.path()).into_iter().filter(|(name, _)| name.contains("/good-")) {
        fs::remove_file(root.path().join(file.0)).unwrap();
    }
    let filter = forgiving();
    let none = filter.unreadable.reading(|| Profile::read(root.path(), &filter, None)).unwrap_err();
    assert!(none.to_string().contains(root.path().to_str().unwrap()), "{none}");
}

#[test]
fn what_is_not_asked_for_is_not_missed() {
    let root = of_runs(&["r-1", "r-2"]);
    cut(&of_run(root.path(), "runs", "r-2")[0]);
    for (run, host) in [(Some("r-1"), None), (None, Some("elsewhere"))] {
        let names =
            |name: Option<&str>| Names::parse(&name.into_iter().map(str::to_owned).collect::<Vec<_>>()).unwrap();
        let filter = Filter { runs: names(run), hosts: names(host), ..forgiving() };
        let profile = read(root.path(), &filter);
        assert_eq!(profile.catalog.runs.len(), usize::from(run.is_some()));
        assert_eq!(
            filter.unreadable.skipped(),
            SkippedRuns { looked_at: run.iter().count(), ..SkippedRuns::default() }
        );
    }
    let last = Filter { runs: Names::parse(&["last".to_owned()]).unwrap(), ..forgiving() };
    read(root.path(), &last);
    assert_eq!(last.unreadable.skipped().skipped.len(), 1, "it may have been the last one");
}

#[test]
fn reports_say_what_they_lack_and_are_as_before_if_they_lack_nothing() {
    let root = of_runs(&["r-1", "r-2"]);
    for format in [Format::Text, Format::Json, Format::Csv, Format::Markdown] {
        assert_eq!(report(root.path(), &forgiving(), format), report(root.path(), &Filter::default(), format));
    }
    cut(of_run(root.path(), "branches", "r-2").last().unwrap());
    let (text, notices) = report(root.path(), &forgiving(), Format::Text);
    assert!(text.contains("1 of 2 runs was left out") && notices.is_empty(), "{text}");
    let (json, notices) = report(root.path(), &forgiving(), Format::Json);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["skipped"][0]["path"].as_str().unwrap().contains("branches/"), "{json}");
    assert!(json["skipped"][0]["why"].as_str().unwrap().contains("the file is damaged"), "{json}");
    assert_eq!((json["extent"]["runs"].as_array().unwrap().len(), notices.len()), (1, 1), "{json}");
    let (csv, notices) = report(root.path(), &forgiving(), Format::Csv);
    assert!(!csv.contains("left out") && notices[0].contains("1 of 2 runs"), "{csv}");
}

#[test]
fn pictures_comparisons_exports_and_lists_leave_out_the_same_runs() {
    let (root, whole) = (of_runs(&["r-1", "r-2"]), of_runs(&["r-1"]));
    cut(&of_run(root.path(), "branches", "r-2")[0]);
    let picture = |data: &Path, filter: Filter| {
        let (data, filter) = (data.to_owned(), filter);
        let drawing = Drawing {
            data,
            base: None,
            filter,
            app: None,
            shape: Shape::default(),
            measure: Measure::Energy,
            is_icicle: false,
            min_share: None,
            picture: flamegraph::Picture::Svg,
        };
        flamegraph::draw(&drawing).unwrap().1
    };
    let headline = picture(whole.path(), Filter::default());
    assert_eq!(picture(root.path(), forgiving()), format!("{headline}, without 1 of 2 runs that cannot be read"));
    let exported = |data: &Path, filter: &Filter| {
        let out = tempfile::tempdir().unwrap();
        let file = out.path().join("out");
        let selection = Selection { data, filter, app: None, measure: Measure::Energy };
        ExportFormat::of("collapsed").unwrap().export(&selection, Some(&file), None).unwrap();
        fs::read_to_string(file).unwrap()
    };
    assert_eq!(exported(root.path(), &forgiving()), exported(whole.path(), &Filter::default()));
    let choices =
        diff::Choices { format: Format::Json, again_in: None, ..super::diff::choices(diff::CompareBy::Method) };
    let compared = |a: &Path, filter: &Filter| {
        let mut out = Vec::new();
        diff::run(a, whole.path(), filter, None, &choices).unwrap().write(&choices, None, &mut out).unwrap();
        serde_json::from_slice::<serde_json::Value>(&out).unwrap()
    };
    let (lacking, expected) = (compared(root.path(), &forgiving()), compared(whole.path(), &Filter::default()));
    assert_eq!(lacking["total"], expected["total"]);
    assert_eq!((lacking["skipped"].as_array().unwrap().len(), &expected["skipped"]), (1, &serde_json::Value::Null));
    let notices = lacking["notices"].as_array().unwrap().iter().filter_map(|notice| notice.as_str());
    assert_eq!(notices.filter(|notice| notice.starts_with("1 of 3 runs was left out")).count(), 1, "{lacking}");
    cut(&of_run(root.path(), "runs", "r-2")[0]);
    assert!(runs::read(root.path(), &Unreadable::default()).is_err());
    let unreadable = Unreadable::left_out();
    let mut listed = Vec::new();
    runs::read(root.path(), &unreadable).unwrap().write(false, None, &mut listed).unwrap();
    assert_eq!(String::from_utf8(listed).unwrap().lines().count(), 2, "a heading and a run");
    assert!(unreadable.skipped().line().unwrap().starts_with("1 of 2 runs was left out"));
}
