//! Defines the flags of `requests`.

use std::path::PathBuf;

use clap::Args;

/// Flags of `requests`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct RequestsFlags {
    /// Where the application exposes its counters, in Prometheus' text format or OpenMetrics. Ask one instance, not a
    /// load balancer
    #[arg(long, value_name = "URL")]
    pub url: String,

    /// File of counts to write, for report --requests; rows are appended to one that is there
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// How often the application is asked, 1s to 1h; also at the beginning and at the end
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub every: String,

    /// How long to count [default: until Ctrl-C or SIGTERM]
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<String>,

    /// Handler of a route, or a pattern, as in column handler of the file: 'GET /cart/{id}=CartController.get'. May be
    /// repeated
    #[arg(long = "handler", value_name = "ROUTE=HANDLER")]
    pub handlers: Vec<String>,

    /// Counter of requests, with the labels that make a route, instead of those of Micrometer, OpenTelemetry and gRPC:
    /// 'vertx_http_server_requests_total{method,route}'. May be repeated
    #[arg(long = "counter", value_name = "NAME{LABEL,…}")]
    pub counters: Vec<String>,

    /// File with a bearer token that only its owner and group may read
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// File of certificates (PEM) of authorities who are believed [default: those of this host]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}
