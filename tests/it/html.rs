//! Tests `html` and `flamegraph` on a data set that a replay wrote, with the page in a real
//! browser: what it shows is what plain SQL says.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use joular_tests::{browser, browser::Browser, dataset::DataSet, notes, process::Finished, python};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{bad_sets, expect_usage_error, joular_bpf, replay::recording};

pub fn expect_success(finished: &Finished) {
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

/// A data set, and room beside it.
pub struct Set(TempDir);

impl Set {
    pub fn new() -> Self {
        Self::of(&recording())
    }

    pub fn of(recording: &str) -> Self {
        let set = Self(tempfile::tempdir().unwrap());
        expect_success(&joular_bpf(&["--replay", recording, "--quiet", "--output", set.data().to_str().unwrap()]));
        set
    }

    /// A data set with names that try to be markup, code, paths.
    pub fn hostile() -> Self {
        let set = Self(tempfile::tempdir().unwrap());
        bad_sets::hostile(&set.data());
        set
    }

    pub fn data(&self) -> PathBuf {
        self.0.path().join("out")
    }

    /// Runs a subcommand on it that makes a file of this name.
    pub fn make(&self, subcommand: &str, name: &str, options: &[&str]) -> PathBuf {
        let (data, file) = (self.data(), self.0.path().join(name));
        let arguments = [subcommand, data.to_str().unwrap(), "--output", file.to_str().unwrap()];
        expect_success(&joular_bpf(&[&arguments, options].concat()));
        file
    }

    pub fn sums(&self) -> Value {
        serde_json::from_str(&python::script("page_sums.py", &self.data(), &[]).unwrap()).unwrap()
    }
}

fn exact(uj: &Value) -> String {
    let uj = uj.as_u64().unwrap();
    format!("{}.{:06} J", uj / 1_000_000, uj % 1_000_000)
}

/// Energy as pages show it: three digits, in the unit that suits it.
pub trait Shown {
    fn shown(&mut self, uj: &Value) -> String;
}

impl Shown for Browser {
    fn shown(&mut self, uj: &Value) -> String {
        let in_unit = |size, unit| {
            format!(
                "({uj} / {size}).toLocaleString('en', {{minimumSignificantDigits: 3, maximumSignificantDigits: 3}}) + ' {unit}'"
            )
        };
        self.text(&if uj.as_u64().unwrap() < 999_500 { in_unit(1_000, "mJ") } else { in_unit(1_000_000, "J") }).unwrap()
    }
}

/// The figures in a page, as its scripts get them.
pub fn figures(page: &Path) -> Value {
    let page = std::fs::read_to_string(page).unwrap();
    let (_, behind) = page.split_once("id=\"figures\">").unwrap();
    serde_json::from_str(behind.split_once("</script>").unwrap().0).unwrap()
}

pub fn sum(values: &Value) -> u64 {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum()
}

#[test]
fn every_view_of_the_page_sums_to_the_data_sets_energy() {
    let set = Set::new();
    let energy = set.sums()["energy"].as_u64().unwrap();
    assert!(energy > 0);
    for options in [&[][..], &["--by-thread"], &["--app", "java.util"]] {
        let figures = figures(&set.make("html", "page.html", options));
        let all = |rows: &Value, column: &str| {
            rows.as_array().unwrap().iter().map(|row| row[column].clone()).collect::<Vec<_>>()
        };
        assert_eq!(figures["energy_uj"], energy, "{options:?}");
        assert_eq!(sum(&figures["tree"]["self_uj"]), energy, "{options:?}: flame graph");
        assert_eq!(sum(&json!(all(&figures["methods"], "self_uj"))), energy, "{options:?}: methods");
        let series: u64 = all(&figures["time"]["series"], "energy_uj").iter().map(sum).sum();
        assert_eq!(series, energy, "{options:?}: power over time");
        let cells: u64 = all(&figures["threads"]["rows"], "energy_uj").iter().map(sum).sum();
        assert_eq!(cells, energy, "{options:?}: threads");
    }
}

#[test]
fn the_table_of_methods_begins_in_the_java_view_as_a_report_shows_it() {
    let set = Set::new();
    let data = set.data();
    let page = set.make("html", "page.html", &[]);
    let figures = figures(&page);
    // Names of overloads are written in different ways.
    let energies = |rows: &Value| {
        let energies = rows.as_array().unwrap().iter().map(|row| row["self_uj"].as_u64().unwrap());
        let mut energies: Vec<u64> = energies.filter(|uj| *uj > 0).collect();
        energies.sort_unstable();
        energies
    };
    for (table, options) in [("java_methods", &["--java"][..]), ("methods", &[])] {
        let options = [&["report", data.to_str().unwrap(), "--json", "--top", "0"], options].concat();
        let report: Value = serde_json::from_str(&joular_bpf(&options).stdout).unwrap();
        assert_eq!(energies(&figures[table]), energies(&report["tables"][0]["rows"]), "{table}");
    }
    let with_energy = |table: &str| {
        let rows = figures[table].as_array().unwrap().iter().filter(|row| row["self_uj"] != 0);
        rows.map(|row| row["name"].as_u64().unwrap()).collect::<BTreeSet<u64>>()
    };
    assert_ne!(with_energy("java_methods"), with_energy("methods"), "native code has energy of its own in one only");
    let Some(mut browser) = start() else { return };
    browser.open(&page).unwrap();
    let said = |browser: &mut Browser| {
        let text = |browser: &mut Browser, id: &str| {
            browser.text(&format!("document.getElementById('{id}').textContent")).unwrap()
        };
        (text(browser, "method-table"), text(browser, "method-note"))
    };
    let (java, note) = said(&mut browser);
    assert!(note.starts_with("Java view: "), "{note}");
    browser.eval("document.getElementById('all-frames').click()").unwrap();
    let (all, note) = said(&mut browser);
    assert!(note.starts_with("All frames: ") && all != java, "{note}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_flame_graph_has_the_data_sets_energy_and_its_label() {
    let set = Set::new();
    let energy = exact(&set.sums()["energy"]);
    for options in [&[][..], &["--upright", "--by-thread"], &["--min-share", "5%"]] {
        let svg = std::fs::read_to_string(set.make("flamegraph", "graph.svg", options)).unwrap();
        assert!(svg.contains(&format!("<title>all ({energy}, 100%)</title>")), "{options:?}");
        assert!(svg.contains("(modelled"), "{options:?}");
    }
    let data = set.data();
    let same = ["flamegraph", data.to_str().unwrap(), "--diff", data.to_str().unwrap(), "--output", "-"];
    let finished = joular_bpf(&same);
    expect_success(&finished);
    let titles: Vec<&str> = finished.stdout.split("<title>").skip(1).collect();
    assert!(titles.len() > 5);
    for title in titles {
        let title = title.split_once("</title>").unwrap().0;
        assert!(title.ends_with("; 0.00%)") || title.starts_with("all ("), "a data set differs from itself: {title}");
    }
}

#[test]
fn wrong_use_is_named() {
    let set = Set::new();
    let data = set.data();
    let data = data.to_str().unwrap();
    expect_usage_error(&["flamegraph", data, "--min-share", "much"], &["--min-share", "0.05%"]);
    expect_usage_error(&["flamegraph", data, "--normalise", "time"], &["--diff"]);
    let nothing = joular_bpf(&["flamegraph", data, "--method", "no.such.Method", "--output", "-"]);
    assert_eq!(nothing.code(), Some(1), "{nothing:?}");
    assert!(nothing.stderr.contains("the selection has no energy"), "{nothing:?}");
    let page = joular_bpf(&["html", data, "--method", "no.such.Method", "--output", "-"]);
    assert_eq!(page.code(), Some(1), "{page:?}");
    let hints = page.stderr.contains("the selection is empty: there are processes ") && page.stdout.is_empty();
    assert!(hints, "{page:?}");
    expect_usage_error(
        &["flamegraph", data, "--min-share", "1%", "--output", "a.html"],
        &["--min-share", "a page merges"],
    );
}

/// A browser. `None`, and the test is skipped, where there is none.
pub fn start() -> Option<Browser> {
    match browser::program() {
        Some(program) => Some(Browser::start(program).unwrap()),
        None => {
            notes::skipped("there is no Chromium (`cargo xtask setup` installs it on Debian)");
            None
        }
    }
}

pub fn details(browser: &mut Browser) -> String {
    browser.text("document.getElementById('details').textContent").unwrap()
}

#[test]
fn the_page_shows_emissions_and_cost_if_they_are_asked_for() {
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let hidden = |browser: &mut Browser| browser.text("String(document.getElementById('emissions').hidden)").unwrap();
    browser.open(&set.make("html", "page.html", &[])).unwrap();
    assert_eq!(hidden(&mut browser), "true");
    browser.open(&set.make("html", "costs.html", &["--carbon", "250g/kWh", "--price", "0.30EUR/kWh"])).unwrap();
    assert_eq!(hidden(&mut browser), "false");
    let text = |browser: &mut Browser, id: &str| {
        browser.text(&format!("document.getElementById('{id}').textContent")).unwrap()
    };
    let said = text(&mut browser, "emissions");
    for part in ["Emissions and cost of the selection", "250 gCO2e/kWh", "0.3 EUR per kWh", "not in it:"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let (tiles, head) = (text(&mut browser, "tiles"), text(&mut browser, "method-table"));
    assert!(tiles.contains("CO2e") && tiles.contains("EUR"), "{tiles}");
    assert!(head.contains("Self CO2e") && head.contains("Self cost"), "{head}");
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let sums = set.sums();
    browser.open(&set.make("html", "page.html", &[])).unwrap();

    // What it shows is what SQL says.
    let tile = browser.text("document.getElementById('tile-energy').textContent").unwrap();
    assert!(tile.contains(&browser.shown(&sums["energy"])) && tile.contains("modelled"), "{tile}");
    let title = browser.text("document.querySelector('#tile-energy [title]').title").unwrap();
    assert_eq!(title, exact(&sums["energy"]), "the whole figure");
    let audit = browser.text("document.getElementById('audit').textContent").unwrap();
    assert!(audit.contains(&browser.shown(&sums["measured"])) && audit.contains("✓ measured = attributed"), "{audit}");
    let titles = "[...document.querySelectorAll('#audit [title]')].map((each) => each.title).join()";
    let titles = browser.text(titles).unwrap();
    assert!(titles.contains(&exact(&sums["measured"])) && titles.contains(&exact(&sums["static"])), "{titles}");
    let first = browser.text("document.querySelector('#method-table tbody tr td').textContent").unwrap();
    let top = sums["top"][0].as_str().unwrap();
    assert!(first.contains(top), "the first row is {first}, not {top}");

    // Search says how much it found; Escape ends it.
    browser.press("/").unwrap();
    assert_eq!(browser.text("document.activeElement.id").unwrap(), "search");
    let name = top.rsplit('.').next().unwrap();
    browser.write(name).unwrap();
    let matched = browser.text("document.getElementById('matched').textContent").unwrap();
    assert!(matched.contains('%') && matched.contains("J in ") && !matched.starts_with("0.00"), "{matched}");
    browser.press("Escape").unwrap();
    assert_eq!(browser.text("document.getElementById('matched').textContent").unwrap(), "");

    // Arrows, Enter and Escape move, zoom in and out.
    assert_eq!(browser.text("document.activeElement.id").unwrap(), "stage");
    browser.press("ArrowDown").unwrap();
    let below = details(&mut browser);
    assert!(below.contains("J (modelled)") && below.contains("W over ") && below.contains("samples"), "{below}");
    browser.press("Enter").unwrap();
    let crumbs = |browser: &mut Browser| browser.eval("document.querySelectorAll('#crumbs button').length").unwrap();
    assert_eq!(crumbs(&mut browser), 2);
    browser.press("ArrowDown").unwrap();
    browser.press("Enter").unwrap();
    assert_eq!(crumbs(&mut browser), 3);
    browser.press("Escape").unwrap();
    assert_eq!(crumbs(&mut browser), 2);
    browser.eval("document.getElementById('reset').click()").unwrap();
    assert_eq!(crumbs(&mut browser), 1);
    let whole = browser.text("document.getElementById('details').dataset.uj").unwrap();
    assert_eq!(whole, sums["energy"].to_string());

    // Other views of the same: sums stay.
    for control in ["icicle", "merge"] {
        browser.eval(&format!("document.getElementById('{control}').click()")).unwrap();
        assert_eq!(browser.text("document.getElementById('details').dataset.uj").unwrap(), whole);
    }
    browser.eval("document.getElementById('theme').click()").unwrap();
    for chart in ["power-chart", "thread-chart"] {
        browser.eval(&format!("document.getElementById('{chart}').focus()")).unwrap();
        browser.press("ArrowRight").unwrap();
    }
    let power = browser.text("document.getElementById('power-details').textContent").unwrap();
    assert!(power.contains("J") && power.contains("W"), "{power}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn hostile_names_are_shown_as_text_and_run_nothing() {
    let Some(mut browser) = start() else { return };
    let set = Set::hostile();
    browser.open(&set.make("html", "page.html", &["--by-thread"])).unwrap();
    let shown = browser.text("document.querySelector('#method-table tbody').textContent").unwrap();
    let hostile = "</script><img src=x onerror=alert(1)>";
    assert!(bad_sets::EVIL.contains(&hostile) && shown.contains(hostile), "{shown}");
    browser.eval("document.getElementById('search').focus()").unwrap();
    browser.write("<img").unwrap();
    assert_eq!(browser.eval("document.querySelectorAll('img').length").unwrap(), json!(0));
    assert_eq!(browser.complaints, Vec::<String>::new());
    // Had markup come in, the page's policy would not let it run.
    browser.eval("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran=1\">')").unwrap();
    browser.wait("document.querySelector('img').complete").unwrap();
    assert_eq!(browser.eval("window.ran === undefined").unwrap(), json!(true));
    assert!(
        browser.complaints.iter().all(|complaint| complaint.contains("Content Security Policy")),
        "{:?}",
        browser.complaints
    );
}

#[test]
fn callers_and_callees_have_what_sql_finds_on_their_paths() {
    let Some(program) = browser::program() else {
        return notes::skipped("there is no Chromium (`cargo xtask setup` installs it on Debian)");
    };
    let set = Set::new();
    let mut browser = Browser::start(program).unwrap();
    browser.open(set.make("html", "page.html", &["--no-infer"]).as_ref()).unwrap();
    let data = DataSet::at(set.data());
    // By pairs of methods that stand next to each other, whichever frames are below.
    let of = |pair: &str| {
        let rows = data.rows(&format!(
            "WITH s AS (SELECT DISTINCT ON (stack_id) stack_id, list_transform(frames, f -> coalesce(f.class || '.', '') || f.method) AS path
               FROM stacks)
             SELECT sum(energy_uj)::BIGINT AS uj, sum(samples)::BIGINT AS samples FROM branches JOIN s USING (stack_id) WHERE {pair}"
        ));
        let row = rows.unwrap().swap_remove(0);
        (row["uj"].as_u64().unwrap(), row["samples"].as_u64().unwrap())
    };
    let choose = "const choice = document.getElementById('caller-method');
        choice.value = [...choice.options].find((option) => option.textContent.startsWith('Hot.main')).value;
        choice.dispatchEvent(new Event('change'))";
    browser.eval(choose).unwrap();
    for callee in ["Hot.heavy", "Hot.light"] {
        let (uj, samples) = of(&format!(
            "len(list_filter(range(1, len(path)), i -> path[i] = 'Hot.main' AND path[i + 1] = '{callee}')) > 0"
        ));
        assert!(samples > 50, "{callee}: {samples}");
        let row = format!(
            "[...document.querySelectorAll('#callee-table tbody tr')].find((row) => row.textContent.includes('{callee}')).textContent"
        );
        let shown = browser.text(&row).unwrap();
        let joules = browser.shown(&json!(uj));
        assert!(shown.contains(&joules) && shown.ends_with(&samples.to_string()), "{shown}: no {joules}, {samples}");
    }
    // A name leads to the method's own callers.
    browser
        .eval("[...document.querySelectorAll('#callee-table .pick')].find((pick) => pick.textContent.includes('Hot.heavy')).click()")
        .unwrap();
    let callers = browser.text("document.getElementById('caller-table').textContent").unwrap();
    assert!(callers.contains("Hot.main"), "{callers}");
    let (_, samples) = of("list_contains(path, 'Hot.heavy')");
    let total = browser.text("document.getElementById('caller-sum').textContent").unwrap();
    assert!(total.contains(&format!(", {samples} samples")), "{total}: {samples}");
}
