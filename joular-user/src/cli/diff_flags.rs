//! Flags of `diff`, as typed.

use std::path::PathBuf;

use clap::Args;

use super::PartFlags;

/// See the module's head.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct DiffFlags {
    /// Directory of the data set to compare with: before
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// Directory of the data set that is compared: after
    #[arg(value_name = "B")]
    pub b: PathBuf,

    /// What a row is: method, class, package, process, thread, category or kind [default: method]
    #[arg(long, value_name = "WHAT")]
    pub by: Option<String>,

    /// Energy of a method itself, or in total with what it calls: self or total [default: self]
    #[arg(long, value_name = "VIEW")]
    pub view: Option<String>,

    /// What energy is divided by: time (watts), cpu (joules per CPU second) or none (joules) [default: time]
    #[arg(long, value_name = "WHAT")]
    pub per: Option<String>,

    /// Units of work that A did, such as requests: compares joules per unit
    #[arg(long, value_name = "COUNT", requires = "work_b", conflicts_with = "per")]
    pub work_a: Option<f64>,

    /// Units of work that B did
    #[arg(long, value_name = "COUNT", requires = "work_a", conflicts_with = "per")]
    pub work_b: Option<f64>,

    /// A change that is certain to be smaller than this is none [default: 5%]
    #[arg(long, value_name = "PERCENT")]
    pub margin: Option<String>,

    /// End with exit code 8 if B is certain to need this much more than A
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<String>,

    /// Whose increase --fail-above is about: the total, or any method (row) [default: total]
    #[arg(long, value_name = "WHAT", requires = "fail_above")]
    pub fail_on: Option<String>,

    /// Rows to show, those that changed most; 0: all [default: 20, all with --json and --csv]
    #[arg(long, value_name = "COUNT")]
    pub top: Option<usize>,

    /// As one JSON object
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    pub json: bool,

    /// As CSV
    #[arg(long, conflicts_with = "markdown")]
    pub csv: bool,

    /// As a Markdown table
    #[arg(long)]
    pub markdown: bool,

    #[command(flatten)]
    pub part: PartFlags,
}
