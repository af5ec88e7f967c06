//! Tests that the files for kustomize are what the chart makes.

use std::{env, fs};

use joular_tests::{helm, paths};

use super::{is_skipped, object, rendered};

/// What the files for kustomize do differently: they name the image that their user replaces, and the secret that
/// kustomize makes.
const FOR_KUSTOMIZE: &str = "image: {repository: joular-bpf}\nmetricsToken: {existingSecret: joular-bpf}";

/// How lines begin that only Helm needs.
const OF_HELM: [&str; 5] =
    ["# Source: ", "annotations:", "checksum/config: ", "app.kubernetes.io/managed-by: ", "helm.sh/chart: "];

/// How manifests for kustomize begin.
const MADE: &str = "\
# Made of the chart in ../helm by `UPDATE_FIXTURES=1 cargo test -p joular-tests --test it helm`: change that.
";

/// How the configuration there begins.
const CONFIGURATION: &str = "\
# Configuration of every node's agent: docs/agent.md. It is made of the chart in ../helm, whose values.yaml says what
# these keys are for. To bring runs to one place, add ship = \"s3://fleet/energy\" and ship-at-end = \"45s\".
";

/// Compares a file with what it is made of, or writes it.
fn expect_file(name: &str, made: &str) {
    let path = paths::root().join("packaging/kubernetes").join(name);
    if env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(&path, made).unwrap();
    }
    assert_eq!(made, fs::read_to_string(&path).unwrap(), "{name}: if this is meant, run with UPDATE_FIXTURES=1");
}

#[test]
fn the_files_for_kustomize_are_made_of_the_chart() {
    if is_skipped() {
        return;
    }
    let is_wanted = |line: &&str| !line.is_empty() && !OF_HELM.iter().any(|start| line.trim_start().starts_with(start));
    for program in helm::programs() {
        for name in ["daemon-set.yaml", "priority-class.yaml", "role.yaml", "service-account.yaml"] {
            let template = format!("templates/{name}");
            let text = rendered(&program, FOR_KUSTOMIZE, &["--show-only", &template]);
            let lines: Vec<&str> = text.trim_start_matches("---\n").lines().filter(is_wanted).collect();
            expect_file(name, &format!("{MADE}{}\n", lines.join("\n")));
        }
    }
    let config = object(FOR_KUSTOMIZE, "ConfigMap")["data"]["agent.toml"].take();
    expect_file("agent.toml", &format!("{CONFIGURATION}{}", config.as_str().unwrap()));
}
