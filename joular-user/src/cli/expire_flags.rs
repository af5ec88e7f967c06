//! Defines the flags of `expire`.

use clap::Args;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ExpireFlags {
    /// Where hosts ship to: a directory that holds a file .joular-bpf-share, s3://BUCKET/PREFIX, gs://… or az://…
    #[arg(value_name = "PLACE")]
    pub place: String,

    /// Whole days that are kept, today in UTC not counted
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=36_600))]
    pub keep_days: u32,

    /// Remove nothing; say what would be removed
    #[arg(long)]
    pub dry_run: bool,

    /// Remove nothing; print rules by which the bucket itself removes what is older, as its cloud's tools take them
    #[arg(long, conflicts_with = "dry_run")]
    pub lifecycle: bool,

    /// Print what was done as one JSON object
    #[arg(long, conflicts_with = "lifecycle")]
    pub json: bool,
}
