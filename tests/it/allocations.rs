//! Tests reports and pictures of a recording with `--alloc`. They say what plain SQL finds, to the byte.

use std::{collections::BTreeMap, fs};

use joular_tests::{browser, browser::Browser, notes};
use serde_json::Value;

use crate::{
    replay::recording,
    replayed::{Set, expect_success},
};

/// The data set of a recording with allocations.
fn recorded() -> Set {
    Set::fixture("allocations.jrec")
}

/// Bytes by a column or expression of SQL.
fn bytes_by(set: &Set, what: &str) -> BTreeMap<String, u64> {
    let rows = set.rows(&format!(
        "SELECT {what} AS name, sum(allocated_bytes)::BIGINT AS bytes
         FROM allocations a JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames FROM stacks) s USING (stack_id)
         GROUP BY 1"
    ));
    let row = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["bytes"].as_u64().unwrap());
    rows.iter().map(row).collect()
}

#[test]
fn tables_have_each_class_and_each_method_that_allocated() {
    let set = recorded();
    let finished = set.run("report", &["--by", "class-allocated,allocating-method", "--top", "0", "--json"]);
    expect_success(&finished);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let methods = "coalesce(s.frames[-1].class || '.', '') || s.frames[-1].method";
    for (table, by) in [(0, "coalesce(class, '[no sample]')"), (1, methods)] {
        let rows = report["tables"][table]["rows"].as_array().unwrap().iter();
        let mut found = BTreeMap::new();
        for row in rows.filter(|row| row["self_bytes"] != 0) {
            // Where a name has several signatures, the name that is shown has one.
            let name = if table == 1 { &row["method"] } else { &row["name"] };
            *found.entry(name.as_str().unwrap().to_owned()).or_default() += row["self_bytes"].as_u64().unwrap();
        }
        assert_eq!(found, bytes_by(&set, by).into_iter().filter(|(_, bytes)| *bytes > 0).collect(), "{by}");
    }
    let all: u64 = bytes_by(&set, "class").values().sum();
    assert!(all > 6_000_000_000 && report["allocated"]["bytes"] == all, "{all}");
}

#[test]
fn a_flame_graph_of_bytes_has_them_all() {
    let set = recorded();
    let graph = set.path("graph.svg");
    expect_success(&set.run("flamegraph", &["--allocated", "--output", &graph]));
    let svg = fs::read_to_string(graph).unwrap();
    let all: u64 = bytes_by(&set, "class").values().sum();
    let digits = all.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    assert!(svg.contains(&format!("<title>all ({} bytes, 100%)</title>", groups.join(","))), "{digits}");
    for name in ["byte[] [class] (", "Allocations.bytes [", "java.lang.String[] [class] ("] {
        assert!(svg.contains(&format!("<title>{name}")), "{name}");
    }
}

#[test]
fn a_recording_without_them_is_refused_with_advice() {
    let set = Set::of(&recording());
    for (command, options) in
        [("report", &["--by", "class-allocated"][..]), ("flamegraph", &["--allocated", "--output", "-"])]
    {
        let finished = set.run(command, options);
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        assert!(finished.stderr.contains("record with --alloc"), "{finished:?}");
    }
}

#[test]
fn the_page_shows_them_if_there_are_any() {
    let Some(program) = browser::program() else {
        return notes::skipped("there is no Chromium (`cargo xtask setup` installs it on Debian)");
    };
    let mut browser = Browser::start(program).unwrap();
    let text = |browser: &mut Browser, of: &str| browser.text(of).unwrap();
    let page = |set: &Set| {
        let page = set.path("page.html");
        expect_success(&set.run("html", &["--output", &page]));
        page
    };
    let without = Set::of(&recording());
    browser.open(page(&without).as_ref()).unwrap();
    assert_eq!(text(&mut browser, "String(document.getElementById('allocations').hidden)"), "true");

    let set = recorded();
    browser.open(page(&set).as_ref()).unwrap();
    assert_eq!(text(&mut browser, "String(document.getElementById('allocations').hidden)"), "false");
    let row = |browser: &mut Browser, table: &str| {
        text(browser, &format!("document.querySelector('#{table} tbody tr').textContent"))
    };
    let bytes = bytes_by(&set, "class")["byte[]"];
    let shown = format!("{},{:03} MB", bytes / 1_000_000_000, (bytes % 1_000_000_000 + 500_000) / 1_000_000);
    let first = row(&mut browser, "class-table");
    assert!(first.contains("byte[]") && first.contains(&shown), "{first}: no {shown}");
    let first = row(&mut browser, "allocating-table");
    assert!(first.contains("Allocations.bytes") && first.contains(&shown), "{first}: no {shown}");

    // The flame graph's width may be bytes. Its classes are found there.
    let choose = "const metric = document.getElementById('metric'); metric.value = 'allocated';
                  metric.dispatchEvent(new Event('change'))";
    browser.eval(choose).unwrap();
    browser.press("/").unwrap();
    browser.write("byte[]").unwrap();
    let matched = text(&mut browser, "document.getElementById('matched').textContent");
    assert!(matched.contains(&shown), "{matched}: no {shown}");
    let all: u64 = bytes_by(&set, "class").values().sum();
    let details = text(&mut browser, "document.getElementById('details').textContent");
    assert!(details.contains(&format!("allocated bytes {},", all / 1_000_000_000)), "{details}");
}
