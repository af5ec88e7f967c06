//! Defines a rule of the configuration file that says what is secret.

use serde::Deserialize;

/// A table `[[redact]]` as it was written. [`crate::config`] validates it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RedactRuleFlags {
    /// Of options, properties and variables whose values are secret: a name, or a pattern of names.
    pub name: Option<String>,
    /// Of what is secret: a regular expression, or its groups if it has any.
    pub pattern: Option<String>,
}
