//! Defines the flags of `serve`.

use std::path::PathBuf;

use clap::Args;

use super::DATA_SET;

#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct ServeFlags {
    /// Directory of the data set, or its place in a bucket: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX
    #[arg(value_name = "PLACE", default_value = DATA_SET)]
    pub data: PathBuf,

    /// IP address and port to listen at. Others than loopback addresses need --token-file or --trust-header
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9898")]
    pub listen: String,

    /// File with the token that readers have to show: as Authorization: Bearer TOKEN, or in browsers as the password of
    /// any name
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Name of whoever shows the token, for the rules of --access [default: everything may be seen]
    #[arg(long, value_name = "NAME", requires = "token_file", requires = "access")]
    pub token_user: Option<String>,

    /// Header in which a proxy that knows its users names who asks. It counts in requests from --trust-from alone
    #[arg(long, value_name = "NAME", requires = "trust_from")]
    pub trust_header: Option<String>,

    /// Addresses of the proxy, such as 10.0.0.7 or 10.1.0.0/16. Requests from there without the header are refused
    #[arg(long, value_name = "CIDR", value_delimiter = ',', requires = "trust_header")]
    pub trust_from: Vec<String>,

    /// Header in which the same proxy names the groups of who asks, divided by commas
    #[arg(long, value_name = "NAME", requires = "trust_header")]
    pub groups_header: Option<String>,

    /// Rules of who may see which services, hosts and namespaces (TOML); nobody sees more than they allow
    #[arg(long, value_name = "FILE")]
    pub access: Option<PathBuf>,

    /// Serve over TLS with this certificate (PEM), followed by those that sign it
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,

    /// Questions for which the data set is read at a time, 1 to 64. Others wait, for 30 seconds at most
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub requests: usize,

    /// Longest time for which the data set is read for one question, 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub timeout: String,

    /// Memory for answers that may be asked for again
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub cache: String,

    /// Size of files that one question may read, 0 for any [default: 2GiB of a bucket, any of a directory]
    #[arg(long, value_name = "SIZE")]
    pub scan: Option<String>,

    /// Nodes of a flame graph that one question may ask for, 1 to 1000000
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub nodes: usize,
}
