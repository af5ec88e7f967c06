use super::*;
use crate::report::{Format, diff::estimate::Replicates};

fn run(order: u32, joules: f64) -> Replicate {
    Replicate { order, joules, seconds: 2.0, cpu_seconds: 1.5, ..Replicate::default() }
}

fn variant(name: &str, joules: &[f64]) -> Variant {
    Variant { name: name.into(), replicates: (0..).zip(joules).map(|(order, joules)| run(order, *joules)).collect() }
}

#[test]
fn figures_are_those_of_the_textbook() {
    let stats = Stats::of(&[10.0, 12.0, 11.0, 15.0]);
    assert_eq!((stats.n, stats.mean, stats.median, stats.min, stats.max), (4, 12.0, 11.5, 10.0, 15.0));
    assert!((stats.stddev - 2.160_247).abs() < 1e-6, "{stats:?}");
    let (low, high) = stats.interval.unwrap();
    // t of 3 degrees of freedom is 3.182446.
    assert!((low - (12.0 - 3.437_5)).abs() < 1e-3 && (high - (12.0 + 3.437_5)).abs() < 1e-3, "{low} {high}");
    assert_eq!(Stats::of(&[1.0]).interval, None);
    assert!(Stats::of(&[1.0, 2.0]).interval.is_some());
}

#[test]
fn a_figure_by_work_is_the_one_that_diff_computes_of_runs() {
    let (joules, work) = ([10.0, 30.0, 21.0], [1.0, 2.0, 3.0]);
    let runs = joules.iter().zip(work).map(|(joules, work)| Replicate { work: Some(work), ..run(0, *joules) });
    let variant = Variant { name: "a".into(), replicates: runs.collect() };
    let summary = summarize(&[variant]);
    assert_eq!(summary.ranking.figure, Figure::JoulesPerWork);
    let found = summary.variants[0].joules_per_work.unwrap().estimate();
    let energies: Vec<(usize, f64)> = joules.into_iter().enumerate().collect();
    let expected = Replicates::of_runs(work.to_vec()).estimate(&energies, 0.0);
    assert!((found.rate - expected.rate).abs() < 1e-12, "{found:?} {expected:?}");
    assert!((found.variance.unwrap() - expected.variance.unwrap()).abs() < 1e-12, "{found:?} {expected:?}");
    assert_eq!(found.freedom, expected.freedom);
}

#[test]
fn work_that_one_run_lacks_ranks_nothing() {
    let mut other = variant("b", &[4.0, 5.0]);
    other.replicates[0].work = Some(10.0);
    let summary = summarize(&[variant("a", &[3.0]), other]);
    assert_eq!(summary.ranking.figure, Figure::Joules);
    assert!(summary.variants.iter().all(|variant| variant.joules_per_work.is_none()));
}

#[test]
fn the_best_comes_first_and_others_are_judged_against_it() {
    let variants = [
        variant("much", &[20.0, 20.2, 19.8, 20.1]),
        variant("least", &[10.0, 10.1, 9.9, 10.05]),
        variant("alike", &[10.02, 10.1, 9.95, 10.06]),
        variant("noisy", &[4.0, 30.0, 11.0, 8.0]),
        variant("once", &[12.0]),
        variant("none", &[]),
    ];
    let summary = summarize(&variants);
    let found: Vec<(String, Standing)> =
        summary.ranking.rows.iter().map(|row| (row.name.to_string(), row.standing)).collect();
    let expected = [
        ("least", Standing::Best),
        ("alike", Standing::NoChange),
        ("once", Standing::NotEnoughRuns),
        ("noisy", Standing::NotCertain),
        ("much", Standing::More),
    ];
    assert_eq!(found, expected.map(|(name, standing)| (name.to_owned(), standing)));
    let (low, high) = summary.ranking.rows[4].ratio_interval.unwrap();
    assert!(low < 2.0 && 2.0 < high && high - low < 0.1, "{low} {high}");
    assert!(summary.remarks()[0].starts_with("none: not ranked"), "{:?}", summary.remarks());
}

