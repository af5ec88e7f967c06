//! Tests what is made of a recording's bytes of sockets and files: reports, and the page's diagram and tables.

use std::fs;

use joular_tests::{browser, browser::Browser, notes};
use serde_json::Value;

use crate::{
    replay::recording,
    replayed::{Set, expect_success},
};

const COLUMNS: [&str; 5] =
    ["local_sent_bytes", "local_received_bytes", "read_bytes", "written_bytes", "device_written_bytes"];

/// The data set of a program that moves bytes to itself and to a file.
fn recorded() -> Set {
    Set::fixture("io.jrec")
}

fn report(set: &Set, options: &[&str]) -> Value {
    let finished = set.run("report", &[&["--json", "--top", "0"], options].concat());
    expect_success(&finished);
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn tables_have_the_bytes_that_sql_finds() {
    let set = recorded();
    let report = report(&set, &["--by", "method,thread"]);
    let [methods, threads] = [0, 1].map(|table| report["tables"][table]["rows"].as_array().unwrap().clone());
    for column in COLUMNS {
        let sql = format!("SELECT sum({column})::BIGINT AS bytes FROM io WHERE claimant = 'thread'");
        assert_eq!(report["moved"][column], set.rows(&sql)[0]["bytes"], "{column}");
        for row in set.rows(&format!(
            "SELECT tid, sum({column})::BIGINT AS bytes FROM io WHERE claimant = 'thread' GROUP BY 1 HAVING bytes > 0"
        )) {
            let shown = threads.iter().find(|thread| thread["tid"] == row["tid"]).unwrap();
            assert_eq!(shown[format!("self_{column}")], row["bytes"], "{column} of {shown}");
        }
        // A method has what is moved on paths with it anywhere, each path once.
        for method in ["sendLarge", "writeGathered", "readStream", "receive"] {
            let rows = set.rows(&format!(
                "SELECT coalesce(sum({column}), 0)::BIGINT AS bytes FROM io
                 JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames FROM stacks) s USING (stack_id)
                 WHERE len(list_filter(s.frames, frame -> frame.class = 'Io' AND frame.method = '{method}')) > 0"
            ));
            let shown = methods.iter().find(|row| row["method"] == format!("Io.{method}")).unwrap();
            assert_eq!(shown[format!("total_{column}")], rows[0]["bytes"], "{column} of {method}");
        }
    }
}

#[test]
fn the_applications_methods_are_ranked_by_what_they_sent() {
    let set = recorded();
    let report = report(&set, &["--app", "Io", "--view", "sent"]);
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    let sent = |row: &Value| row["total_local_sent_bytes"].as_u64().unwrap();
    assert!(rows.is_sorted_by(|a, b| sent(a) >= sent(b)), "{rows:?}");
    let place = |method: &str| rows.iter().position(|row| row["method"] == format!("Io.{method}")).unwrap();
    assert!(place("sendLarge") < place("transfer") && place("transfer") < place("sendSmall"), "{rows:?}");
    // In the application's view it is its own method that sends, and not the JVM's.
    assert!(rows[place("sendLarge")]["self_local_sent_bytes"].as_u64().unwrap() > 10_000_000, "{rows:?}");
}

#[test]
fn without_io_ranking_by_it_is_refused_with_advice() {
    let finished = Set::of(&recording()).run("report", &["--view", "received"]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert!(finished.stderr.contains("record with --io"), "{finished:?}");
}

#[test]
fn the_page_shows_bytes_over_time_by_method_and_by_thread_if_there_are_any() {
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
    let hidden = "String(document.getElementById('moved').hidden)";
    let without = Set::of(&recording());
    browser.open(page(&without).as_ref()).unwrap();
    assert_eq!(browser.text(hidden).unwrap(), "true");

    let set = recorded();
    browser.open(page(&set).as_ref()).unwrap();
    assert_eq!(browser.text(hidden).unwrap(), "false");
    let mut text = |expression: &str| browser.text(expression).unwrap();
    // A line each way, as many as the legend has names.
    assert_eq!(text("String(document.querySelectorAll('#moved-chart path').length)"), "5");
    assert_eq!(
        text("[...document.querySelectorAll('#moved-chart-legend li')].map((each) => each.textContent).join()"),
        "sent,received,read,written,written to devices"
    );
    // The thread that moves most has its bytes, as SQL has them, with four digits.
    let rows = set.rows("SELECT sum(read_bytes)::DOUBLE / 1e6 AS mb FROM io WHERE thread_name = 'mover'");
    let read = rows[0]["mb"].as_f64().unwrap();
    assert!((10.0..100.0).contains(&read), "{read}");
    let first = text("document.querySelector('#moving-thread-table tbody tr').textContent");
    assert!(first.starts_with("mover ") && first.contains(&format!("{read:.2} MB")), "{first}, not {read}");
    let all = text("document.getElementById('moved-sum').textContent");
    assert!(all.contains(" MB read, ") && all.ends_with(" samples"), "{all}");
    // Methods are those of the program, found by the flame graph's search.
    let table = text("document.getElementById('moving-table').textContent");
    assert!(table.contains("Io.readStream") && table.contains("Io.receive"), "{table}");
}
