use super::*;
use crate::{
    dataset::fixture::{RUN_ID, write, write_as},
    experiment::{
        growth::{Class, ClassChange, ClassVerdict, Doubt, compare},
        plot::PlotFormat,
    },
    model::policy::Policy,
    noise::Noise,
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
    sweep().write(format, None, None, &mut out).unwrap();
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
    let (sweep, stored) = (sweep(), Sweep::stored(&written(Format::Json)).unwrap());
    assert_eq!(stored.methods[0].name, sweep.methods[0].name);
    let said = |sweep: &Sweep| sweep.total.growth.as_ref().map(Growth::described);
    assert_eq!((said(&stored), said(&sweep)), (Some("n or n log n".to_owned()), Some("n or n log n".to_owned())));
    assert_eq!(stored.methods[1].why_not, sweep.methods[1].why_not);
}

#[test]
fn a_drawing_has_a_panel_for_the_total_and_each_method_and_no_name_is_markup() {
    let drawn = sweep().svg(1);
    assert_eq!(drawn.matches("<title>").count(), 2);
    assert_eq!(drawn.matches("<circle").count(), 2 * 21);
    assert_eq!(drawn.matches("stroke=\"#2e86ab\"").count(), 2);
    assert!(drawn.contains("&lt;sort&gt;") && !drawn.contains("<sort>") && !drawn.contains('\u{1b}'), "{drawn}");
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    let of_nothing = Sweep { total: curve("total", |_| 0.0), ..sweep() };
    assert!(!of_nothing.svg(9).contains("NaN"));
}

#[test]
fn a_drawing_is_written_as_pdf_too() {
    let plot =
        Sweep { methods: vec![curve("例.B.sort", |n| 1e-6 * n)], ..sweep() }.drawing(9).plot(PlotFormat::Pdf).unwrap();
    assert!(plot.bytes.starts_with(b"%PDF-") && plot.spelled_out.contains(&'例'), "{:?}", plot.spelled_out);
    // Formulas and classes are of characters that the font has.
    let own = sweep().drawing(9).plot(PlotFormat::Pdf).unwrap();
    assert_eq!(own.remark(), None);
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
    assert!(page.contains("<td>201 J (") || page.contains("<td>200 J ("), "{page}");
    assert!(page.contains("&lt;sort&gt;") && !page.contains("<sort>") && !page.contains('\u{1b}'), "{page}");
    // The name of SVG's elements is the only address.
    assert!(!page.contains("<script") && page.matches("http:").count() == 1, "{page}");
    assert_eq!(page.matches("<tr>").count(), page.matches("</tr>").count());
    let one = sweep().page(1);
    assert!(one.contains("1 more methods need less") && !one.contains("a.B.rare"), "{one}");
}

#[test]
fn nothing_is_predicted_of_what_explains_nothing_or_may_be_anything() {
    let predicted = |curve: &Curve, value| page::predicted(curve, value, None);
    let line = curve("a.B.line", |n| 1.0 + 2e-5 * n);
    assert!(predicted(&line, 1e9).contains(" kJ ("), "{}", predicted(&line, 1e9));
    let constant = curve("a.B.constant", |n| if [3e3, 3e4, 3e5].contains(&n) { 19.95 } else { 20.05 });
    assert_eq!(constant.growth.as_ref().map(|growth| growth.class), Some(Class::Constant));
    assert_eq!(predicted(&constant, 1e7), "–");
    // Some noisy points cannot tell a line from what needs a million times as much at a thousand times the range.
    let mut open = line;
    open.growth.iter_mut().for_each(|growth| growth.alternatives = vec![Class::Cubic]);
    assert_eq!(predicted(&open, 1e9), "–");
    let page = Sweep { total: constant, ..sweep() }.page(9);
    assert!(page.contains("<td>a.B.constant</td><td>–</td><td>–</td><td>–</td>"), "{page}");
    let longest = page.split(|c: char| !c.is_ascii_digit()).map(str::len).max();
    assert!(longest <= Some(10), "a figure has {longest:?} digits: {page}");
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
    let too_few = Sweep::read(&steps(4), &Filter::default(), None, View::Total);
    assert!(matches!(too_few, Err(SweepError::Growth(GrowthError::TooFewValues { found: 4 }))));
}

