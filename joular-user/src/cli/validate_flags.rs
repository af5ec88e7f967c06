//! Defines the flags of `validate`.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ValidateFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Log of a wattmeter: CSV whose first line names a column time or timestamp, and one watts, power_w or power
    #[arg(long, value_name = "FILE", required_unless_present = "protocol")]
    pub reference: Option<PathBuf>,

    /// Run the validation protocol, record it to DIR, and report what it shows; only report it if DIR is there already
    ///
    /// Programs whose work is known run one by one and side by side, at several loads. Let the meter log meanwhile, and
    /// nothing else run. docs/validation.md explains it.
    #[arg(long)]
    pub protocol: bool,

    /// How often each step of the protocol runs, 2 to 100 times [default: 5]
    #[arg(long, value_name = "N", requires = "protocol")]
    pub rounds: Option<u32>,

    /// How long each of its 24 steps runs, 2s to 10m [default: 20s]
    #[arg(long, value_name = "TIME", requires = "protocol")]
    pub step: Option<String>,

    /// Order of its steps, and what is random in a simulation [default: random]
    #[arg(long, value_name = "N", requires = "protocol")]
    pub seed: Option<u64>,

    /// Configuration file of its recording, such as for another energy source
    #[arg(long, value_name = "FILE", requires = "protocol", conflicts_with = "simulate")]
    pub config: Option<PathBuf>,

    /// Simulate machine and meter, write the meter's log to the file of --reference, and say what is true of them
    #[arg(long, requires = "protocol", requires = "reference")]
    pub simulate: bool,

    /// Domains to compare, added up [default: all of the data set, which are disjoint]
    #[arg(long, value_name = "DOMAIN,…", value_delimiter = ',')]
    pub domain: Vec<String>,

    /// How far the meter's clock may be ahead or behind; 0s: the clocks agree
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub max_shift: String,

    /// Zone of the log's times that do not say theirs, such as +01:00 [default: UTC]
    #[arg(long, value_name = "OFFSET", allow_hyphen_values = true)]
    pub utc_offset: Option<String>,

    /// The meter's class: its limit of error as its maker states it, in percent of its reading
    #[arg(long, value_name = "PERCENT")]
    pub meter_class: Option<f64>,

    /// Fit the meter's power to the use of CPUs, and write that to a new file as the model of a board, for --board-models
    ///
    /// The run needs load from none to all CPUs. docs/boards.md explains it.
    #[arg(long, value_name = "FILE", conflicts_with = "protocol")]
    pub board_model: Option<PathBuf>,

    /// What the board calls itself in /proc/device-tree/model [default: as this machine does]
    #[arg(long, value_name = "NAME", requires = "board_model")]
    pub board: Option<String>,

    /// Windows that start at or after this time: UTC (2026-03-01T12:00:00Z) or time into the run (30s, 5m)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,

    /// Windows that start before this time
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,

    /// Runs on this host, or a pattern
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub host: Vec<String>,

    /// Runs with this id, or a pattern
    #[arg(long, value_name = "RUN,…", value_delimiter = ',')]
    pub run: Vec<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
