use std::path::Path;

use super::super::{
    Format,
    diff::{self, Choices, CompareBy, Comparison, FailOn, Per, View},
    profile::{App, Filter, Names, Profile},
};
use crate::{dataset::fixture::*, model::policy::Policy, model::units::*};

fn choices(by: CompareBy) -> Choices {
    Choices {
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
