use super::*;
use crate::{
    dataset::fixture::{RUN_ID, write},
    experiment::growth::Class,
    model::policy::Policy,
};

fn curve(name: &str, joules: impl Fn(f64) -> f64) -> Curve {
    let values = [1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6];
    let points = values.into_iter().flat_map(|value| {
        let runs = [1.0, 1.01, 0.99].into_iter();
        runs.map(move |run| (value, run))
    });
    let points = points.map(|(value, run)| Point { value, joules: joules(value) * run, variance: 1e-6 });
    Curve::of(named(name), points.collect(), 900)
}

fn sweep() -> Sweep {
    let rare = Curve {
        growth: None,
        why_not: Some("it has 3 samples: from 50 on it is fitted".to_owned()),
        ..curve("a.B.rare", |_| 0.01)
    };
    Sweep {
        with_callees: false,
        total: curve("total", |n| 1.0 + 2e-5 * n),
        cpu: curve("CPU seconds", |n| 0.1 + 1e-6 * n),
        methods: vec![curve("a.B.<sort>\u{1b}\"&", |n| 1e-6 * n * n.ln()), rare],
        energy_label: Some("modelled".to_owned()),
    }
}

fn written(format: Format) -> String {
    let mut out = Vec::new();
    sweep().write(format, None, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_format_has_class_and_formula_and_no_name_does_harm() {
    for format in [Format::Text, Format::Csv, Format::Markdown] {
        let text = written(format);
        assert!(text.contains("n log n") && text.contains("1.000 J + 20.000 µJ · n"), "{text}");
        assert!(text.contains("3 samples") && !text.contains('\u{1b}'), "{text}");
    }
    let csv = written(Format::Csv);
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.lines().next().unwrap().split(',').count() == 24, "{csv}");
}

#[test]
fn json_is_read_again_for_a_later_comparison() {
    let (sweep, stored) = (sweep(), serde_json::from_str::<Sweep>(&written(Format::Json)).unwrap());
    assert_eq!(stored.methods[0].name, sweep.methods[0].name);
    assert_eq!(stored.total.growth.unwrap().class, Class::Linear);
    assert_eq!(stored.methods[1].why_not, sweep.methods[1].why_not);
}

#[test]
fn a_drawing_has_a_panel_for_the_total_and_each_method_and_no_name_is_markup() {
    let drawn = sweep().svg(1);
    assert_eq!(drawn.matches("<g ").count(), 2);
    assert_eq!(drawn.matches("<circle").count(), 2 * 21);
    assert_eq!(drawn.matches("<polyline").count(), 2);
    assert!(drawn.contains("&lt;sort&gt;") && !drawn.contains("<sort>") && !drawn.contains('\u{1b}'), "{drawn}");
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    let of_nothing = Sweep { total: curve("total", |_| 0.0), ..sweep() };
    assert!(!of_nothing.svg(9).contains("NaN"));
}

#[test]
fn a_page_has_classes_drawings_and_what_larger_values_need_and_no_name_is_markup() {
    let page = sweep().page(9);
    for expected in
        ["n log n", "1.000 J + 20.000 µJ · n", "<svg ", "n = 2000000", "21 runs with 7 values", "energy is modelled"]
    {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    // 1 J + 20 µJ · 10 000 000.
    assert!(page.contains("<td>201.") || page.contains("<td>200."), "{page}");
    assert!(page.contains("&lt;sort&gt;") && !page.contains("<sort>") && !page.contains('\u{1b}'), "{page}");
    // The name of SVG's elements is the only address.
    assert!(!page.contains("<script") && page.matches("http:").count() == 1, "{page}");
    assert_eq!(page.matches("<tr>").count(), page.matches("</tr>").count());
    let one = sweep().page(1);
    assert!(one.contains("1 more methods need less") && !one.contains("a.B.rare"), "{one}");
}

#[test]
fn methods_of_data_sets_are_the_same_ones_and_each_run_is_a_point() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let steps = |count: u32| -> Vec<(f64, PathBuf)> {
        (1..=count).map(|value| (f64::from(value), root.path().to_owned())).collect()
    };
    let found = Sweep::read(&steps(6), &Filter::default(), None, View::Itself).unwrap();
    assert_eq!(found.total.points.len(), 6, "one run of {RUN_ID} at each value");
    // Sampled energy of methods adds up to the exact total, as each run's does.
    let of_methods: f64 = found.methods.iter().map(Curve::at_largest).sum();
    assert!((of_methods / found.total.at_largest() - 1.0).abs() < 1e-9, "{of_methods}");
    assert!(found.methods.is_sorted_by(|a, b| a.at_largest() >= b.at_largest()));
    assert_eq!(found.total.growth.unwrap().class, Class::Constant);
    assert!(found.methods.iter().all(|curve| curve.points.len() == 6));
    assert!(found.methods.iter().all(|curve| curve.growth.is_some() == (curve.samples >= LEAST_SAMPLES)));
    let too_few = Sweep::read(&steps(3), &Filter::default(), None, View::Total);
    assert!(matches!(too_few, Err(SweepError::Growth(GrowthError::TooFewValues { found: 3 }))));
}

#[test]
fn a_method_without_a_sample_has_nothing_with_the_variance_of_one_sample() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let choices = Choices {
        measure: Measure::Energy,
        by: CompareBy::Method,
        view: View::Itself,
        per: Per::Run,
        margin: 0.0,
        fail_above: None,
        fail_on: FailOn::Total,
        top: None,
        format: Format::Text,
        again_in: None,
    };
    let side = Side::read(root.path(), &Filter::default(), None, &choices).unwrap();
    let one = one_sample(&side);
    let absent = method(&named("not.There.atAll"), &[(1.0, side)]);
    assert_eq!(absent.points.iter().map(|point| point.joules).collect::<Vec<_>>(), [0.0]);
    assert!((absent.points[0].variance / one.powi(2) - 1.0).abs() < 1e-9);
    assert!(absent.growth.is_none() && absent.why_not.unwrap().starts_with("it has 0 samples"));
}
