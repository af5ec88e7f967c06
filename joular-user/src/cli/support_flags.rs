//! Defines the flags of `support`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `support`.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct SupportFlags {
    /// Configuration file of the service
    #[arg(long, value_name = "FILE", default_value = "/etc/joular-bpf/agent.toml")]
    pub config: PathBuf,

    /// Log of the service, if it does not go to the journal
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Last lines of the log that are shown, 1 to 100000
    #[arg(long, value_name = "LINES", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub lines: u32,

    /// File to write [default: -, for standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Record the service itself, and write where it spends its CPU time to this file, in the format of pprof
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// How long to record it
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "profile")]
    pub profile_time: String,
}
