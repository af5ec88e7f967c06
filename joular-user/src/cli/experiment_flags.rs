//! Defines the flags of experiments: commands that are run many times.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Experiments")]
pub struct ExperimentFlags {
    /// Run the command, or each variant, so many times, in a random order; with --until-interval, at most so many times
    /// [default: 100 with --until-interval, 3 with --variant or --parameter, otherwise 1]
    #[arg(long, value_name = "COUNT")]
    pub repeat: Option<u32>,

    /// Repeat until the 95 % interval of each variant's mean energy (or energy per unit of work) is within so many
    /// percent of the mean, such as 2%, for at most --repeat rounds. An interval that ended an experiment is slightly
    /// too narrow
    #[arg(long, value_name = "PERCENT")]
    pub until_interval: Option<String>,

    /// Runs of each variant before --until-interval may end the experiment [default: 10, or --repeat if that is less]
    #[arg(long, value_name = "COUNT")]
    pub min_runs: Option<u32>,

    /// Run each variant so many times before, without counting these runs
    #[arg(long, value_name = "COUNT")]
    pub warmup: Option<u32>,

    /// Pause before each run but the first, such as 5s
    #[arg(long, value_name = "TIME")]
    pub cool_down: Option<String>,

    /// A shell command that sh runs before each run, warm-ups too, as the command's user; its energy is not counted,
    /// and if it fails, the experiment ends. {NAME} stands for the value of a parameter. Given once, it is for all variants;
    /// otherwise give it once for each, in their order
    #[arg(long, value_name = "COMMAND")]
    pub prepare: Vec<String>,

    /// The same after each run, also after one that failed (hyperfine's --conclude); its energy is not counted
    #[arg(long, value_name = "COMMAND")]
    pub cleanup: Vec<String>,

    /// A command to compare, cut into words as a shell does; may be repeated, instead of a command after --
    #[arg(long, value_name = "NAME='CMD'")]
    pub variant: Vec<String>,

    /// Values for {NAME} in the command, each a variant: jdk=17,21 or n=1..8 or n=1000..1000000:log:12; may be repeated
    #[arg(long, value_name = "NAME=VALUES")]
    pub parameter: Vec<String>,

    /// Seed of the random order [default: a random one, which is printed]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Units of work that each run does; shows joules per unit
    #[arg(long, value_name = "COUNT", conflicts_with = "work_regex")]
    pub work: Option<f64>,

    /// The number of units that the command prints: the first group of the last line that matches
    #[arg(long, value_name = "REGEX")]
    pub work_regex: Option<String>,

    /// Compare methods in the application view: energy goes to the frame nearest the leaf in these packages or classes; auto
    /// stands for the packages that report names
    #[arg(long, value_name = "PREFIX,…", value_delimiter = ',')]
    pub app: Vec<String>,

    /// Count runs that end with an error, too
    #[arg(long)]
    pub ignore_failure: bool,

    /// Show the commands' output
    #[arg(long)]
    pub show_output: bool,

    /// Write the results as JSON, with each run; - is standard output
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write a line for each variant as CSV
    #[arg(long, alias = "csv", value_name = "FILE")]
    pub export_csv: Option<PathBuf>,

    /// Write a line for each run as CSV, warm-ups and runs that failed too, with whether it counts and why
    #[arg(long, value_name = "FILE")]
    pub export_runs_csv: Option<PathBuf>,

    /// Write a Markdown table
    #[arg(long, alias = "markdown", value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,

    /// Write a table of LaTeX, which needs the package booktabs
    #[arg(long, value_name = "FILE")]
    pub export_latex: Option<PathBuf>,

    /// Draw each run, and the mean of each variant with its 95 % interval; a sweep draws energies and the fitted models. SVG
    /// or PDF, as FILE ends in .svg or .pdf
    #[arg(long, value_name = "FILE")]
    pub export_plot: Option<PathBuf>,

    /// Write a paragraph on how the experiment was made, for a paper: LaTeX if FILE ends in .tex, otherwise Markdown.
    /// What was not recorded is said to be unknown; with --output more is known
    #[arg(long, value_name = "FILE")]
    pub export_methods: Option<PathBuf>,
}

impl ExperimentFlags {
    /// Whether there is more than one plain run.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }
}
