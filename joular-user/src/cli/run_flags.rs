//! Defines the flags of `run`: those of a recording, and the command.

use std::ffi::OsString;

use clap::Args;

use super::{experiment_flags::ExperimentFlags, flags::Flags};

/// Flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunFlags {
    /// The command and its arguments
    #[arg(last = true, required_unless_present = "variant", num_args = 1.., value_name = "CMD")]
    pub command: Vec<OsString>,

    /// User that the command runs as, by name or number [default: who called sudo, or else yourself]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    /// A phase begins at a line of the command's output that matches this regular expression; a group (?<name>…) names
    /// it. May be repeated
    #[arg(long, value_name = "REGEX", help_heading = "Phases")]
    pub phase_start: Vec<String>,

    /// A phase ends at such a line: the one that a group names, or else the one that began last
    #[arg(long, value_name = "REGEX", help_heading = "Phases")]
    pub phase_end: Vec<String>,

    /// Something happens at such a line; a group (?<name>…) names it
    #[arg(long, value_name = "REGEX", help_heading = "Phases")]
    pub mark: Vec<String>,

    #[command(flatten)]
    pub experiment: ExperimentFlags,

    #[command(flatten)]
    pub flags: Flags,
}
