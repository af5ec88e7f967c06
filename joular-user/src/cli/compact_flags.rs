//! Flags of `compact`.

use std::path::PathBuf;

use clap::Args;

/// See the module's head.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CompactFlags {
    /// Directory of the data set, which no run may be writing to
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Directory of the data set to write, which must not exist or be empty [default: in place of DIR]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// What was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
