//! Lays recordings of Flight Recorder beside power: what the page has of them is what the JDK's own tool `jfr` reads.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use joular_tests::{java, jdk::Jdk};
use serde_json::Value;

use crate::{
    expect_usage_error,
    exports::jfr::events,
    html::{Set, figures, start},
    joular_bpf,
};

/// Longer than two windows of the page, so that at least one lies within.
const RECORDED_MS: &str = "2500";

/// A program that records itself, by this JDK.
fn recorded(jdk: &Jdk, folder: &Path) -> PathBuf {
    let file = folder.join(format!("{}.jfr", jdk.release));
    let mut java = Command::new(&jdk.java);
    java.args(["-Xmx64m", "-cp"]).arg(java::classes().unwrap()).arg("FlightRecorded").arg(&file).arg(RECORDED_MS);
    let output = java.output().unwrap();
    assert!(output.status.success(), "{java:?}: {}", String::from_utf8_lossy(&output.stderr));
    file
}

/// Of the safepoint that ends a recording, the event begins after what the chunk says of its length.
const END_NS: i64 = 200_000_000;

/// Moves a recording of one chunk to shortly before the time of a page ends.
fn move_into(page: &Value, file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let number = |bytes: &[u8], at: usize| i64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
    assert_eq!(number(&bytes, 8), i64::try_from(bytes.len()).unwrap(), "one chunk");
    let start_ns = page["time"]["end_us"].as_i64().unwrap() * 1000 - number(&bytes, 40) - END_NS;
    bytes[32..40].copy_from_slice(&start_ns.to_be_bytes());
    fs::write(file, bytes).unwrap();
}

/// `PT0.0021S`, in nanoseconds.
fn length_ns(event: &Value) -> u64 {
    let text = event["duration"].as_str().unwrap();
    let seconds = text.strip_prefix("PT").and_then(|rest| rest.strip_suffix('S')).and_then(|rest| rest.parse().ok());
    let length = Duration::from_secs_f64(seconds.unwrap_or_else(|| panic!("{text}")));
    u64::try_from(length.as_nanos()).unwrap()
}

fn text<'a>(figures: &'a Value, place: &Value) -> &'a str {
    figures["strings"][usize::try_from(place.as_u64().unwrap()).unwrap()].as_str().unwrap()
}

#[test]
fn lanes_have_the_events_that_the_jdk_reads_across_jdks() {
    let set = Set::new();
    let plain = figures(&set.make("html", "plain.html", &[]));
    for jdk in Jdk::tried().unwrap() {
        let file = recorded(jdk, set.data().parent().unwrap());
        move_into(&plain, &file);
        let page = figures(&set.make("html", "page.html", &["--jfr", file.to_str().unwrap()]));
        let flight = &page["flights"][0];
        assert!(text(&page, &flight["name"]).ends_with(".jfr"));
        let mut names = Vec::new();
        for lane in flight["lanes"].as_array().unwrap() {
            let name = text(&page, &lane["name"]);
            let expected = events(&file, name);
            assert_eq!(lane["count"], expected.len(), "JDK {jdk}: {name}");
            let (sum, sum_ns) = (expected.iter().map(length_ns).sum::<u64>(), lane["total_ns"].as_u64().unwrap());
            // The JDK rounds the ticks of each event by itself.
            assert!(sum.abs_diff(sum_ns) <= 2 * expected.len() as u64, "JDK {jdk}: {name}: {sum_ns} of {sum} ns");
            names.push(name);
        }
        for name in
            ["com.acme.HttpRequest", "com.acme.Tick", "jdk.GarbageCollection", "jdk.JavaMonitorEnter", "jdk.ThreadPark"]
        {
            assert!(names.contains(&name), "JDK {jdk}: no {name} in {names:?}");
        }
        let lane = |name: &str| &flight["lanes"][names.iter().position(|each| *each == name).unwrap()];
        let said = |name: &str| {
            lane(name)["text"].as_array().unwrap().iter().map(|place| text(&page, place)).collect::<Vec<_>>()
        };
        assert!(
            said("com.acme.HttpRequest").iter().any(|said| said.starts_with("path /orders/µ3, status 203")),
            "{:?}",
            said("com.acme.HttpRequest")
        );
        let collections = events(&file, "jdk.GarbageCollection");
        for (collection, said) in collections.iter().zip(said("jdk.GarbageCollection")) {
            let [name, cause] = ["name", "cause"].map(|field| collection[field].as_str().unwrap());
            assert!(said.starts_with(&format!("name {name}, cause {cause}")), "JDK {jdk}: {said}");
        }
        assert_eq!(text(&page, &lane("com.acme.HttpRequest")["why_not"]), "shorter than a window", "JDK {jdk}");
    }
}

