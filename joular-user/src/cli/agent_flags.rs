//! Defines the flags of `agent`. What it does is in its configuration file.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags of `agent`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct AgentFlags {
    /// Configuration file: TOML with the flags of a recording as keys
    #[arg(long, value_name = "FILE", default_value = "/etc/joular-bpf/agent.toml")]
    pub config: PathBuf,

    /// Check the configuration file, and do nothing else
    #[arg(long)]
    pub check: bool,

    /// With --check: also try this host, and all that the file names
    ///
    /// Files with secrets and certificates, addresses, the data set, the place that runs are shipped to (writes a small
    /// file there, reads and removes it), the OpenTelemetry collector (an empty request), kubelet or container runtime.
    #[arg(long, requires = "check")]
    pub deep: bool,

    /// How messages are written to standard error
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// Least important messages that are written
    ///
    /// SIGUSR1 makes the agent write all of them, also a line about each window; SIGUSR2 goes back to this level.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,
}

/// How important messages are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Error,
    Warning,
    Info,
    Debug,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines of text; for the journal with their priority
    Text,
    /// A JSON object per line: time, level, message
    Json,
}