#[test]
fn probabilities_are_corrected_as_holm_does() {
    let found = ranking::holm(&[0.01, 0.04, 0.03, 0.005]);
    for (found, expected) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

#[test]
fn a_run_far_off_is_pointed_at_and_still_counts() {
    let mut joules = vec![10.0, 10.1, 9.9, 10.2, 9.8, 10.05, 9.95, 10.1, 9.9, 10.0];
    let found = |joules: &[f64]| summarize(&[variant("a", joules)]).variants[0].outliers.clone();
    assert_eq!(found(&joules), []);
    joules[3] = 13.0;
    let outliers = found(&joules);
    assert_eq!(outliers.iter().map(|run| run.order).collect::<Vec<_>>(), [3]);
    assert!((outliers[0].score - 0.6745 * 3.0 / 0.1).abs() < 0.1, "{outliers:?}");
    assert_eq!(found(&joules[..9]), [], "of fewer runs nothing is said");
    assert_eq!(summarize(&[variant("a", &joules)]).variants[0].runs, 10);
    let mostly_equal = [5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 50.0];
    assert_eq!(found(&mostly_equal).iter().map(|run| run.order).collect::<Vec<_>>(), [9]);
}

#[test]
fn a_drift_names_what_it_goes_with_and_what_to_do() {
    let runs = (0..20).map(|order| {
        let joules = 10.0 * (1.0 + 0.005 * f64::from(order)) + f64::from(order * 7 % 5) / 50.0;
        Replicate { temperature_celsius: Some(50.0), ..run(order, joules) }
    });
    let summary = summarize(&[Variant { name: "a".into(), replicates: runs.collect() }]);
    assert_eq!(summary.drifts.iter().map(|drift| drift.with).collect::<Vec<_>>(), [Covariate::Order]);
    let drift = &summary.drifts[0];
    assert!((drift.slope - 0.0048).abs() < 4e-4 && drift.p < 1e-6, "{drift:?}");
    assert!(drift.sentence.starts_with("the last run needs 9.") && drift.sentence.contains("warm up"), "{drift:?}");
}

#[test]
fn runs_that_cannot_be_are_no_figures() {
    let broken = Replicate { seconds: 0.0, work: Some(0.0), ..run(0, 1.0) };
    let summary = summarize(&[Variant { name: "a".into(), replicates: vec![broken] }, Variant::default()]);
    let variant = &summary.variants[0];
    assert!(variant.watts.is_none() && variant.joules_per_work.is_none() && variant.joules.is_some());
    assert_eq!(summarize(&[]).ranking.rows, []);
}

fn written(format: Format) -> String {
    let summary = summarize(&[variant("=new|\u{1b}[2J", &[2.0, 2.2, 2.1]), variant("base", &[1.0, 1.1, 1.05])]);
    let mut out = Vec::new();
    summary.write(format, None, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_format_has_each_variant_and_no_name_does_harm() {
    for format in [Format::Text, Format::Json, Format::Csv, Format::Markdown] {
        let text = written(format);
        assert!(!text.contains('\u{1b}') && text.contains("base") && text.contains("more"), "{text}");
    }
    let text = written(Format::Markdown);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[2].starts_with("| `base` | 1.050 ± 0.050 | 0.926 … 1.174 | 1.000 | 1.100 | 1.00 | best |"), "{text}");
    assert!(lines[3].contains("\\x7c") && lines[3].contains("| 2.00 ("), "{text}");
    let csv = written(Format::Csv);
    let columns = |line: &str| line.split(',').count();
    let counts: Vec<usize> = csv.lines().map(columns).collect();
    assert_eq!(counts, [48; 3], "{csv}");
    assert!(csv.starts_with("variant,runs,joules_mean,joules_stddev,joules_median,joules_min,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&written(Format::Json)).unwrap();
    assert_eq!(json["ranking"]["rows"][1]["standing"], "more");
    assert_eq!(json["variants"][1]["joules"]["mean"], 1.05);
    assert!(json["precision"].is_null() && csv.lines().all(|line| !line.contains("true")), "{csv}");
}

#[test]
fn every_format_says_whether_intervals_are_as_narrow_as_wanted() {
    let variants = [variant("a", &[2.0, 2.01, 2.02]), variant("b", &[1.0, 1.1, 1.05])];
    for (wanted, is_reached) in [(50.0, true), (5.0, false)] {
        let summary = summarize(&variants).with_precision(Some(Precision::of(&variants, wanted)));
        let said = |format| {
            let mut out = Vec::new();
            summary.write(format, None, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        for format in [Format::Text, Format::Markdown] {
            let expected = if is_reached { "interval: within ±" } else { "warning: the interval of b is ±" };
            assert!(said(format).contains(expected), "{}", said(format));
        }
        let ends = said(Format::Csv).lines().skip(1).all(|line| line.ends_with(&format!(",{is_reached}")));
        assert!(ends, "{}", said(Format::Csv));
        let json: serde_json::Value = serde_json::from_str(&said(Format::Json)).unwrap();
        assert_eq!(json["precision"]["is_reached"], is_reached);
    }
}

#[test]
fn a_table_of_latex_has_each_variant_and_no_name_does_harm() {
    let summary = summarize(&[variant("=new&_\u{1b}", &[2.0, 2.2, 2.1]), variant("base", &[1.0, 1.1, 1.05])]);
    let text = summary.labelled(Some(Label::Modelled)).latex();
    for expected in [
        "Energy of each variant over 3 runs",
        "    variant & mean $\\pm$ $\\sigma$ [J] & 95 \\% & min & max & relative & verdict \\\\\n",
        "    \\texttt{base} & 1.050 $\\pm$ 0.050 & 0.926 \\ldots{} 1.174 & 1.000 & 1.100 & 1.00 & best \\\\\n",
        "\\texttt{=new\\&\\_\\textbackslash{}x1b} & 2.100",
        "  \\par\\footnotesize energy is modelled\n",
    ] {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(text.starts_with("% Needs \\usepackage{booktabs}.\n\\begin{table}\n") && text.ends_with("\\end{table}\n"));
    let uneven = summarize(&[variant("a", &[2.0, 2.2]), variant("b", &[1.0, 1.1, 1.05])]);
    assert!(uneven.latex().contains("over 2 to 3 runs") && summarize(&[]).latex().contains("over 0 runs"));
}
