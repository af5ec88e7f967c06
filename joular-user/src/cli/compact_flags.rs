//! Defines the flags of `compact`.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::redaction_flags::RedactFlags;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct CompactFlags {
    /// Directory of the data set, to which no run may be writing; or the place that hosts ship to
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Of a place that hosts ship to: hours before the present one that are summed by service
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=8784), default_value_t = 3)]
    pub hours: u32,

    /// The same from this time on, such as 2026-03-01T00:00:00Z, in place of --hours
    #[arg(long, value_name = "TIME")]
    pub since: Option<Timestamp>,

    /// The same until this time
    #[arg(long, value_name = "TIME", requires = "since")]
    pub until: Option<Timestamp>,

    /// Directory of the data set to write, new or empty [default: replace DIR]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub redaction: RedactFlags,

    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
