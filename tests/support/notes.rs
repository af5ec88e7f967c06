//! Keeps lines that `cargo xtask test` shows at its end: a test that passes prints nothing, but
//! some things should be seen then, too.
//!
//! The command names a file in `JOULAR_NOTES`; each note is a line appended to it.

use std::{env, fs, io::Write as _, panic::Location, thread};

/// The environment variable that names the file.
pub const FILE: &str = "JOULAR_NOTES";

/// How the line of a test that did nothing begins.
pub const SKIPPED: &str = "skipped: ";

/// Reasons for which a test may do nothing in CI too, by a part of their text, and why
/// they are none to fail for.
const PERMITTED: &[(&str, &str)] = &[
    ("needs root", "unit tests run as the developer, who need not be root"),
    ("needs x86-64", "the walk by tables, and the kernels to start, are of that architecture"),
    ("without hardware counters", "machines that count cycles have no refusal to test"),
    ("needs Debian's packages", "kernels to start come as packages of Debian"),
];

/// Notes that the calling test cannot do anything on this machine; it must end then.
///
/// # Panics
///
/// In CI (`CI` is set), unless the reason is permitted there.
#[track_caller]
pub fn skipped(reason: &str) {
    let test = test_name(Location::caller());
    append(&format!("{SKIPPED}{test}: {reason}"));
    let is_permitted = PERMITTED.iter().any(|(part, _)| reason.contains(part));
    assert!(is_permitted || env::var_os("CI").is_none(), "no test may be skipped in CI: {reason}");
}

/// Publishes a figure that no bound is set for.
pub fn figure(text: &str) {
    append(&format!("measured: {text}"));
}

#[allow(clippy::panic, reason = "fails the test that calls it")]
#[allow(clippy::print_stdout, reason = "for those who run one test by hand")]
fn append(line: &str) {
    println!("{line}");
    let Some(path) = env::var_os(FILE) else { return };
    let file = fs::OpenOptions::new().create(true).append(true).open(&path);
    // One write, so that tests of several processes do not mix their lines.
    let bytes = format!("{}\n", line.replace('\n', " "));
    if let Err(error) = file.and_then(|mut file| file.write_all(bytes.as_bytes())) {
        panic!("{}: {error}: '{line}' must be noted there", path.display());
    }
}

/// The test harness names threads after their tests. A test that runs alone is on the
/// main thread, and is known by its place.
fn test_name(caller: &Location) -> String {
    match thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", caller.file(), caller.line()),
    }
}
