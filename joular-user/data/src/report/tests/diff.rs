use std::path::Path;

use super::super::{
    Format,
    diff::{self, Choices, CompareBy, Comparison, FailOn, Per, View, Work},
    measure::{Measure, Unit},
    profile::{App, Filter, Names, Profile},
};
use crate::{dataset::fixture::*, model::policy::Policy, model::units::*};

pub(super) fn choices(by: CompareBy) -> Choices {
    Choices {
        measure: Measure::Energy,
        by,
        view: View::Itself,
        per: Per::Time,
        margin: 0.05,
        fail_above: None,
        fail_on: FailOn::Total,
        top: None,
        format: Format::Csv,
        again_in: None,
    }
}

fn written() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    root
}

fn compare(root: &Path, filter: &Filter, app: Option<&App>, choices: &Choices) -> Comparison {
    diff::run(root, root, filter, app, choices).unwrap()
}

#[test]
fn rows_sum_to_the_selection_whatever_they_are() {
    let root = written();
    let methods = Names::parse(&["*.m100".to_owned()]).unwrap();
    let app = App::of(&["com.example".to_owned()]);
    for filter in [Filter::default(), Filter { methods, ..Filter::default() }] {
        for app in [None, app.as_ref()] {
            let energy = Profile::read(root.path(), &filter, app).unwrap().energy();
            for by in CompareBy::ALL {
                let found = compare(root.path(), &filter, app, &choices(by));
                assert_eq!(found.a.total.energy, energy, "{by:?}");
                assert_eq!(found.rows.iter().map(|row| row.b.energy).sum::<MicroJoules>(), energy, "{by:?}");
                let by_window = |spent: &diff::side::Spent| spent.by_window.iter().map(|(_, energy)| *energy).sum();
                assert_eq!(found.rows.iter().map(|row| by_window(&row.a)).sum::<MicroJoules>(), energy, "{by:?}");
            }
        }
    }
}

/// Measures beside energy of which there is anything.
fn counted_or_moved(profile: &Profile) -> Vec<Measure> {
    let is_any = |measure: &Measure| profile.facts(*measure).any(|fact| fact.amount > 0);
    let measures: Vec<Measure> = profile.measures_beside_energy().filter(is_any).collect();
    assert!(measures.len() > 4, "{measures:?}");
    measures
}

#[test]
fn rows_of_every_measure_sum_to_what_the_selection_has_of_it() {
    let root = written();
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    for measure in counted_or_moved(&profile) {
        let expected = MicroJoules(profile.facts(measure).map(|fact| fact.amount).sum());
        for by in [CompareBy::Method, CompareBy::Thread] {
            let found = compare(root.path(), &Filter::default(), None, &Choices { measure, ..choices(by) });
            assert_eq!(found.a.total.energy, expected, "{}", measure.name());
            assert_eq!(found.rows.iter().map(|row| row.b.energy).sum::<MicroJoules>(), expected, "{}", measure.name());
            let of_windows = |spent: &diff::side::Spent| spent.by_window.iter().map(|(_, energy)| *energy).sum();
            assert_eq!(found.rows.iter().map(|row| of_windows(&row.a)).sum::<MicroJoules>(), expected);
            #[allow(clippy::cast_precision_loss, reason = "small numbers")]
            let rate = expected.0 as f64 / 30.0;
            assert!((found.total.change.a / rate - 1.0).abs() < 1e-9, "{} {rate}", found.total.change.a);
            let is_exact = found.rows.iter().all(|row| row.a.sampling == 0.0);
            assert!(is_exact || by == CompareBy::Method, "{}: what a thread has is exact", measure.name());
        }
    }
}

/// Bytes that are called joules would be believed.
#[test]
fn a_comparison_of_bytes_says_bytes_in_every_format() {
    let root = written();
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    for measure in counted_or_moved(&profile) {
        let unit = if measure.unit() == Unit::Bytes { "B/s" } else { "events/s" };
        for format in [Format::Text, Format::Json, Format::Csv, Format::Markdown] {
            let choices = Choices { measure, format, ..choices(CompareBy::Method) };
            let found = compare(root.path(), &Filter::default(), None, &choices);
            let mut said = Vec::new();
            found.write(&choices, None, &mut said).unwrap();
            let said = String::from_utf8(said).unwrap() + &found.junit(&choices);
            assert!(said.contains(unit) && said.contains(measure.name()), "{} {format:?}: {said:.300}", measure.name());
            assert!(
                !said.contains("a_joules") && !said.contains(" J ") && !said.contains(" W "),
                "{format:?}: {said:.300}"
            );
        }
    }
}

