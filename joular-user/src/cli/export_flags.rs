//! Defines the flags of `export`.

use std::path::PathBuf;

use clap::Args;

use super::{DATA_SET, PartFlags};

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ExportFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR", default_value = DATA_SET)]
    pub data: PathBuf,

    /// Format: pprof, speedscope, collapsed, firefox, perfetto, otlp, jfr or joularjx
    #[arg(long, value_name = "FORMAT")]
    pub format: String,

    /// What collapsed stacks are of: energy, allocated, sent or another measure of report; other formats hold all that they
    /// have room for [default: energy]
    #[arg(long, value_name = "NAME")]
    pub measure: Option<String>,

    /// File to write, - for standard output; for joularjx the directory to create joularjx-result in
    /// [default: -, for joularjx .]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub part: PartFlags,
}
