//! Tests what is made of a recording's garbage collections: the page's diagrams, and reports with the collector's energy
//! at the methods that allocated.

use std::{collections::BTreeMap, fs};

use joular_tests::{browser, browser::Browser, notes};
use serde_json::Value;

use crate::{
    replay::recording,
    replayed::{Set, expect_success},
};

/// The data set of a recording with collections.
fn recorded() -> Set {
    Set::fixture("collections.jrec")
}

/// The report, and self energy by method as it has it.
fn report(set: &Set, options: &[&str]) -> (Value, BTreeMap<String, u64>) {
    let finished = set.run("report", &[&["--json", "--top", "0"], options].concat());
    expect_success(&finished);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let mut by_method = BTreeMap::new();
    for row in report["tables"][0]["rows"].as_array().unwrap() {
        *by_method.entry(row["method"].as_str().unwrap().to_owned()).or_default() += row["self_uj"].as_u64().unwrap();
    }
    (report, by_method)
}

#[test]
fn the_collectors_energy_is_at_the_methods_that_sql_finds_charged() {
    let set = recorded();
    let (own, own_energy) = report(&set, &["--no-infer"]);
    for (option, column) in [("--charge-gc", "gc_charged_uj"), ("--charge-gc=survived", "gc_charged_by_survival_uj")] {
        let (charged, energy) = report(&set, &["--no-infer", option]);
        assert_eq!(charged["selection"]["energy_uj"], own["selection"]["energy_uj"], "{option}");
        let rows = set.rows(&format!(
            "SELECT coalesce(s.frames[-1].class || '.', '') || s.frames[-1].method AS method, sum({column})::BIGINT AS uj
             FROM gc_charges JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames FROM stacks) s USING (stack_id)
             GROUP BY 1 HAVING uj > 0"
        ));
        let mut all = 0;
        for row in &rows {
            let (method, uj) = (row["method"].as_str().unwrap(), row["uj"].as_u64().unwrap());
            all += uj;
            // Threads of the collector lose what no sample hit.
            if method != "[no sample]" {
                let before = own_energy.get(method).copied().unwrap_or(0);
                assert_eq!(energy.get(method).copied().unwrap_or(0), before + uj, "{option}: {method}");
            }
        }
        assert!(all > 500_000, "{option}: {rows:?}");
        assert_eq!(charged["gc_charged_uj"], all, "{option}");
    }
}

#[test]
fn what_lives_is_charged_for_survivors_and_what_dies_is_not() {
    let set = recorded();
    let rows = set.rows(
        "SELECT s.frames[-1].method AS method, sum(gc_charged_uj)::BIGINT AS allocated,
           sum(gc_charged_by_survival_uj)::BIGINT AS survived
         FROM gc_charges JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames FROM stacks) s USING (stack_id)
         WHERE s.frames[-1].class = 'Collections' GROUP BY 1",
    );
    let of = |method: &str, figure: &str| {
        rows.iter().find(|row| row["method"] == method).and_then(|row| row[figure].as_f64()).unwrap()
    };
    let share = |figure: &str| of("often", figure) / (of("often", figure) + of("seldom", figure));
    assert!((share("allocated") - 0.5).abs() < 0.1, "{rows:?}");
    assert!(share("survived") > 0.95, "{rows:?}");
}

#[test]
fn audit_derives_every_charge_again() {
    let set = recorded();
    let finished = set.run("audit", &[]);
    expect_success(&finished);
    assert!(finished.stdout.contains(" collection rows with "), "{finished:?}");
    assert!(finished.stdout.contains("every microjoule is accounted for"), "{finished:?}");
}

#[test]
fn a_recording_without_charges_is_refused_with_advice() {
    let set = Set::of(&recording());
    for (command, options) in [("report", &["--charge-gc"][..]), ("html", &["--charge-gc", "--output", "-"])] {
        let finished = set.run(command, options);
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        assert!(finished.stderr.contains("record with --alloc"), "{finished:?}");
    }
    let wrong = set.run("report", &["--charge-gc=size"]);
    assert!(wrong.code() != Some(0) && wrong.stderr.contains("allocated or survived"), "{wrong:?}");
}

#[test]
fn the_page_draws_collections_ages_and_allocation_if_there_are_any() {
    let Some(program) = browser::program() else {
        return notes::skipped("there is no Chromium (`cargo xtask setup` installs it on Debian)");
    };
    let mut browser = Browser::start(program).unwrap();
    let page = |set: &Set| {
        let page = set.path("page.html");
        expect_success(&set.run("html", &["--output", &page]));
        assert!(fs::metadata(&page).unwrap().len() > 10_000);
        page
    };
    let without = Set::of(&recording());
    browser.open(page(&without).as_ref()).unwrap();
    assert_eq!(browser.text("String(document.getElementById('collections').hidden)").unwrap(), "true");

    let set = recorded();
    browser.open(page(&set).as_ref()).unwrap();
    assert_eq!(browser.text("String(document.getElementById('collections').hidden)").unwrap(), "false");
    // A bar for each collection, with what it did.
    let collections = set.rows("SELECT count(*)::BIGINT AS n FROM (SELECT DISTINCT collector, start FROM collections)");
    let bars = browser.text("String(document.querySelectorAll('#heap-chart rect').length)").unwrap();
    assert_eq!(bars, collections[0]["n"].to_string());
    for strip in ["#power-chart", "#thread-chart"] {
        let bars = browser.text(&format!("String(document.querySelectorAll('{strip} .collection').length)")).unwrap();
        assert_eq!(bars, collections[0]["n"].to_string(), "{strip}");
    }
    let said = browser.text("document.querySelector('#heap-chart rect title').textContent").unwrap();
    assert!(said.contains("G1 ") && said.contains(" MB → ") && said.contains("J, at "), "{said}");
    // A row for each collector and cause, with the number that SQL counts.
    let rows =
        set.rows("SELECT count(DISTINCT start)::BIGINT AS n FROM collections WHERE cause = 'G1 Evacuation Pause'");
    let table = browser.text("document.getElementById('collection-table').textContent").unwrap();
    assert!(table.contains(&format!("G1 Evacuation Pause{}", rows[0]["n"])), "{table}");
    // The oldest age that any object has, and the class that is allocated most.
    let rows = set.rows("SELECT max(age)::BIGINT AS age FROM ages WHERE object_bytes > 0");
    let legend = browser.text("document.getElementById('age-chart-legend').textContent").unwrap();
    assert!(legend.ends_with(&format!("age {}", rows[0]["age"])), "{legend}");
    let legend = browser.text("document.querySelector('#allocation-chart-legend li').textContent").unwrap();
    assert_eq!(legend, "byte[]");
    let areas = browser.text("String(document.querySelectorAll('#allocation-chart path').length > 0)").unwrap();
    assert_eq!(areas, "true");
}