/// A figure that is taken for another misleads.
#[test]
fn a_comparison_says_in_its_first_line_what_is_compared() {
    let root = written();
    let work = || Work::OfRuns(vec![10.0]);
    for (per, view, figure, unit) in [
        (Per::Time, View::Itself, "Energy per second of recorded time", "W, by method;"),
        (Per::Cpu, View::Total, "Energy per CPU second", "J/CPU-s, by method, each with what it calls;"),
        (Per::Run, View::Itself, "Energy of a run", "J/run, by method;"),
        (Per::Nothing, View::Itself, "Energy of all runs", "J, by method;"),
        (Per::Work { a: work(), b: work() }, View::Itself, "Energy per unit of work", "J/unit, by method;"),
    ] {
        let choices = Choices { per, view, ..choices(CompareBy::Method) };
        let found = compare(root.path(), &Filter::default(), None, &choices);
        let first = |format| {
            let mut said = Vec::new();
            found.write(&Choices { format, ..choices.clone() }, None, &mut said).unwrap();
            String::from_utf8(said).unwrap().lines().next().unwrap_or_default().to_owned()
        };
        let text = first(Format::Text);
        assert!(text.starts_with(figure) && text.contains(unit), "{text}");
        let markdown = first(Format::Markdown);
        assert!(markdown.starts_with(&format!("**{figure}:** ")), "{markdown}");
    }
}

#[test]
fn a_table_fits_the_terminal_and_keeps_the_figures_and_the_names_of_methods() {
    let root = written();
    let choices = Choices { format: Format::Text, ..choices(CompareBy::Method) };
    let found = compare(root.path(), &Filter::default(), None, &choices);
    let said = |width| {
        let mut said = Vec::new();
        found.write(&choices, width, &mut said).unwrap();
        String::from_utf8(said).unwrap()
    };
    let table = |text: &str| -> Vec<String> {
        text.lines().skip_while(|line| !line.ends_with("  method")).map(str::to_owned).collect()
    };
    for width in [60, 80, 200] {
        let lines = table(&said(Some(width)));
        assert!(lines.len() > 3 && lines[0].trim_start().starts_with("A ") && lines[0].contains("  B "), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:?}");
        assert!(lines.iter().any(|line| line.ends_with(".m100")), "{lines:?}");
    }
    assert!(table(&said(None))[0].contains("95 % interval of %"));
}

#[test]
fn a_measure_that_neither_side_has_is_refused_with_the_flag_that_records_it() {
    let root = written();
    let profile = Profile::read(root.path(), &Filter::default(), None).unwrap();
    let missing = Measure::all().find(|measure| !profile.has(*measure)).unwrap();
    let choices = Choices { measure: missing, ..choices(CompareBy::Method) };
    let refused = diff::run(root.path(), root.path(), &Filter::default(), None, &choices).unwrap_err().to_string();
    assert!(refused.contains(&missing.flag().unwrap()), "{refused}");
}

#[test]
fn a_window_in_which_a_row_did_nothing_counts_as_nothing() {
    let root = written();
    let found = compare(root.path(), &Filter::default(), None, &choices(CompareBy::Process));
    assert_eq!(found.a.windows.len(), usize::try_from(WINDOWS).unwrap());
    let total = &found.total;
    let watts = total.a.energy.joules() / 30.0;
    assert!((total.change.a / watts - 1.0).abs() < 1e-12, "{} {watts}", total.change.a);
    let of_rows: f64 = found.rows.iter().map(|row| row.change.a).sum();
    assert!((of_rows / watts - 1.0).abs() < 1e-9, "{of_rows} {watts}");
}

#[test]
fn what_exact_figures_tell_has_no_sampling_error_and_methods_do() {
    let root = written();
    let sampling = |by| {
        let found = compare(root.path(), &Filter::default(), None, &choices(by));
        found.rows.iter().map(|row| row.a.sampling).fold(0.0, f64::max)
    };
    assert_eq!(sampling(CompareBy::Process), 0.0);
    assert!(sampling(CompareBy::Method) > 0.0);
}

#[test]
fn half_of_a_run_is_compared_with_the_other() {
    let root = written();
    let middle = super::super::profile::Moment::Into(std::time::Duration::from_secs(15));
    let side = |filter: &Filter| diff::Side::read(root.path(), filter, None, &choices(CompareBy::Method)).unwrap();
    let first = side(&Filter { until: Some(middle), ..Filter::default() });
    let second = side(&Filter { since: Some(middle), ..Filter::default() });
    let whole = side(&Filter::default());
    assert_eq!(first.total.energy.saturating_add(second.total.energy), whole.total.energy);
    assert_eq!(first.windows.len() + second.windows.len(), whole.windows.len());
    assert_eq!(first.cpu_ns + second.cpu_ns, whole.cpu_ns);
}
