//! Defines the flags of `sweep`.

use std::path::PathBuf;

use clap::Args;

use super::RunFlags;

/// Flags of `sweep`: those of an experiment, and of what is fitted.
#[derive(Clone, Debug, Args)]
pub struct SweepFlags {
    /// Energy of a method by itself (self) or with what it calls (total) [default: self]
    #[arg(long, alias = "sort", value_name = "VIEW", help_heading = "Growth")]
    pub view: Option<String>,

    /// The older name of --top
    #[arg(long, value_name = "COUNT", hide = true, conflicts_with = "top")]
    pub methods: Option<usize>,

    /// The older name of --export-plot; always SVG
    #[arg(long, value_name = "FILE", hide = true)]
    pub svg: Option<PathBuf>,

    /// Write a web page: classes, drawings, and what larger values would need
    #[arg(long, value_name = "FILE", help_heading = "Growth")]
    pub html: Option<PathBuf>,

    /// Compare the classes with those of an earlier sweep, which --export-json has written; ends with exit code 8 if
    /// the total or a method grows faster and needs over 10 % more at the largest value, and with 9 if nothing can be
    /// said of the total
    #[arg(long, value_name = "FILE", help_heading = "Growth")]
    pub against: Option<PathBuf>,

    #[command(flatten)]
    pub run: RunFlags,
}
