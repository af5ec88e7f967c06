//! Defines the flags of `serve`.

use std::path::PathBuf;

use clap::Args;

use super::DATA_SET;

#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct ServeFlags {
    /// Directory of the data set
    #[arg(value_name = "DIR", default_value = DATA_SET)]
    pub data: PathBuf,

    /// IP address and port to listen at. Others than loopback addresses need --token-file
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9898")]
    pub listen: String,

    /// File with the token that readers have to show: as Authorization: Bearer TOKEN, or in browsers as the password of
    /// any name
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

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
}
