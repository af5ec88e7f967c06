//! Flags of `report`.

use std::path::PathBuf;

use clap::Args;

use super::part_flags::PartFlags;

/// What is shown, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ReportFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// What a row is; several make several tables
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', default_value = "method",
          value_parser = ["method", "class", "package", "branch", "thread", "category", "kind", "process", "host", "line"])]
    pub by: Vec<String>,

    /// Rows of a table, 0 for all; the others are one row together
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    pub top: usize,

    /// Which energy ranks rows: of what ran itself, or with what it called
    #[arg(long, value_name = "WHICH", default_value = "self", value_parser = ["self", "total"])]
    pub sort: String,

    /// How often methods, classes, packages and lines were called at least, and so the energy of a call at most
    #[arg(long)]
    pub activations: bool,

    /// One JSON object
    #[arg(long, group = "format")]
    pub json: bool,

    /// One table as comma-separated values
    #[arg(long, group = "format")]
    pub csv: bool,

    /// Tables in Markdown
    #[arg(long, group = "format")]
    pub markdown: bool,

    #[command(flatten)]
    pub part: PartFlags,
}
