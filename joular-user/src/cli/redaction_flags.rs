//! Defines what is secret in command lines, as it is written: rules of the configuration file, and flags of commands about
//! a data set. [`crate::config`] validates them.

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;

/// A table `[[redact]]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RedactRuleFlags {
    /// Of options, properties and variables whose values are secret: a name, or a pattern of names.
    pub name: Option<String>,
    /// Of what is secret: a regular expression, or its groups if it has any.
    pub pattern: Option<String>,
}

/// Flags of commands that redact unless they are told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct CommandLineFlags {
    /// What is shown of command lines: none, redacted or full [default: redacted]
    #[arg(long, value_name = "WHAT")]
    pub command_line: Option<String>,

    /// Configuration file whose command-line and redact rules apply
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Flags of commands that keep what was recorded unless they are told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct RedactFlags {
    /// Take secrets out of command lines, where a recording left them in
    #[arg(long)]
    pub redact: bool,

    /// Configuration file whose redact rules apply, too
    #[arg(long, value_name = "FILE", requires = "redact")]
    pub config: Option<PathBuf>,
}
