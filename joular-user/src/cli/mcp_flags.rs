//! Defines the flags of `mcp`.

use std::path::PathBuf;

use clap::Args;

use super::DATA_SET;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct McpFlags {
    /// Directory or bucket (s3://…) of the data set
    #[arg(value_name = "PLACE", default_value = DATA_SET)]
    pub data: PathBuf,

    /// Longest time for which the data set is read for one call, 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: String,
}
