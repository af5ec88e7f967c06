//! Defines the flags of `run`: those of a recording, and the command.

use std::ffi::OsString;

use clap::Args;

use super::flags::Flags;

/// Flags of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunFlags {
    /// The command and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "CMD")]
    pub command: Vec<OsString>,

    /// User that the command runs as, by name or number [default: who called sudo, or else yourself]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,

    #[command(flatten)]
    pub flags: Flags,
}
