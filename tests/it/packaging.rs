//! Tests the files that joular-bpf is installed with.

use std::{fs, process::Command};

use joular_tests::paths;

use crate::joular_bpf;

/// As `systemd-analyze security` rates: 0 is nothing that a service could do.
const MOST_EXPOSURE: f64 = 4.0;

#[test]
fn the_configuration_that_is_installed_is_right_and_so_is_each_key_that_it_offers() {
    let file = paths::root().join("packaging/agent.toml");
    let folder = tempfile::tempdir().unwrap();
    let all = folder.path().join("all.toml");
    let text = fs::read_to_string(&file).unwrap();
    let is_key = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let is_offered = |line: &str| line.starts_with("[[") || line.split_once(" = ").is_some_and(|(key, _)| is_key(key));
    let offered = |line: &str| line.strip_prefix("# ").filter(|line| is_offered(line)).map(ToOwned::to_owned);
    let lines: Vec<String> = text.lines().map(|line| offered(line).unwrap_or_else(|| line.to_owned())).collect();
    assert!(lines.join("\n") != text.trim_end(), "nothing is offered");
    fs::write(&all, lines.join("\n")).unwrap();
    for file in [&file, &all] {
        let checked = joular_bpf(&["agent", "--check", "--config", file.to_str().unwrap()]);
        assert_eq!(checked.code(), Some(0), "{checked:?}");
    }
}

#[test]
fn the_unit_is_hardened() {
    let unit = paths::root().join("packaging/systemd/joular-bpf.service");
    let mut command = Command::new("systemd-analyze");
    let output = command.args(["security", "--offline=true", "--no-pager"]).arg(&unit).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("ignoring"), "{said}");
    let level = said.lines().find(|line| line.contains("Overall exposure level")).expect("a level");
    let level: f64 = level.split(": ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("a number");
    assert!(level <= MOST_EXPOSURE, "{said}");
}
