//! Defines the flags of `rollup`.

use std::path::PathBuf;

use clap::Args;

use super::redaction_flags::CommandLineFlags;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct RollupFlags {
    /// Directory of the data set to read
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Directory of the data set to write; it must not have these runs
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,

    /// Length of the new windows, a multiple of that of the recorded ones
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub window: String,

    #[command(flatten)]
    pub command_line: CommandLineFlags,

    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
