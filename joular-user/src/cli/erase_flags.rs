//! Defines the flags of `erase`.

use clap::{ArgGroup, Args};
use jiff::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("subject").required(true).args(["of_service", "of_pod", "of_host", "again"]))]
pub struct EraseFlags {
    /// Where hosts ship to: a directory that holds a file .joular-bpf-share, s3://BUCKET/PREFIX, gs://… or az://…
    #[arg(value_name = "PLACE")]
    pub place: String,

    /// Erase the processes of the service of this name, also in tiers
    #[arg(long = "service", value_name = "NAME")]
    pub of_service: Option<String>,

    /// Erase the processes of the pod with this uid or name
    #[arg(long = "pod", value_name = "POD")]
    pub of_pod: Option<String>,

    /// Remove all runs of the host of this name; tiers do not know hosts
    #[arg(long = "host", value_name = "NAME")]
    pub of_host: Option<String>,

    /// Erase what was recorded to be erased before, in runs that came since
    #[arg(long, conflicts_with_all = ["before", "record"])]
    pub again: bool,

    /// What began before this time, such as 2026-03-01T00:00:00Z: runs, and hours and days of tiers [default: now]
    #[arg(long, value_name = "TIME")]
    pub before: Option<Timestamp>,

    /// Record it also if there is nothing of it yet, for runs that come late
    #[arg(long, conflicts_with = "dry_run")]
    pub record: bool,

    /// Change nothing; say what would be erased
    #[arg(long)]
    pub dry_run: bool,

    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
