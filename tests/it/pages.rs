//! Tests the pages of one picture that people send: a flame graph alone, and a comparison. Each is one file, says what
//! the data set says, and shows names as text.

use std::{
    fs,
    path::{Path, PathBuf},
};

use joular_tests::browser::Browser;
use serde_json::{Value, json};

use crate::{
    bad_sets,
    html::{Set, Shown as _, details, expect_success, figures, start, sum},
    joular_bpf,
};

/// Compares a data set with itself; the page.
fn comparison(set: &Set, options: &[&str]) -> PathBuf {
    let data = set.data();
    let page = data.with_file_name("diff.html");
    let arguments = ["diff", data.to_str().unwrap(), data.to_str().unwrap(), "--html", page.to_str().unwrap()];
    expect_success(&joular_bpf(&[&arguments, options].concat()));
    page
}

/// The same page with other figures.
fn with(page: &Path, change: impl FnOnce(&mut Value)) -> PathBuf {
    let mut changed = figures(page);
    change(&mut changed);
    let text = fs::read_to_string(page).unwrap();
    let (head, behind) = text.split_once("id=\"figures\">").unwrap();
    let (_, tail) = behind.split_once("</script>").unwrap();
    let json = changed.to_string().replace('<', "\\u003c");
    let file = page.with_file_name("changed.html");
    fs::write(&file, format!("{head}id=\"figures\">{json}</script>{tail}")).unwrap();
    file
}

fn text(browser: &mut Browser, id: &str) -> String {
    browser.text(&format!("document.getElementById('{id}').textContent")).unwrap()
}

#[test]
fn each_page_is_one_file_that_loads_nothing() {
    let set = Set::new();
    let data = set.data();
    let before = ["--diff", data.to_str().unwrap()];
    for page in [
        set.make("html", "page.html", &[]),
        set.make("flamegraph", "graph.html", &[]),
        set.make("flamegraph", "pair.html", &before),
        comparison(&set, &[]),
    ] {
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains("default-src 'none'"), "{}", page.display());
        // Strings that names are in are not looked at: no name of the recording is an address.
        for way in ["src=", "<link", "@import", "url(", "https:"] {
            assert!(!text.contains(way), "{}: {way}", page.display());
        }
    }
}

#[test]
fn a_flame_graph_as_a_page_has_the_data_sets_energy_whatever_it_shows() {
    let set = Set::new();
    let energy = set.sums()["energy"].as_u64().unwrap();
    for options in [&[][..], &["--upright", "--by-thread"], &["--by-kind"], &["--by-process", "--app", "java.util"]] {
        let figures = figures(&set.make("flamegraph", "graph.html", options));
        assert_eq!(sum(&figures["tree"]["self_uj"]), energy, "{options:?}");
        assert_eq!(figures["label"], "modelled");
        assert_eq!(figures["is_icicle"], !options.contains(&"--upright"));
    }
    let data = set.data();
    let pair = figures(&set.make("flamegraph", "pair.html", &["--diff", data.to_str().unwrap()]))["pair"].clone();
    assert_eq!((sum(&pair["self_a"]), sum(&pair["self_b"])), (energy, energy));
    assert_eq!((&pair["unit"], &pair["a_factor"]), (&json!("J"), &pair["b_factor"]));
}

