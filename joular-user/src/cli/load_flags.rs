//! Defines the flags of `load`.

use std::path::PathBuf;

use clap::Args;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct LoadFlags {
    /// Where hosts ship their runs to, as bundles
    #[arg(value_name = "PLACE", required_unless_present = "schema", requires = "url")]
    pub place: Option<PathBuf>,

    /// Address of ClickHouse's HTTP interface, such as https://clickhouse.example:8443
    #[arg(value_name = "URL")]
    pub url: Option<String>,

    /// Database there
    #[arg(long, value_name = "NAME", default_value = "joular")]
    pub database: String,

    /// Print the SQL that makes tables, views and roles, or adds what they lack
    #[arg(long, conflicts_with_all = ["place", "url", "check", "follow", "since", "json"])]
    pub schema: bool,

    /// With --schema: how long windows are kept, e.g. 30d or 48h [default: for ever]
    #[arg(long, value_name = "TIME", requires = "schema")]
    pub keep: Option<String>,

    /// With --schema: the same of hourly sums and call paths [default: for ever]
    #[arg(long, value_name = "TIME", requires = "schema")]
    pub keep_hourly: Option<String>,

    /// Load nothing, and name the runs that place and database have otherwise
    #[arg(long, conflicts_with = "follow")]
    pub check: bool,

    /// Go on with bundles that arrive, until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    pub follow: bool,

    /// With --follow: how often the place is looked at, 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "1m", requires = "follow")]
    pub every: String,

    /// Only hours that ended no longer ago, e.g. 48h or 30d [default: all]
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,

    /// File with USER:PASSWORD that only its owner and group may read [default: CLICKHOUSE_USER and CLICKHOUSE_PASSWORD of
    /// the environment]
    #[arg(long, value_name = "FILE")]
    pub user_file: Option<PathBuf>,

    /// File of certificates (PEM) of authorities who are believed [default: those of this host]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,

    /// Print what was done as one JSON object
    #[arg(long)]
    pub json: bool,
}
