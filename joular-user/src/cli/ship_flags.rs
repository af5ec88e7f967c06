//! Defines the flags of `ship`.

use std::path::PathBuf;

use clap::Args;

use super::redaction_flags::CommandLineFlags;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShipFlags {
    /// Directory of the data set; a recording may be writing to it
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Where runs go: a directory that holds a file .joular-bpf-share, s3://BUCKET/PREFIX, gs://… or az://…
    #[arg(value_name = "PLACE")]
    pub to: String,

    /// Length of the windows there, a multiple of that of the recorded ones, or recorded for those as they are
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub window: String,

    /// Ship no more than so many bytes per second, on average, e.g. 500KiB or 2MiB [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub rate: Option<String>,

    #[command(flatten)]
    pub command_line: CommandLineFlags,

    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
