//! Tests that whoever shows a method's energy shows the same 95 % interval: the summary at a run's
//! end, a report, the page in a browser, and the SQL of the documents as far as it can.

use std::{collections::BTreeMap, fs, path::Path};

use joular_tests::{browser, browser::Browser, dataset, notes, paths};
use serde_json::Value;

use crate::{joular_bpf, replay::recording};

/// What a run printed at its end, and its data set.
fn recorded(data: &Path) -> String {
    let finished = joular_bpf(&["--replay", &recording(), "--output", data.to_str().unwrap()]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    finished.stdout + &finished.stderr
}

fn printed(arguments: &[&str]) -> String {
    let finished = joular_bpf(arguments);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    finished.stdout
}

/// Intervals by method, of lines that begin with joules and an interval and end with a name.
fn intervals<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let interval = words.iter().take(3).find(|word| word.contains('–') || **word == "exact")?;
        let name = line.rsplit("  ").next()?.rsplit(" %  ").next()?;
        Some((name.trim().to_owned(), (*interval).to_owned()))
    };
    lines.filter_map(of_line).collect()
}

const NOTE: &str = "Intervals cover sampling only. The energy is modelled";

#[test]
fn summary_report_and_page_print_the_same_interval() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("out");
    let summary = recorded(&data);
    let (_, methods) = summary.split_once("Methods by self energy, with the 95 % interval").unwrap();
    let of_summary = intervals(methods.lines().skip(1).take_while(|line| !line.is_empty()));
    let report = printed(&["report", data.to_str().unwrap(), "--by", "method", "--top", "0", "--all-frames"]);
    assert!(report.contains("95 % FROM–TO"), "{report}");
    let of_report = intervals(report.lines());
    assert!(of_summary.values().filter(|interval| interval.contains('–')).count() >= 4, "{of_summary:?}");
    for (method, interval) in &of_summary {
        // A report has methods without self energy too, and tells them apart by their module.
        let with_module = format!("{method} (");
        let mut same = of_report.iter().filter(|(name, _)| *name == method || name.starts_with(&with_module));
        assert!(same.any(|(_, of_report)| of_report == interval), "{method} {interval}: {of_report:?}");
    }
    // Once in each, not with every row.
    for text in [&summary, &report] {
        assert_eq!(text.matches(NOTE).count(), 1, "{text}");
    }
    let json: Value =
        serde_json::from_str(&printed(&["report", data.to_str().unwrap(), "--by", "method", "--json"])).unwrap();
    assert!(json["interval_note"].as_str().unwrap().starts_with(NOTE), "{json}");

    let Some(program) = browser::program() else {
        notes::skipped("there is no Chromium (`cargo xtask setup` installs it on Debian)");
        return;
    };
    let page = parent.path().join("page.html");
    printed(&["html", data.to_str().unwrap(), "--output", page.to_str().unwrap()]);
    let mut browser = Browser::start(program).unwrap();
    browser.open(&page).unwrap();
    browser.eval("document.getElementById('all-frames').click()").unwrap();
    let rows = "JSON.stringify([...document.querySelectorAll('#method-table tbody tr')].map((row) => \
                [row.querySelector('.package').textContent + row.querySelector('.short').textContent, \
                 row.children[2].querySelector('.dim').textContent]))";
    let rows: Vec<(String, String)> = serde_json::from_str(&browser.text(rows).unwrap()).unwrap();
    let of_page: BTreeMap<&str, &str> = rows.iter().map(|(name, shown)| (name.trim(), shown.trim())).collect();
    let mut compared = 0;
    for (method, interval) in of_report.iter().filter(|(_, interval)| interval.contains('–')) {
        // Overloads are told apart otherwise there.
        if let Some(shown) = of_page.get(method.as_str()) {
            assert_eq!(joules(shown), joules(&format!("{interval} J")), "{method}: {shown}, {interval}");
            compared += 1;
        }
    }
    assert!(compared >= 4, "{of_page:?}");
    assert!(browser.text("document.getElementById('method-note').textContent").unwrap().contains(NOTE));
}

/// The ends of an interval, in whole microjoules.
fn joules(interval: &str) -> Vec<i64> {
    let (ends, unit) = interval.rsplit_once(' ').unwrap();
    let exponent = match unit {
        "J" => "e6",
        "mJ" => "e3",
        _ => panic!("{interval}"),
    };
    #[allow(clippy::cast_possible_truncation, reason = "small figures")]
    let whole = |end: &str| format!("{end}{exponent}").parse::<f64>().unwrap().round() as i64;
    ends.split('–').map(whole).collect()
}

/// The SQL takes all threads for one, so its intervals are as wide or wider.
#[test]
fn the_documented_query_gives_intervals_of_sums_of_rows() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("out");
    recorded(&data);
    let document = fs::read_to_string(paths::root().join("docs/schema.md")).unwrap();
    let query = document.split("```sql\n").find(|part| part.starts_with("WITH sums")).unwrap();
    let query = query.split("```").next().unwrap().trim_end().trim_end_matches(';');
    let query = query.replace("'out/methods/**/*.parquet'", &format!("'{}/methods/**/*.parquet'", data.display()));
    let rows = dataset::DataSet::at(&data).rows(&query).unwrap();
    // The rows are as they were recorded.
    let arguments = ["report", data.to_str().unwrap(), "--by", "method", "--top", "0", "--json", "--no-infer"];
    let report: Value = serde_json::from_str(&printed(&arguments)).unwrap();
    let reported: BTreeMap<(&str, Option<&str>, Option<&str>), &Value> = report["tables"][0]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ((row["method"].as_str().unwrap(), row["signature"].as_str(), row["module"].as_str()), row))
        .collect();
    assert!(rows.len() >= 4, "{rows:?}");
    for row in &rows {
        let key = (row["method"].as_str().unwrap(), row["signature"].as_str(), row["module"].as_str());
        let report = reported[&key];
        let joules = |name: &str| report[name].as_f64().unwrap() / 1e6;
        let [energy, low, high] = ["joules", "low", "high"].map(|name| row[name].as_f64().unwrap());
        assert!((energy - joules("self_uj")).abs() < 2e-6, "{row} {report}");
        assert!(low <= energy && energy <= high, "{row}");
        let (width, of_report) = (high - low, joules("self_high_uj") - joules("self_low_uj"));
        assert!((0.95..4.0).contains(&(width / of_report)), "{row} {report}");
    }
}
