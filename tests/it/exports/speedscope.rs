//! Opens exports in speedscope itself, its page in Chromium, those made for it and those for
//! others: the weights that it shows are the data set's.

use std::{fs, path::Path, process::Command};

use joular_tests::{node, notes};

use super::{Exports, expect_leaves, texts, with_commas, with_node};

#[test]
fn speedscope_keeps_to_its_schema() {
    let exports = Exports::new();
    let Some(found) = with_node(&exports.export("speedscope", &[]), "speedscope") else { return };
    assert_eq!(found["sums"]["none"], exports.sums()[0]);
    assert_eq!(found["name"], "energy in µJ, modelled (model)");
    assert_eq!(texts(&found["units"]), ["none"]);
    assert!(
        texts(&found["names"]).contains(&"java (24685) of Hot (24683) on example, µJ, modelled (model)"),
        "{found}"
    );
    expect_leaves(&found);
}

#[test]
fn speedscopes_page_shows_the_energy() {
    let Some(browser) = browser() else {
        return notes::skipped("there is no Chromium to open speedscope's page with (Debian and Ubuntu: chromium)");
    };
    if !node::exists() {
        return notes::skipped("there is no Node.js to install speedscope with (Debian and Ubuntu: nodejs, npm)");
    }
    let exports = Exports::new();
    let energy = exports.sums()[0];
    let page = show(browser, &exports, "speedscope", "energy.speedscope.json");
    assert!(page.contains("<title>energy in µJ, modelled (model) - speedscope</title>"), "{page}");
    // The list of profiles has each thread's weight; it is in the page, closed.
    let list = page.split_once("Total Weight").unwrap().1.split_once("</table>").unwrap().0;
    let threads = cells(list);
    assert!(threads.len() > 2 && threads.iter().sum::<u64>() == energy, "{threads:?} of {energy}");
    // Others have one profile. The table of methods has self weights, and percents of the whole.
    let collapsed = fs::read_to_string(exports.export("collapsed", &[])).unwrap();
    let heavy =
        collapsed.lines().filter_map(|line| line.rsplit_once(' ')).filter(|(path, _)| path.ends_with(";Hot.heavy"));
    let heavy: u64 = heavy.map(|(_, value)| value.parse::<u64>().unwrap()).sum();
    let shown = format!("{} ({}%)", with_commas(heavy), heavy * 100 / energy);
    for (format, name) in [("pprof", "energy.pb.gz"), ("collapsed", "energy.txt")] {
        let page = show(browser, &exports, format, name);
        assert!(page.contains(&shown) && page.contains("Hot.heavy"), "{format}: no {shown}");
    }
}

/// Numbers that stand alone in cells, thousands apart by commas.
fn cells(html: &str) -> Vec<u64> {
    let cells = html.split("<td").skip(1).filter_map(|cell| cell.split_once('>')?.1.split('<').next());
    let numbers = cells.filter_map(|cell| cell.split(" (").next()?.trim().replace(',', "").parse::<u64>().ok());
    let all: Vec<u64> = numbers.collect();
    // Of the list of profiles every other cell is the row's number.
    all.chunks(2).filter_map(|pair| pair.last().copied()).collect()
}

fn browser() -> Option<&'static str> {
    let starts = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(starts)
}

/// The page's elements once the file is loaded, as speedscope's command line loads it.
fn show(browser: &str, exports: &Exports, format: &str, name: &str) -> String {
    let release = node::packages().unwrap().join("node_modules/speedscope/dist/release/index.html");
    let bytes = fs::read(exports.export(format, &[])).unwrap();
    let script = exports.path("load.js");
    fs::write(&script, format!("speedscope.loadFileFromBase64({name:?}, {:?})", base64(&bytes))).unwrap();
    let url = format!("file://{}#localProfilePath={}&view=sandwich", release.display(), script.display());
    dump(browser, &exports.path("browser"), &url)
}

fn dump(browser: &str, profile: &Path, url: &str) -> String {
    let output = Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--use-gl=swiftshader"])
        .args(["--enable-unsafe-swiftshader", "--allow-file-access-from-files", "--virtual-time-budget=20000"])
        .args(["--no-first-run", "--disable-background-networking"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--dump-dom", url])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_usize, |word, byte| word << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..4 {
            let is_there = digit <= group.len();
            text.push(if is_there { char::from(DIGITS[word >> (18 - 6 * digit) & 63]) } else { '=' });
        }
    }
    text
}
