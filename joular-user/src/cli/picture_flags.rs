//! Flags of `flamegraph` and `html`: pictures of a data set.

use std::path::PathBuf;

use clap::Args;

use super::part_flags::PartFlags;

/// What both have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct LevelFlags {
    /// Processes first, then frames
    #[arg(long)]
    pub by_process: bool,

    /// Processes first, then threads by name, then frames
    #[arg(long, conflicts_with = "by_process")]
    pub by_thread: bool,
}

/// Flags of `flamegraph`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct FlamegraphFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Where to draw; - for standard output
    #[arg(long, value_name = "FILE", default_value = "flamegraph.svg")]
    pub output: PathBuf,

    /// Compare with this data set, which was before: red has more now, blue less
    #[arg(long, value_name = "DIR")]
    pub diff: Option<PathBuf>,

    /// What --diff takes as equal: share (of the energy), time (power) or none
    #[arg(long, value_name = "HOW", requires = "diff", value_parser = ["share", "time", "none"], default_value = "share")]
    pub normalise: String,

    /// The root at the top
    #[arg(long)]
    pub icicle: bool,

    /// Merge what has less than this part of the whole
    #[arg(long, value_name = "SHARE", default_value = "0.05%")]
    pub min_share: String,

    #[command(flatten)]
    pub levels: LevelFlags,

    #[command(flatten)]
    pub part: PartFlags,
}

/// Flags of `html`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct HtmlFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Where to write the page; - for standard output
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,

    /// Threads by name between processes and frames of the flame graph
    #[arg(long)]
    pub by_thread: bool,

    #[command(flatten)]
    pub part: PartFlags,
}
