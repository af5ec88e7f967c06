//! Tests errors in the configuration file: what is wrong, and where.

use std::fs;

use crate::expect_usage_error;

/// Runs with a configuration file of this text.
fn expect_config_error(text: &str, words: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("joular.toml");
    fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    expect_usage_error(&["--all", "--config", path], &[&[path], words].concat());
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_line() {
    expect_config_error("frequency = 99\ninterval = [1s\n", &["joular.toml:2"]);
}

#[test]
fn an_unknown_key_is_named() {
    expect_config_error("frequenzy = 99\n", &["frequenzy"]);
}

#[test]
fn a_value_of_the_wrong_kind_is_shown_with_its_line() {
    expect_config_error("# twice a second\nfrequency = \"often\"\n", &["joular.toml:2", "often"]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    expect_usage_error(&["--all", "--config", "/nonexistent/joular.toml"], &["/nonexistent/joular.toml"]);
}

#[test]
fn a_rule_for_services_with_a_mistake_is_named() {
    expect_config_error("[[service-rule]]\nname = \"shop\"\nclass = \"x\"\n", &["joular.toml:3", "class"]);
    expect_config_error("[[service-rule]]\nname = \"shop\"\n", &["rule 1", "shop", "no condition"]);
}
