//! Divides a data set by counts of requests.

use std::path::Path;

use super::*;
use crate::report::tests::handlers::written;

fn read_counts(root: &Path, filter: &Filter, text: &str) -> Result<PerRoute, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let wanted = RequestsWanted { filter: filter.clone(), counts: file.path().to_owned(), format: Format::Text };
    read(root, &wanted).map_err(|error| error.to_string())
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn a_route_of_all_handlers_has_all_their_energy_and_with_its_load_all_of_their_processes() {
    let (root, rules) = written();
    let filter = Filter { handler_rules: Some(rules), ..Filter::default() };
    let all = read_counts(root.path(), &filter, "route,count,handler\nall,1000,*\n").unwrap();
    let (route, needs) = (&all.routes[0], all.routes[0].needs.unwrap());
    assert!(all.no_handler_uj > 0 && all.other_handlers_uj == 0);
    assert_eq!(route.energy_uj + all.no_handler_uj, all.processes_uj);
    #[allow(clippy::cast_precision_loss, reason = "small figures")]
    let joules = |micros: u64| micros as f64 / 1e6 / 1000.0;
    assert!(close(needs.direct.joules, joules(route.energy_uj)), "{needs:?}");
    assert!(
        needs.loaded.joules >= needs.direct.joules && needs.loaded.joules <= joules(all.processes_uj) * (1.0 + 1e-9)
    );
    for figure in [needs.direct, needs.loaded] {
        assert!(figure.low < figure.joules && figure.joules < figure.high, "{figure:?}");
    }
}

#[test]
fn requests_of_two_times_add_up() {
    let (root, rules) = written();
    // Windows without samples are divided by those around them, so that halves would not add up.
    let filter = Filter { handler_rules: Some(rules), no_infer: true, ..Filter::default() };
    let whole = read_counts(root.path(), &filter, "route,count,handler\nall,100,*\n").unwrap();
    let middle = crate::dataset::fixture::STARTED / 1_000_000 + 12;
    // Times of equal patterns are one, and those of others are not.
    for pattern in ["*", "**"] {
        let halves = format!("route,count,handler,begin,end\nall,60,*,,{middle}\nall,40,{pattern},{middle},\n");
        let halves = read_counts(root.path(), &filter, &halves).unwrap();
        assert_eq!((halves.routes[0].requests, halves.processes_uj), (100, whole.processes_uj));
        assert_eq!(halves.routes[0].samples, whole.routes[0].samples);
        assert_eq!(halves.routes[0].energy_uj, whole.routes[0].energy_uj);
    }
}

#[test]
fn requests_that_were_counted_while_nothing_was_recorded_divide_nothing() {
    let (root, rules) = written();
    let filter = Filter { handler_rules: Some(rules), ..Filter::default() };
    let whole = read_counts(root.path(), &filter, "route,count,handler\nall,100,*\n").unwrap();
    let long_before = "route,count,handler,begin,end\nall,100,*,,\nall,7,*,1,10\n";
    let found = read_counts(root.path(), &filter, long_before).unwrap();
    assert_eq!((found.routes[0].requests, found.coverage.left_out_requests, found.coverage.counted_us), (100, 7, 0));
    assert_eq!(found.routes[0].needs, whole.routes[0].needs);
    let alone = read_counts(root.path(), &filter, "route,count,handler,begin,end\nall,7,*,1,10\n").unwrap();
    assert_eq!(alone.routes[0].why_not.as_deref(), Some("no request was counted"));
}

#[test]
fn what_is_not_known_well_enough_has_no_figure_and_says_why() {
    let (root, rules) = written();
    let filter = Filter { handler_rules: Some(rules), ..Filter::default() };
    let found = read_counts(root.path(), &filter, "route,count\nall.handlers,0\nnone.such,5\n").unwrap();
    let why: Vec<_> = found.routes.iter().map(|route| route.why_not.clone().unwrap()).collect();
    assert_eq!(why[0], "no request was counted");
    assert!(why[1].starts_with("no sample is of a handler with such a name"), "{why:?}");
    let same = read_counts(root.path(), &filter, "route,count,handler\n/a,1,*\n/b,1,*\n").unwrap_err();
    assert!(same.contains("routes /a and /b have the same handler"), "{same}");
}

#[test]
fn every_format_has_all_routes_and_names_are_harmless() {
    let (root, rules) = written();
    let filter = Filter { handler_rules: Some(rules), ..Filter::default() };
    let mut found =
        read_counts(root.path(), &filter, "route,count,handler\n=all|\u{1b}[2J,1000,*\nnone.such,5,none\n").unwrap();
    let mut written = |format| {
        found.format = format;
        let mut out = Vec::new();
        found.write(None, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = written(Format::Text);
    assert!(text.contains("mJ/request") && text.contains("none.such: no sample is of a handler"), "{text}");
    assert!(text.contains("is of no handler, which loaded figures share out") && text.contains("Energy is "), "{text}");
    let json: serde_json::Value = serde_json::from_str(&written(Format::Json)).unwrap();
    assert!(json["routes"][0]["needs"]["loaded"]["high"].as_f64().unwrap() > 0.0, "{json}");
    assert_eq!(json["routes"][1]["needs"], serde_json::Value::Null);
    let csv = written(Format::Csv);
    assert!(csv.lines().count() == 3 && csv.contains("\n'=all|\\x1b[2J,1000,"), "{csv}");
    let markdown = written(Format::Markdown);
    assert!(markdown.starts_with("| route | mJ/request | ") && markdown.contains("`=all\\x7c\\x1b[2J`"), "{markdown}");
    assert!(![&text, &csv, &markdown].iter().any(|said| said.contains('\u{1b}')));
}
