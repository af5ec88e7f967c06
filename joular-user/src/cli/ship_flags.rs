//! Defines the flags of `ship`.

use std::{num::NonZeroU32, path::PathBuf};

use clap::Args;

use super::redaction_flags::CommandLineFlags;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ShipFlags {
    /// Directory of the data set; a recording may be writing to it. With --init, the place
    #[arg(value_name = "DIR")]
    pub data: PathBuf,

    /// Where runs go: a directory that holds a file .joular-bpf-share, s3://BUCKET/PREFIX, gs://… or az://…
    #[arg(value_name = "PLACE", required_unless_present = "init", conflicts_with = "init")]
    pub to: Option<String>,

    /// Ship nothing, but write once at a place how its keys begin: joular-bpf ship --init --hosts 2000 PLACE
    #[arg(long, requires = "hosts")]
    pub init: bool,

    /// With --init: so many hosts will ship there. Their keys begin with a group of 32 hosts, so that those of one are found
    /// without listing all
    #[arg(long, value_name = "COUNT", requires = "init")]
    pub hosts: Option<NonZeroU32>,

    /// Length of the windows there, a multiple of that of the recorded ones, or recorded for those as they are
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub window: String,

    /// What is made of a run: bundles (one file, which is there whole or not at all) or tables (a file of each table, as in the
    /// data set)
    #[arg(long, value_name = "WHAT", default_value = "bundles")]
    pub layout: String,

    /// Ask a bucket whether it has a file, and then write it: for stores that refuse to create an object only if it is not
    /// there. If two ship a run at the same moment, both write it, and the later one stays
    #[arg(long)]
    pub look_first: bool,

    /// Ship no more than so many bytes per second, on average, e.g. 500KiB or 2MiB [default: no limit]
    #[arg(long, value_name = "SIZE")]
    pub rate: Option<String>,

    #[command(flatten)]
    pub command_line: CommandLineFlags,

    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
