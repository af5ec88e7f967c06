//! Defines the flags of `diff`.

use std::path::PathBuf;

use clap::Args;

use super::PartFlags;

#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct DiffFlags {
    /// Directory of the data set before the change
    #[arg(value_name = "A")]
    pub a: PathBuf,

    /// Directory of the data set after the change
    #[arg(value_name = "B")]
    pub b: PathBuf,

    /// What is compared: energy, allocated, sent or another measure of report [default: energy]
    #[arg(long, value_name = "NAME")]
    pub measure: Option<String>,

    /// What a row is: method, class, package, handler, process, thread, category or kind [default: method]
    #[arg(long, value_name = "WHAT")]
    pub by: Option<String>,

    /// Energy of a method by itself (self) or with what it calls (total) [default: self]
    #[arg(long, alias = "sort", value_name = "VIEW")]
    pub view: Option<String>,

    /// Figure to compare: time (watts), cpu (joules per CPU second), run (joules of a run), request (joules per request
    /// of each route) or none (joules); the same of another measure [default: of whole runs of commands run, of other
    /// recordings time]
    #[arg(long, value_name = "WHAT")]
    pub per: Option<String>,

    /// Units of work that A did, such as requests; compares joules per unit of work. Of several runs
    /// give each one's count, in the order of their starts: 100,98,101
    #[arg(long, value_name = "COUNT", value_delimiter = ',', requires = "work_b", conflicts_with = "per")]
    pub work_a: Vec<f64>,

    /// Units of work that B did
    #[arg(long, value_name = "COUNT", value_delimiter = ',', requires = "work_a", conflicts_with = "per")]
    pub work_b: Vec<f64>,

    /// Counts of the requests of A, for --per request: a CSV file as for report --requests. With counts of 3 runs or of 20
    /// times on each side there are intervals
    #[arg(long, value_name = "FILE", requires = "requests_b", conflicts_with_all = ["work_a", "view", "measure", "html",
          "method", "handler", "app", "java", "charge_gc"])]
    pub requests_a: Option<PathBuf>,

    /// Counts of the requests of B
    #[arg(long, value_name = "FILE", requires = "requests_a")]
    pub requests_b: Option<PathBuf>,

    /// Report `no change` for a change that is certainly smaller than this [default: 5%]
    #[arg(long, value_name = "PERCENT")]
    pub margin: Option<String>,

    /// End with exit code 8 if B certainly needs more than A by this much, and with 9 if there are not
    /// enough runs to tell, or they were made differently
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<String>,

    /// Where --fail-above looks for an increase: total, row for any row, or phase for any phase [default: total]
    #[arg(long, value_name = "WHAT", requires = "fail_above")]
    pub fail_on: Option<String>,

    /// Compare A and B as they were attributed. Without this, sides that divide energy differently are
    /// attributed alike in a temporary file; the data sets do not change
    #[arg(long)]
    pub as_attributed: bool,

    /// Number of rows to show, largest changes first, 0 for all [default: 20; all with --json and --csv]
    #[arg(long, value_name = "COUNT")]
    pub top: Option<usize>,

    /// Print one JSON object
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    pub json: bool,

    /// Print CSV
    #[arg(long, conflicts_with = "markdown")]
    pub csv: bool,

    /// Print Markdown for a pull request
    #[arg(long)]
    pub markdown: bool,

    /// Write JUnit XML to this file, too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// Write a page to this file, too: the verdict, the rows, and flame graphs of A, of B and of what changed
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    #[command(flatten)]
    pub part: PartFlags,
}
