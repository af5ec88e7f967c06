//! Defines the flags of `flamegraph` and `html`: pictures of a data set.

use std::path::PathBuf;

use clap::Args;

use super::{
    DATA_SET, footprint_flags::FootprintFlags, part_flags::PartFlags, redaction_flags::CommandLineFlags,
    tier_flags::TierFlags,
};

/// Flags that choose the levels above the frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct LevelFlags {
    /// Put processes before the frames
    #[arg(long)]
    pub by_process: bool,

    /// Put processes, then threads by name, before the frames
    #[arg(long, conflicts_with = "by_process")]
    pub by_thread: bool,

    /// A method once for each kind of its code: interpreted, c1, c2, inlined
    #[arg(long)]
    pub by_kind: bool,
}

/// Flags of `flamegraph`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct FlamegraphFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR", default_value = DATA_SET)]
    pub data: PathBuf,

    /// File to write, - for standard output. One that ends in .html is a page that can be searched; any other is an SVG
    #[arg(short, long, value_name = "FILE", default_value = "flamegraph.svg")]
    pub output: PathBuf,

    /// What is drawn: energy, allocated, sent, received, read, written, device-read, device-written, remote-sent,
    /// remote-received, local-sent, local-received, or a counter, e.g. page-faults [default: energy]
    #[arg(long, value_name = "NAME")]
    pub measure: Option<String>,

    /// The same as --measure allocated
    #[arg(long, conflicts_with = "measure")]
    pub allocated: bool,

    /// Compare with this earlier data set: red has more now, blue less
    #[arg(long, value_name = "DIR")]
    pub diff: Option<PathBuf>,

    /// Basis of --diff: share (of the whole), time (power) or none (joules)
    #[arg(long, value_name = "HOW", requires = "diff", value_parser = ["share", "time", "none"], default_value = "share")]
    pub normalise: String,

    /// Draw the root at the bottom
    #[arg(long)]
    pub upright: bool,

    /// Merge branches of an SVG with less than this share of the whole [default: 0.05%, about half a pixel]. A page
    /// merges nothing
    #[arg(long, value_name = "SHARE")]
    pub min_share: Option<String>,

    #[command(flatten)]
    pub levels: LevelFlags,

    #[command(flatten)]
    pub part: PartFlags,

    #[command(flatten)]
    pub tier: TierFlags,
}

/// Flags of `html`.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct HtmlFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR", default_value = DATA_SET)]
    pub data: PathBuf,

    /// File to write, - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub output: PathBuf,

    /// Recording of JDK Flight Recorder (.jfr) whose events are laid beside power; can be repeated
    #[arg(long, value_name = "FILE")]
    pub jfr: Vec<PathBuf>,

    /// Events of --jfr that are shown, by name or pattern [default: those of applications, and garbage collections, safepoints,
    /// locks and compilations of the JDK]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "jfr")]
    pub jfr_event: Vec<String>,

    #[command(flatten)]
    pub levels: LevelFlags,

    #[command(flatten)]
    pub command_line: CommandLineFlags,

    #[command(flatten)]
    pub footprint: FootprintFlags,

    #[command(flatten)]
    pub part: PartFlags,
}
