//! Defines the flags of `compact`.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CompactFlags {
    /// Directory of the data set; no run may be writing to it
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Directory of the data set to write, new or empty [default: replace DIR]
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    /// Take secrets out of command lines, where a recording left them in
    #[arg(long)]
    pub redact: bool,

    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