#[test]
fn a_flame_graph_as_a_page_works_in_a_browser() {
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let sums = set.sums();
    browser.open(&set.make("flamegraph", "graph.html", &[])).unwrap();
    let all = details(&mut browser);
    assert!(all.contains(&browser.shown(&sums["energy"])) && all.contains("(modelled)"), "{all}");

    // A search says which share matches, also by a pattern; a pattern that is none is named.
    browser.press("/").unwrap();
    browser.write("Hot.heavy").unwrap();
    let part = text(&mut browser, "matched");
    assert!(part.contains(" % · ") && part.contains("J in "), "{part}");
    browser.press("Escape").unwrap();
    assert_eq!(text(&mut browser, "matched"), "");
    browser.press("/").unwrap();
    browser.write("/^Hot\\.(heavy)$/").unwrap();
    assert_eq!(text(&mut browser, "matched"), part);
    browser.press("Escape").unwrap();
    browser.press("/").unwrap();
    browser.write("/(/").unwrap();
    assert_eq!(text(&mut browser, "matched"), "not a pattern");
    browser.press("Escape").unwrap();

    // Zoom in and out; the root is at the top unless that is turned over.
    let crumbs = |browser: &mut Browser| browser.eval("document.querySelectorAll('#crumbs button').length").unwrap();
    browser.press("ArrowDown").unwrap();
    browser.press("Enter").unwrap();
    assert_eq!(crumbs(&mut browser), 2);
    browser.press("Escape").unwrap();
    assert_eq!(crumbs(&mut browser), 1);
    browser.eval("document.getElementById('icicle').click()").unwrap();
    browser.press("ArrowUp").unwrap();
    assert_ne!(details(&mut browser), all);

    // A tip at the pointer has the energy and how it came about.
    let point =
        "(() => { const canvas = document.querySelector('#stage canvas'); const at = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new MouseEvent('mousemove', { clientX: at.left + 5, clientY: at.bottom - 5 })); })()";
    browser.eval(point).unwrap();
    let tip = text(&mut browser, "tip");
    let shown = browser.shown(&sums["energy"]);
    assert!(tip.starts_with(&format!("all\n{shown} (modelled), 100 % of all")), "{tip}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn names_are_simple_unless_whole_ones_are_asked_for() {
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let page = with(&set.make("flamegraph", "graph.html", &[]), |figures| {
        let c2 = figures["kinds"].as_array().unwrap().iter().position(|kind| kind[0] == "compiled-c2").unwrap();
        let names = ["all", "com.acme.shop.Cart$Line.<init>", "java.util.Arrays.sort(long[], a.b.C)", "lower.case.run"];
        let all = names.len();
        figures["strings"] = json!(names);
        figures["tree"] = json!({
            "merged": 0, "depth": (0..all).collect::<Vec<_>>(), "name": (0..all).collect::<Vec<_>>(),
            "kind": [0, c2, c2, c2], "mix": [[], [], [], []], "detail": [-1, -1, -1, -1],
            "self_uj": [0, 0, 0, 1_000_000], "self_cpu_us": [0, 0, 0, 1], "self_samples": [0, 0, 0, 1],
            "self_inferred_uj": [0, 0, 0, 0], "self_beside": [],
        });
        figures["measures"] = json!([]);
    });
    browser.open(&page).unwrap();
    browser.eval("document.getElementById('stage').focus()").unwrap();
    for _ in 0..3 {
        browser.press("ArrowDown").unwrap();
    }
    browser.press("Enter").unwrap();
    assert_eq!(text(&mut browser, "crumbs"), "all›Cart$Line.<init>›Arrays.sort(long[], a.b.C)›case.run");
    browser.eval("document.getElementById('simple').click()").unwrap();
    let whole = "all›com.acme.shop.Cart$Line.<init>›java.util.Arrays.sort(long[], a.b.C)›lower.case.run";
    assert_eq!(text(&mut browser, "crumbs"), whole);
}

#[test]
fn a_large_tree_is_drawn_as_far_as_the_screen_shows_it_and_the_rest_when_it_is_zoomed() {
    const NODES: u64 = 100_000;
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let page = with(&set.make("flamegraph", "graph.html", &[]), |figures| {
        // The root, then callees of which all but the first are narrower than a pixel.
        let column = |of: &dyn Fn(u64) -> Value| (0..NODES).map(of).collect::<Vec<_>>();
        let own = column(&|node| json!(if node == 1 { NODES } else { u64::from(node > 1) }));
        figures["tree"] = json!({
            "merged": 0, "depth": column(&|node| json!(u64::from(node > 0) + u64::from(node > 1 && node % 100 != 2))),
            "name": column(&|_| json!(0)), "kind": column(&|_| json!(0)), "mix": column(&|_| json!([])),
            "detail": column(&|_| json!(-1)), "self_uj": own, "self_cpu_us": own, "self_samples": own,
            "self_inferred_uj": column(&|_| json!(0)), "self_beside": [],
        });
        figures["measures"] = json!([]);
    });
    browser.resize(1200, 800).unwrap();
    browser.open(&page).unwrap();
    let boxes = |browser: &mut Browser| {
        browser.text("document.getElementById('stage').dataset.boxes").unwrap().parse::<u64>().unwrap()
    };
    let all = boxes(&mut browser);
    assert!((2..5_000).contains(&all), "{all}");
    // The narrow ones are told of, and are there when what is above them is zoomed.
    let point =
        "(() => { const canvas = document.querySelector('#stage canvas'); const at = canvas.getBoundingClientRect();
        canvas.dispatchEvent(new MouseEvent('mousemove', { clientX: at.right - 5, clientY: at.top + 25 })); })()";
    browser.eval(point).unwrap();
    assert!(
        text(&mut browser, "tip").contains("99 of its callees are too narrow to be drawn"),
        "{}",
        text(&mut browser, "tip")
    );
    browser.eval(&point.replace("mousemove", "click")).unwrap();
    let zoomed = boxes(&mut browser);
    assert!((100..200).contains(&zoomed), "{zoomed}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_comparison_as_a_page_says_what_diff_says() {
    let set = Set::new();
    let data = set.data();
    let data = data.to_str().unwrap();
    for options in
        [&[][..], &["--per", "none"], &["--per", "cpu", "--by", "class"], &["--work-a", "7", "--work-b", "9"]]
    {
        let page = figures(&comparison(&set, options));
        let said = joular_bpf(&[&["diff", data, data, "--json"], options].concat());
        let json: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(page["verdict_name"], json["total"]["verdict"], "{options:?}");
        assert_eq!(page["warnings"], json["warnings"]);
        let unit = page["unit"].as_str().unwrap();
        let factor = match unit.chars().next() {
            Some('µ') => 1e6,
            Some('m') => 1e3,
            _ => 1.0,
        };
        assert!(unit.ends_with(json["unit"].as_str().unwrap()), "{unit}");
        let near = |shown: &Value, expected: &Value| {
            let (shown, expected) = (shown.as_f64().unwrap(), expected.as_f64().unwrap() * factor);
            assert!((shown - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{options:?}: {shown}, {expected}");
        };
        let rows = json["rows"].as_array().unwrap();
        assert_eq!(page["rows"].as_array().unwrap().len(), rows.len());
        for (shown, row) in page["rows"].as_array().unwrap().iter().zip(rows) {
            near(&shown["a"], &row["a"]);
            near(&shown["b"], &row["b"]);
            assert_eq!(shown["verdict"], row["verdict"]);
        }
        // The graphs have the totals of the table.
        for (side, own) in [("a", "self_a"), ("b", "self_b")] {
            #[allow(clippy::cast_precision_loss, reason = "small figures")]
            let figure = sum(&page["pair"][own]) as f64 * page["pair"][format!("{side}_factor")].as_f64().unwrap();
            near(&json!(figure), &json["total"][side]);
        }
    }
}

#[test]
fn a_comparison_as_a_page_works_in_a_browser() {
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    browser.open(&comparison(&set, &["--per", "none"])).unwrap();
    let said = text(&mut browser, "change");
    assert!(said.contains(" → ") && said.contains("J, 0.0 %"), "{said}");
    assert!(text(&mut browser, "metric-name").contains("modelled"));
    assert!(browser.eval("document.querySelectorAll('#row-table tbody tr').length").unwrap().as_u64() > Some(3));
    // All graphs search and zoom together.
    browser.press("/").unwrap();
    browser.write("Hot.heavy").unwrap();
    let found = text(&mut browser, "matched");
    let (a, b) = found.split_once(" of A · ").unwrap();
    assert_eq!(format!("{a} of B"), b);
    browser.press("Escape").unwrap();
    browser.press("ArrowDown").unwrap();
    browser.press("Enter").unwrap();
    assert_eq!(browser.eval("document.querySelectorAll('#crumbs button').length").unwrap(), 2);
    let figures = |browser: &mut Browser| browser.text("document.getElementById('details').dataset.figures").unwrap();
    let shown = figures(&mut browser);
    for width in ["a", "larger"] {
        let choose = format!(
            "(() => {{ const width = document.getElementById('width'); width.value = '{width}';
            width.dispatchEvent(new Event('change')); }})()"
        );
        browser.eval(&choose).unwrap();
        assert_eq!(figures(&mut browser), shown);
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn hostile_names_are_text_in_every_page() {
    let Some(mut browser) = start() else { return };
    let set = Set::hostile();
    let data = set.data();
    let before = ["--diff", data.to_str().unwrap()];
    for page in [
        set.make("flamegraph", "graph.html", &["--by-thread"]),
        set.make("flamegraph", "pair.html", &before),
        comparison(&set, &["--by", "thread"]),
        comparison(&set, &[]),
    ] {
        let hostile = "</script><img src=x onerror=alert(1)>";
        let strings = figures(&page)["strings"].clone();
        let has = |text: &Value| text.as_str().unwrap().contains(hostile);
        assert!(bad_sets::EVIL.contains(&hostile) && strings.as_array().unwrap().iter().any(has), "{}", page.display());
        browser.open(&page).unwrap();
        browser.eval("document.getElementById('search').focus()").unwrap();
        browser.write("<img").unwrap();
        assert_eq!(browser.eval("document.querySelectorAll('img').length").unwrap(), json!(0));
        assert_eq!(browser.complaints, Vec::<String>::new(), "{}", page.display());
    }
}

#[test]
fn the_heat_map_folds_time_to_few_columns_and_its_sums_stay() {
    const BUCKETS: u64 = 700;
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let plain = set.make("html", "page.html", &[]);
    let page = with(&plain, |figures| {
        let time = &mut figures["time"];
        time["buckets"] = json!(BUCKETS);
        time["end_us"] = json!(time["start_us"].as_i64().unwrap() + time["width_us"].as_i64().unwrap() * 700);
        for series in time["series"].as_array_mut().unwrap() {
            series["energy_uj"] = json!((0..BUCKETS).map(|bucket| 1_000 * bucket).collect::<Vec<_>>());
        }
        figures["threads"]["rows"] = json!([]);
    });
    for (page, columns) in [(&page, Some("234 columns")), (&plain, None)] {
        browser.open(page).unwrap();
        let note = text(&mut browser, "heat-note");
        assert!(note.contains("Power is modelled") && columns.is_none_or(|columns| note.contains(columns)), "{note}");
        let titles = "JSON.stringify([...document.querySelectorAll('#heat-table tbody tr')].map((row) => \
                      row.children[1].firstElementChild.title))";
        let titles: Vec<String> = serde_json::from_str(&browser.text(titles).unwrap()).unwrap();
        let figures = figures(page);
        let kinds = figures["kinds"].as_array().unwrap();
        let is_method =
            |series: &&Value| kinds[usize::try_from(series["kind"].as_u64().unwrap()).unwrap()][0] != "others";
        let series = figures["time"]["series"].as_array().unwrap().iter().filter(is_method);
        let expected: Vec<String> = series
            .map(|series| sum(&series["energy_uj"]))
            .map(|uj| format!("{}.{:06} J", uj / 1_000_000, uj % 1_000_000))
            .collect();
        assert_eq!(titles, expected);
        browser.eval("document.getElementById('heat-map').focus()").unwrap();
        browser.press("ArrowRight").unwrap();
        let cell = text(&mut browser, "heat-details");
        assert!(cell.contains("W (modelled)") && cell.contains("UTC"), "{cell}");
        assert_eq!(browser.complaints, Vec::<String>::new());
    }
}

/// What a reader sees at once: of a wide screen twenty methods and no text that is cut off; on a phone no page that is
/// wider than the screen.
#[test]
fn pages_fit_wide_and_narrow_screens() {
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let pages = [set.make("html", "page.html", &[]), set.make("flamegraph", "graph.html", &[]), comparison(&set, &[])];
    for page in &pages {
        for width in [1400, 400] {
            browser.resize(width, 900).unwrap();
            browser.open(page).unwrap();
            let wide = browser.eval("document.documentElement.scrollWidth").unwrap();
            assert_eq!(wide, json!(width), "{} at {width}", page.display());
        }
    }
    browser.resize(1400, 900).unwrap();
    browser.open(&pages[0]).unwrap();
    let table = browser
        .eval("(() => { const box = document.querySelector('#method-table .scroll'); return [box.scrollWidth - box.clientWidth, \
               Math.max(...[...box.querySelectorAll('tbody tr')].map((row) => row.offsetHeight))]; })()")
        .unwrap();
    assert_eq!(table[0], 0, "a column is cut off");
    assert!(table[1].as_u64().unwrap() * 20 < 700, "rows are {} pixels high", table[1]);
    let lines = "new Set([...document.querySelectorAll('.bar nav a')].filter((link) => link.offsetHeight > 0).map((link) => link.offsetTop)).size";
    assert_eq!(browser.eval(lines).unwrap(), json!(1), "links are on one line");
}
