//! Defines the flags of `report`.

use std::{ffi::OsStr, path::PathBuf};

use clap::{
    Arg, Args, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use super::{DATA_SET, footprint_flags::FootprintFlags, part_flags::PartFlags, tier_flags::TierFlags};

/// Takes one of several words; of these, one that ends with `KEY` stands for all that begin as it does.
#[derive(Clone)]
pub struct RowsParser(PossibleValuesParser);

impl RowsParser {
    fn of<const N: usize>(words: [&'static str; N]) -> Self {
        Self(PossibleValuesParser::new(words))
    }
}

impl TypedValueParser for RowsParser {
    type Value = String;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        let begins = |word: &PossibleValue| {
            let beginning = word.get_name().strip_suffix("KEY")?;
            value.to_str()?.strip_prefix(beginning).filter(|key| !key.is_empty()).map(drop)
        };
        match self.possible_values().into_iter().flatten().find_map(|word| begins(&word)) {
            Some(()) => Ok(value.to_string_lossy().into_owned()),
            None => self.0.parse_ref(command, argument, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// Flags of `report`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ReportFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR", default_value = DATA_SET)]
    pub data: PathBuf,

    /// What a row is; several values give several tables
    ///
    /// label:KEY gives a row for each value of this label of pods or hosts, such as label:cluster.
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',', default_value = "method",
          value_parser = RowsParser::of(["method", "class", "package", "branch", "handler", "thread", "thread-pool", "category", "kind",
                        "process", "command", "service", "container", "pod", "namespace", "host", "line", "label:KEY",
                        "class-allocated", "allocating-method"]))]
    pub by: Vec<String>,

    /// What tables are of: energy, allocated, sent, received, read, written, device-read, device-written, remote-sent,
    /// remote-received, local-sent, local-received, or a counter, e.g. page-faults [default: energy]
    #[arg(long, value_name = "NAME")]
    pub measure: Option<String>,

    /// Number of rows of a table, 0 for all; the last row sums up the rest
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    pub top: usize,

    /// Figure that ranks rows: of itself (self) or with what it called (total); or another measure, with what it called
    #[arg(long = "view", alias = "sort", value_name = "WHICH", default_value = "self")]
    pub sort: String,

    /// Show the least number of calls of methods, classes, packages and lines, and so the most energy of a
    /// call
    #[arg(long)]
    pub activations: bool,

    /// Show native and kernel code, too; without this, tables for people that are not by kind are in the Java view, as with
    /// --java
    #[arg(long, conflicts_with_all = ["java", "app"])]
    pub all_frames: bool,

    /// Show joules per request: counts of requests from a CSV file with columns route and count, and if wanted handler, begin
    /// and end
    #[arg(long, value_name = "FILE", conflicts_with_all = ["measure", "top", "sort", "activations", "carbon", "price",
          "method", "handler", "app", "java", "all_frames", "charge_gc", "since", "until", "tier"])]
    pub requests: Option<PathBuf>,

    /// Show how many watts threads draw per CPU second, learnt from windows of measured energy: with --by thread, service
    /// and other groups of threads
    #[arg(long, conflicts_with_all = ["measure", "top", "sort", "activations", "carbon", "price", "method", "handler",
          "app", "java", "all_frames", "exact_names", "no_infer", "charge_gc", "requests", "tier"])]
    pub watts: bool,

    /// Print one JSON object
    #[arg(long, group = "format")]
    pub json: bool,

    /// Print one table as comma-separated values
    #[arg(long, group = "format")]
    pub csv: bool,

    /// Print tables in Markdown
    #[arg(long, group = "format")]
    pub markdown: bool,

    #[command(flatten)]
    pub footprint: FootprintFlags,

    #[command(flatten)]
    pub part: PartFlags,

    #[command(flatten)]
    pub tier: TierFlags,
}
