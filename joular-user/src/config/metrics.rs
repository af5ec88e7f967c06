//! Resolves where and to whom live metrics are served.

use std::{net::SocketAddr, path::PathBuf};

use super::{ConfigError, Places};
use crate::cli::Flags;

/// Live metrics that a run serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    pub address: SocketAddr,
    /// Who may read them. There is one, or an authority of clients, unless the address is a loopback address.
    pub token: Option<PathBuf>,
    /// `None`: there is no TLS.
    pub tls: Option<TlsFiles>,
}

/// Files of TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Certificates of who signs those of clients, if clients have to have one.
    pub client_authority: Option<PathBuf>,
}

impl Places {
    pub(super) fn metrics(&self, flags: &Flags) -> Result<Option<Metrics>, ConfigError> {
        let Some(text) = &flags.metrics else {
            return match flags.first_of(&["metrics-token", "metrics-cert", "metrics-key", "metrics-client-ca"]) {
                Some(key) => Err(self.invalid(key, "no metrics are served: give --metrics too")),
                None => Ok(None),
            };
        };
        let shown = text.escape_debug();
        let Ok(address) = text.parse::<SocketAddr>() else {
            return Err(self
                .invalid("metrics", format!("\"{shown}\" is not an IP address with a port, such as 127.0.0.1:9897")));
        };
        let is_open = flags.metrics_token.is_none() && flags.metrics_client_ca.is_none();
        if is_open && !address.ip().to_canonical().is_loopback() {
            let cause = format!(
                "other hosts may reach {address}, and metrics name processes: give --metrics-token FILE, or an address \
                 of this host alone, such as 127.0.0.1:{}",
                address.port()
            );
            return Err(self.invalid("metrics", cause));
        }
        let client_authority = flags.metrics_client_ca.clone();
        let tls = match (&flags.metrics_cert, &flags.metrics_key) {
            (Some(certificate), Some(key)) => {
                Some(TlsFiles { certificate: certificate.clone(), key: key.clone(), client_authority })
            }
            (None, None) if client_authority.is_some() => {
                let cause = "clients have certificates in TLS only: give --metrics-cert and --metrics-key too";
                return Err(self.invalid("metrics-client-ca", cause));
            }
            (None, None) => None,
            (Some(_), None) => return Err(self.invalid("metrics-cert", "its key is missing: give --metrics-key too")),
            (None, Some(_)) => {
                return Err(self.invalid("metrics-key", "there is no certificate: give --metrics-cert too"));
            }
        };
        Ok(Some(Metrics { address, token: flags.metrics_token.clone(), tls }))
    }

    /// Methods per process that have metrics, 0 to 1000.
    pub(super) fn metrics_methods(&self, flags: &Flags) -> Result<usize, ConfigError> {
        if flags.metrics_methods.is_some() && flags.metrics.is_none() && flags.otlp.is_none() {
            return Err(self.invalid("metrics-methods", "there are no metrics: give --metrics or --otlp too"));
        }
        Ok(self.number("metrics-methods", flags.metrics_methods, 0..=1000)?.unwrap_or(20) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli,
        config::{Config, Input, Live},
    };

    fn live(line: &str) -> Result<Live, ConfigError> {
        let arguments = ["joular-bpf", "--all"].into_iter().chain(line.split_whitespace());
        Config::resolve(cli::parse(arguments.map(Into::into)).unwrap().flags, None).map(|config| match config.input {
            Input::Live(live) => *live,
            Input::Replay(_) => panic!("a replay"),
        })
    }

    fn metrics(line: &str) -> Result<Option<Metrics>, ConfigError> {
        live(line).map(|live| live.metrics)
    }

    #[test]
    fn the_flag_alone_serves_this_host() {
        assert_eq!(metrics("").unwrap(), None);
        let expected = Metrics { address: "127.0.0.1:9897".parse().unwrap(), token: None, tls: None };
        assert_eq!(metrics("--metrics").unwrap(), Some(expected));
        for (line, methods) in
            [("--metrics", 20), ("--metrics --metrics-methods 0 --quiet", 0), ("--otlp --metrics-methods 7", 7)]
        {
            assert_eq!(live(line).unwrap().metrics_methods, methods);
        }
    }

    #[test]
    fn a_certificate_and_its_key_are_served_with() {
        let found = metrics("--metrics --metrics-cert c --metrics-key k").unwrap().unwrap();
        let expected = TlsFiles { certificate: "c".into(), key: "k".into(), client_authority: None };
        assert_eq!(found.tls, Some(expected.clone()));
        let line = "--metrics 0.0.0.0:1 --metrics-cert c --metrics-key k --metrics-client-ca a";
        let expected = TlsFiles { client_authority: Some("a".into()), ..expected };
        assert_eq!(metrics(line).unwrap().unwrap().tls, Some(expected));
    }

    #[test]
    fn other_hosts_need_a_token() {
        for address in ["0.0.0.0:9897", "192.0.2.1:80", "[::]:1", "[2001:db8::1]:1", "[::ffff:192.0.2.1]:1"] {
            let error = metrics(&format!("--metrics {address}")).unwrap_err().to_string();
            assert!(error.starts_with("--metrics: ") && error.contains("--metrics-token FILE"), "{error}");
            let allowed = metrics(&format!("--metrics {address} --metrics-token t")).unwrap().unwrap();
            assert_eq!(allowed.token, Some("t".into()));
        }
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:0", "[::ffff:127.0.0.1]:1"] {
            assert!(metrics(&format!("--metrics {address}")).unwrap().is_some());
        }
    }

    #[test]
    fn what_serves_nothing_is_refused() {
        for (line, words) in [
            ("--metrics here", "not an IP address with a port"),
            ("--metrics 127.0.0.1", "not an IP address with a port"),
            ("--metrics-token t", "give --metrics too"),
            ("--metrics-methods 3", "give --metrics or --otlp too"),
            ("--metrics-cert c", "give --metrics too"),
            ("--metrics --metrics-cert c", "give --metrics-key too"),
            ("--metrics --metrics-key k", "give --metrics-cert too"),
            ("--metrics --metrics-client-ca a", "give --metrics-cert and --metrics-key too"),
            ("--metrics --metrics-methods 1001", "not between 0 and 1000"),
        ] {
            let error = metrics(line).unwrap_err().to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
