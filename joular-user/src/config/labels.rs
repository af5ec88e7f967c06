//! Checks the labels of this host.

use std::collections::BTreeMap;

/// Labels of a host, whether the configuration has them or the environment.
pub const MAX_LABELS: usize = 32;
const MAX_KEY_BYTES: usize = 128;
const MAX_VALUE_BYTES: usize = 256;

/// Beginnings of keys that OpenTelemetry has for what is not a host.
const OF_OTHERS: [&str; 6] = ["service.", "process.", "container.", "k8s.pod.", "k8s.container.", "telemetry."];
/// Keys that joular-bpf sets itself.
const OWN: [&str; 2] = ["host.name", "host.id"];

/// # Errors
/// If a key or a value is not one that all outputs can have, or there are too many; says which and why.
pub fn checked(labels: &BTreeMap<String, String>) -> Result<(), String> {
    if labels.len() > MAX_LABELS {
        return Err(format!("{} labels are more than {MAX_LABELS}", labels.len()));
    }
    labels
        .iter()
        .try_for_each(|(key, value)| label(key, value).map_err(|cause| format!("{}: {cause}", key.escape_debug())))
}

/// # Errors
/// Why it is not a label.
pub fn label(key: &str, value: &str) -> Result<(), String> {
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.chars().all(is_of_key) {
        return Err(format!("a key has 1 to {MAX_KEY_BYTES} letters, digits, dots, slashes, hyphens and underscores"));
    }
    if !is_of_hosts(key) {
        return Err("joular-bpf sets it, or it is about something else than a host: choose another key".to_owned());
    }
    if value.is_empty() || value.len() > MAX_VALUE_BYTES || value.chars().any(char::is_control) {
        return Err(format!("a value has 1 to {MAX_VALUE_BYTES} bytes, none of them a control character"));
    }
    Ok(())
}

/// Whether a key is about hosts.
pub fn is_of_hosts(key: &str) -> bool {
    !OWN.contains(&key) && !OF_OTHERS.iter().any(|beginning| key.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_are_what_all_outputs_can_have() {
        for (key, value, is_right) in [
            ("cluster", "eu1", true),
            ("topology.kubernetes.io/region", "eu-west-1", true),
            ("team", "shop & orders", true),
            ("", "x", false),
            ("a b", "x", false),
            ("a=b", "x", false),
            ("team", "", false),
            ("team", "a\nb", false),
            ("service.name", "x", false),
            ("host.name", "x", false),
        ] {
            assert_eq!(label(key, value).is_ok(), is_right, "{key}={value}");
        }
        let many = (0..=MAX_LABELS).map(|number| (format!("key-{number}"), "x".to_owned())).collect();
        assert!(checked(&many).unwrap_err().contains("more than 32"));
    }
}
