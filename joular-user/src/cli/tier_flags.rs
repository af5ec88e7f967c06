//! Defines the flag that says what of a place that hosts ship to is read.

use clap::Args;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(next_help_heading = "Which part of the data set")]
pub struct TierFlags {
    /// What is read of a place that hosts ship to: hourly or minutes, the sums that compact makes; raw, the runs; auto, the
    /// sums that give the same answer as the runs, or else the runs
    #[arg(long, value_name = "TIER", value_parser = ["auto", "raw", "minutes", "hourly"], default_value = "auto")]
    pub tier: String,
}

impl Default for TierFlags {
    fn default() -> Self {
        Self { tier: "auto".to_owned() }
    }
}