#[test]
fn what_is_wrong_with_a_recording_is_named() {
    let set = Set::new();
    let data = set.data();
    let refused = |file: &Path, options: &[&str]| {
        let page = data.with_file_name("page.html");
        let arguments =
            ["html", data.to_str().unwrap(), "--output", page.to_str().unwrap(), "--jfr", file.to_str().unwrap()];
        let finished = joular_bpf(&[&arguments, options].concat());
        assert_eq!(finished.code(), Some(1), "{finished:?}");
        assert!(!page.exists(), "no page without what was asked for");
        finished.stderr
    };
    let packed = joular_tests::paths::fixtures().join("recordings/flight.jfr.gz");
    assert!(refused(&packed, &[]).contains("unpack it first, with `gunzip`"));
    let file = data.with_file_name("shop.jfr");
    assert!(refused(&file, &[]).contains("shop.jfr: No such file"));
    assert!(
        Command::new("gunzip")
            .arg("-c")
            .arg(&packed)
            .stdout(fs::File::create(&file).unwrap())
            .status()
            .unwrap()
            .success()
    );
    let message = refused(&file, &[]);
    assert!(message.contains("shop.jfr lies within the recording: the file is of 20"), "{message}");
    let message = refused(&file, &["--jfr-event", "org.acme.*"]);
    assert!(message.contains("--jfr-event") && message.contains("com.acme.HttpRequest ("), "{message}");
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    assert!(refused(&file, &[]).contains("ends within the chunk at byte 0"));
    expect_usage_error(&["html", data.to_str().unwrap(), "--jfr-event", "com.acme.*"], &["--jfr"]);
    let (data, file) = (data.to_str().unwrap(), file.to_str().unwrap());
    expect_usage_error(&["html", data, "--jfr", file, "--jfr-event", "a["], &["--jfr-event", "not a pattern"]);
}

#[test]
fn lanes_are_shown_as_text_and_fit_a_narrow_screen() {
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let plain = figures(&set.make("html", "plain.html", &[]));
    let file = recorded(Jdk::tried().unwrap()[0], set.data().parent().unwrap());
    move_into(&plain, &file);
    let page = set.make("html", "page.html", &["--jfr", file.to_str().unwrap()]);
    browser.open(&page).unwrap();
    let lanes = browser.text("document.getElementById('flight-lanes').textContent").unwrap();
    assert!(lanes.contains("com.acme.HttpRequest") && lanes.contains(" together"), "{lanes}");
    let titles = "[...document.querySelectorAll('#flight-lanes title')].map((each) => each.textContent).join()";
    assert!(browser.text(titles).unwrap().contains("text 日本 <img src=x onerror=alert(1)>"), "as text");
    assert_eq!(browser.eval("document.querySelectorAll('#flight img').length").unwrap(), 0);
    let table = browser.text("document.getElementById('flight-table').textContent").unwrap();
    assert!(table.contains("shorter than a window") && table.contains("Power without"), "{table}");
    browser.resize(400, 900).unwrap();
    let wide = browser.eval("document.documentElement.scrollWidth").unwrap();
    assert_eq!(wide, 400, "no scrolling sideways");
    assert_eq!(browser.complaints, Vec::<String>::new());
}
