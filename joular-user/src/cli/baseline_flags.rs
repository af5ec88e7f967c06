//! Defines the flags of `baseline`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::PartFlags;

#[derive(Clone, Debug, PartialEq, Args)]
pub struct BaselineFlags {
    #[command(subcommand)]
    pub command: BaselineCommand,
}

#[derive(Clone, Debug, PartialEq, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "the program has one value of it")]
pub enum BaselineCommand {
    /// Write a baseline of a data set: its total, phases and largest rows, by run
    ///
    /// Verdicts need a baseline of at least 3 sessions, recorded at different times: sessions differ more than the runs
    /// in them. The first command below begins a baseline, the second adds a session.
    #[command(after_help = "Examples:\n  joular-bpf baseline save shop-run energy-baseline.json\n  \
                            joular-bpf baseline save shop-run-2 energy-baseline.json --session")]
    Save(BaselineSaveFlags),

    /// Compare a data set with a baseline, as diff compares two data sets
    ///
    /// Rows, the measure and the selected part are those of the baseline. Sessions of the baseline are the replicates:
    /// at least 3. With fewer, nothing is called changed, and --fail-above rests on the noise of runs. Each side needs
    /// at least 3 runs.
    #[command(after_help = "Example: joular-bpf baseline check energy-baseline.json shop-run --fail-above 5%")]
    Check(BaselineCheckFlags),
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct BaselineSaveFlags {
    /// Directory of the data set
    #[arg(value_name = "DATA")]
    pub data: PathBuf,

    /// File to write, or - for standard output
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// What a row is: method, class, package, process, thread, category or kind [default: method]
    #[arg(long, value_name = "WHAT")]
    pub by: Option<String>,

    /// Amounts of a method by itself (self) or with what it calls (total) [default: self]
    #[arg(long, alias = "sort", value_name = "VIEW")]
    pub view: Option<String>,

    /// What is kept: energy, allocated, sent or another measure of report [default: energy]
    #[arg(long, value_name = "NAME")]
    pub measure: Option<String>,

    /// Units of work of each run, in the order of their starts: 100,98,101
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',')]
    pub work: Vec<f64>,

    /// Number of rows to keep, the largest ones, 0 for all; an added session has the rows of the file [default: 100]
    #[arg(long, value_name = "COUNT")]
    pub top: Option<usize>,

    /// Add DATA to FILE as one more session, called NAME or by its time; without this, FILE is replaced. Rows, measure
    /// and part are those of FILE. If there is no FILE yet, it is begun
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub session: Option<String>,

    /// Number of sessions to keep, those that were added last [default: all]
    #[arg(long, value_name = "COUNT", requires = "session", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_sessions: Option<u32>,

    #[command(flatten)]
    pub part: PartFlags,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct BaselineCheckFlags {
    /// File of the baseline
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Directory of the data set to compare with it
    #[arg(value_name = "DATA")]
    pub data: PathBuf,

    /// Figure to compare: run (joules of a run), time (watts), cpu (joules per CPU second) or none (joules), or the
    /// same of another measure [default: run]
    #[arg(long, value_name = "WHAT")]
    pub per: Option<String>,

    /// Units of work of each run of DATA, in the order of their starts; compares joules, or amounts of another
    /// measure, per unit of work, if the baseline has counts, too
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', conflicts_with = "per")]
    pub work: Vec<f64>,

    /// Report `no change` for a change that is certainly smaller than this [default: 5%]
    #[arg(long, value_name = "PERCENT")]
    pub margin: Option<String>,

    /// End with exit code 8 if DATA certainly needs more than the baseline by this much, and with 9 if there are
    /// not enough runs to tell, or they were made differently
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<String>,

    /// Where --fail-above looks for an increase: total, row for any row, or phase for any phase [default: total]
    #[arg(long, value_name = "WHAT", requires = "fail_above")]
    pub fail_on: Option<String>,

    /// Compare DATA as it was attributed. Without this, data that divides energy differently is attributed in a
    /// temporary file as the baseline was; the data set does not change
    #[arg(long)]
    pub as_attributed: bool,

    /// Number of rows to show, largest changes first, 0 for all [default: 20; all with --json]
    #[arg(long, value_name = "COUNT")]
    pub top: Option<usize>,

    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,

    /// Print Markdown for a pull request
    #[arg(long)]
    pub markdown: bool,

    /// Write JUnit XML to this file, too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}
