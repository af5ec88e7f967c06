//! Defines the flags of `compact`.

use std::path::PathBuf;

use clap::Args;

use super::redaction_flags::RedactFlags;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CompactFlags {
    /// Directory of the data set; no run may be writing to it
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Directory of the data set to write, new or empty [default: replace DIR]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub redaction: RedactFlags,

    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
