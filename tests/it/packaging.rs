//! Tests the files that packages are made of.

use std::{collections::BTreeSet, fs, process::Command};

use joular_tests::{
    notes,
    packages::{MOST_EXPOSURE, is_of_an_older_systemd},
    paths, python,
};

use crate::joular_bpf;

#[test]
fn the_configuration_that_is_installed_is_right_and_so_is_each_key_that_it_offers() {
    let file = paths::root().join("packaging/agent.toml");
    let folder = tempfile::tempdir().unwrap();
    let all = folder.path().join("all.toml");
    let text = fs::read_to_string(&file).unwrap();
    let is_key = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let is_offered = |line: &str| line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| is_key(key));
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
    assert!(!said.lines().any(|line| line.contains("ignoring") && !is_of_an_older_systemd(line)), "{said}");
    let level = said.lines().find(|line| line.contains("Overall exposure level")).expect("a level");
    let level: f64 = level.split(": ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).expect("a number");
    assert!(level <= MOST_EXPOSURE, "{said}");
}

/// Capabilities without `CAP_`, in order.
fn capabilities(words: &str) -> BTreeSet<String> {
    let words = words.split(|c: char| !(c.is_ascii_uppercase() || c == '_')).filter(|word| !word.is_empty());
    words.map(|word| word.trim_start_matches("CAP_").to_owned()).collect()
}

#[test]
fn the_unit_the_daemon_set_and_the_selinux_policy_have_the_same_capabilities_and_the_document_explains_each() {
    let line = |file: &str, start: &str| {
        let text = fs::read_to_string(paths::root().join(file)).unwrap();
        let line = text.lines().find_map(|line| line.trim().strip_prefix(start)).unwrap();
        capabilities(line)
    };
    let unit = line("packaging/systemd/joular-bpf.service", "CapabilityBoundingSet=");
    assert_eq!(unit, line("packaging/kubernetes/daemon-set.yaml", "add: "));
    let policy = fs::read_to_string(paths::root().join("packaging/selinux/joular-bpf.cil")).unwrap();
    // What the administrator can turn on beside these is indented.
    let rules = policy.lines().filter(|line| line.starts_with("(allow joular_bpf_t self (capability"));
    let of_policy = rules.flat_map(|rule| capabilities(&rule.split('(').nth(3).unwrap().to_uppercase())).collect();
    assert_eq!(unit, of_policy);
    let document = fs::read_to_string(paths::root().join("docs/operating.md")).unwrap();
    let rows = document.lines().filter(|line| line.starts_with("| CAP_"));
    let explained: BTreeSet<String> = rows.flat_map(|row| capabilities(row.split('|').nth(1).unwrap())).collect();
    assert!(unit.is_subset(&explained), "{unit:?} {explained:?}");
}

#[test]
fn the_manifests_are_what_kubernetes_takes() {
    if !python::ENGINES.is_ready() {
        return notes::skipped("the schemas of Kubernetes are missing (`cargo xtask setup` installs them)");
    }
    let manifests = ["namespace", "service-account", "role", "priority-class", "daemon-set"];
    let files = manifests.map(|name| paths::root().join(format!("packaging/kubernetes/{name}.yaml")));
    for release in ["1.31", "1.37"] {
        let output = python::ENGINES.script("manifests.py").unwrap().arg(release).args(&files).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{release}: {}", String::from_utf8_lossy(&output.stderr));
        let kinds: Vec<&str> = said.lines().filter_map(|line| line.strip_suffix(" joular-bpf")).collect();
        let expected =
            ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "PriorityClass", "DaemonSet"];
        assert_eq!(kinds, expected, "{said}");
    }
}

#[test]
fn the_configuration_of_the_daemon_set_is_right() {
    let file = paths::root().join("packaging/kubernetes/agent.toml");
    let checked = joular_bpf(&["agent", "--check", "--config", file.to_str().unwrap()]);
    assert_eq!(checked.code(), Some(0), "{checked:?}");
}

#[test]
fn the_jobs_for_ci_systems_are_yaml_whose_commands_a_shell_understands() {
    if !python::ENGINES.is_ready() {
        return notes::skipped("a reader of YAML is missing (`cargo xtask setup` installs it)");
    }
    for name in ["github", "gitlab"] {
        let file = paths::root().join(format!("packaging/ci/{name}.yml"));
        let said = printed(python::ENGINES.script("ci_jobs.py").unwrap().arg(&file));
        for command in ["joular-bpf run", "joular-bpf baseline check"] {
            assert!(said.contains(command), "{name}: {said}");
        }
        printed(Command::new("bash").args(["-n", "-c", &said]));
    }
}

/// What a command prints.
pub fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