/// Repeated runs show how much CPU time varies, as they do of energy.
#[test]
fn each_run_is_a_point_of_cpu_time_too() {
    let root = tempfile::tempdir().unwrap();
    let runs = ["a", "b", "c"];
    runs.iter().for_each(|run| write_as(root.path(), Policy::default(), run));
    let steps: Vec<(f64, PathBuf)> = (1..=5).map(|value| (f64::from(value), root.path().to_owned())).collect();
    let found = Sweep::read(&steps, &Filter::default(), None, View::Itself).unwrap();
    assert_eq!((found.cpu.points.len(), found.total.points.len()), (15, 15));
    let side = Side::read(root.path(), &Filter::default(), None, &choices()).unwrap();
    let of_runs: f64 = found.cpu.points.iter().take(runs.len()).map(|point| point.joules).sum();
    assert!(side.cpu_ns > 0 && (of_runs - crate::text::seconds(side.cpu_ns)).abs() < 1e-6, "{of_runs}");
}

fn choices() -> Choices {
    Choices {
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
    }
}

#[test]
fn a_method_without_a_sample_has_nothing_with_the_variance_of_one_sample() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let side = Side::read(root.path(), &Filter::default(), None, &choices()).unwrap();
    let one = one_sample(&side);
    let absent = method(&named("not.There.atAll"), &[(1.0, side)]);
    assert_eq!(absent.points.iter().map(|point| point.joules).collect::<Vec<_>>(), [0.0]);
    assert!((absent.points[0].variance / one.powi(2) - 1.0).abs() < 1e-9);
    assert!(absent.growth.is_none() && absent.why_not.unwrap().starts_with("it has 0 samples"));
}

/// Sweeps of forty methods whose runs vary by 5 %. In the first pair, one of them changed.
#[test]
fn of_many_methods_that_did_not_change_none_fails_a_gate() {
    const METHODS: u32 = 40;
    let mut noise = Noise(31);
    let values = [1e3, 3e3, 1e4, 3e4, 1e5, 3e5, 1e6];
    let mut method = |at: u32, square: f64| {
        let runs = values.into_iter().flat_map(|value| [value; 3]);
        let joules = |n: f64| 1.0 + if square > 0.0 { square * n * n } else { 2e-5 * n };
        let point = |value| Point { value, joules: joules(value) * noise.around_one(0.05), variance: 0.0 };
        Curve::of(named(&format!("a.B.m{at}")), runs.map(point).collect(), 900)
    };
    let (mut seeming, mut failing) = (0, 0);
    for pair in 0..5 {
        let before = Sweep { methods: (0..METHODS).map(|at| method(at, 0.0)).collect(), ..sweep() };
        let changed = METHODS - 1;
        let square = |at| if at == changed && pair == 0 { 1e-10 } else { 0.0 };
        let after = Sweep { methods: (0..METHODS).map(|at| method(at, square(at))).collect(), ..sweep() };
        let judged = after.against(&before);
        assert_eq!(judged.len(), 41);
        assert!(pair > 0 || judged.last().is_some_and(Judged::fails), "{:?}", judged.last().map(|last| &last.change));
        let equal = judged.iter().filter(|judged| judged.curve.name != named("a.B.m39").name);
        seeming += equal.clone().filter(|judged| judged.change.verdict == ClassVerdict::Changed).count();
        failing += equal.filter(|judged| judged.fails()).count();
    }
    assert_eq!((seeming, failing), (0, 0), "of 199 methods that did not change");
}

#[test]
fn one_changed_method_of_many_is_a_hint() {
    let line = |name: &str| curve(name, |n| 1.0 + 2e-5 * n).growth.unwrap();
    let same = compare(&line("a"), &line("b"));
    // One method of thirty looks so by chance.
    let seeming = ClassChange { verdict: ClassVerdict::Changed, chance: 0.03, ..same.clone() };
    let changed = ClassChange { chance: 1e-4, ..seeming.clone() };
    let stands = |change: &ClassChange, others: &ClassChange, many: usize| {
        let all: Vec<&ClassChange> = std::iter::once(change).chain(std::iter::repeat_n(others, many)).collect();
        against::stand(&all)[0]
    };
    assert!(stands(&seeming, &same, 0) && !stands(&seeming, &same, 39));
    assert!(stands(&changed, &same, 39));
    // What could not be compared is no chance to look so.
    let untested = ClassChange { doubt: Some(Doubt::Ranges), verdict: ClassVerdict::NotCertain, ..same.clone() };
    assert!(stands(&seeming, &untested, 39));
}
