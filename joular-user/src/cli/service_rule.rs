//! Defines a rule of the configuration file that names a service.

use serde::Deserialize;

/// A table `[[service-rule]]` as it was written. [`crate::config`] validates it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServiceRuleFlags {
    /// The service.
    pub name: String,
    pub version: Option<String>,
    pub comm: Option<String>,
    pub main_class: Option<String>,
    pub cgroup: Option<String>,
    pub container: Option<String>,
    pub unit: Option<String>,
    pub namespace: Option<String>,
    /// `KEY=VALUE`.
    pub label: Option<String>,
    pub command_line: Option<String>,
}
