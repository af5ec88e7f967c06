//! Tests that served pages can be used without a mouse and without seeing them, as far as a program can tell: by axe-core,
//! which knows the rules of WCAG, and by keys.

use std::fs;

use joular_tests::{browser::Browser, node, notes};
use serde_json::{Value, json};

use crate::{
    html::{Set, start},
    serve::Served,
};

const PAGES: [&str; 6] = [
    "/?refresh=off",
    "/part?refresh=off",
    "/part?service=moon&refresh=off",
    "/compare",
    "/compare?left.until=now&right.from=2020-01-01T00:00:00Z",
    "/report.html",
];

/// What keeps people from using the page that is shown: each rule that it breaks, with the first place.
fn findings(browser: &mut Browser, axe: &str) -> Vec<String> {
    browser.eval(&format!("{axe};axe.run(document).then((found) => {{ globalThis.found = found; }}); 0")).unwrap();
    browser.wait("globalThis.found !== undefined").unwrap();
    assert!(browser.eval("found.passes.length").unwrap().as_u64() > Some(10), "nothing was looked at");
    let worst = "found.violations.filter((rule) => rule.impact !== 'minor')
        .map((rule) => `${rule.impact} ${rule.id}: ${rule.nodes[0].html}`)";
    let found: Value = browser.eval(worst).unwrap();
    found.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

#[test]
fn served_pages_break_no_rule_that_a_program_can_check() {
    let Some(mut browser) = start() else { return };
    if !node::exists() {
        notes::skipped("there is no Node.js with npm (`cargo xtask setup` installs them on Debian)");
        return;
    }
    let axe = node::packages().unwrap().join("node_modules/axe-core/axe.min.js");
    let axe = fs::read_to_string(axe).unwrap();
    let set = Set::new();
    let served = Served::of(&set, &[]);
    for scheme in ["light", "dark"] {
        browser.prefer(scheme).unwrap();
        for page in PAGES {
            browser.open_url(&served.url(page)).unwrap();
            assert_eq!(findings(&mut browser, &axe), Vec::<String>::new(), "{page}, {scheme}");
        }
    }
}

#[test]
fn a_page_that_is_gone_through_by_keys_does_not_ask_again() {
    let Some(mut browser) = start() else { return };
    // Whatever is to happen every minute happens when it is called for.
    let source = "globalThis.every = []; globalThis.setInterval = (act) => globalThis.every.push(act);";
    browser.call("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": source })).unwrap();
    let set = Set::new();
    let served = Served::of(&set, &[]);
    browser.open_url(&served.url("/part")).unwrap();
    assert_eq!(browser.eval("every.length").unwrap(), 1);
    // The first key leads to what leads past the navigation.
    browser.press("Tab").unwrap();
    assert_eq!(browser.text("document.activeElement.className").unwrap(), "skip");
    browser.eval("globalThis.isOld = true").unwrap();
    // Each of these takes a message there and back: another page would have come long before the last one.
    for _ in 0..50 {
        assert_eq!(browser.eval("every[0](); globalThis.isOld === true").unwrap(), true, "it has the focus");
    }
    // Later: the other page takes the place of the one that answers.
    browser.eval("document.activeElement.blur(); setTimeout(every[0]); 0").unwrap();
    browser.wait("globalThis.isOld === undefined && document.documentElement?.dataset.ready === 'true'").unwrap();
    assert_eq!(browser.complaints, Vec::<String>::new());
}
