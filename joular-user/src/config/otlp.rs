//! Resolves where metrics and profiles are pushed.

use std::{net::IpAddr, path::PathBuf, time::Duration};

use super::{ConfigError, Places};
use crate::cli::Flags;

/// A collector that a run pushes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// Without a slash at the end.
    pub url: String,
    pub interval: Duration,
    pub profiles: bool,
    /// Files of headers and of certificates.
    pub headers: Option<PathBuf>,
    pub authority: Option<PathBuf>,
}

impl Places {
    pub(super) fn otlp(&self, flags: &Flags) -> Result<Option<Otlp>, ConfigError> {
        let Some(text) = &flags.otlp else {
            return match flags.first_of(&["otlp-interval", "otlp-profiles", "otlp-headers", "otlp-ca"]) {
                Some(key) => Err(self.invalid(key, "nothing is pushed: give --otlp too")),
                None => Ok(None),
            };
        };
        let shown = text.escape_debug();
        let url = text.trim_end_matches('/');
        let (is_tls, host) = scheme(url).unwrap_or((false, ""));
        let is_url = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@".contains(&byte));
        if !is_url {
            return Err(self.invalid("otlp", format!("\"{shown}\" is not an address such as http://127.0.0.1:4318")));
        }
        if flags.otlp_headers.is_some() && !is_tls && !is_loopback(host) {
            let cause = "others could read the headers on the way: give an address that begins with https://";
            return Err(self.invalid("otlp-headers", cause));
        }
        let limits = Duration::from_secs(1)..=Duration::from_secs(3600);
        let interval = self.time("otlp-interval", flags.otlp_interval.as_deref(), limits)?;
        Ok(Some(Otlp {
            url: url.to_owned(),
            interval: interval.unwrap_or(Duration::from_secs(60)),
            profiles: flags.otlp_profiles,
            headers: flags.otlp_headers.clone(),
            authority: flags.otlp_ca.clone(),
        }))
    }
}

/// Whether an address is encrypted, and what follows its scheme.
pub(super) fn scheme(url: &str) -> Option<(bool, &str)> {
    match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(host), _) => Some((true, host)),
        (None, host) => host.map(|host| (false, host)),
    }
}

/// Whether what follows the scheme is on this host.
pub(super) fn is_loopback(host: &str) -> bool {
    let host = host.split('/').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(host) => host.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli,
        config::{Config, Input},
    };

    fn otlp(line: &str) -> Result<Option<Otlp>, ConfigError> {
        let arguments = ["joular-bpf", "--all"].into_iter().chain(line.split_whitespace());
        Config::resolve(cli::parse(arguments.map(Into::into)).unwrap().flags, None).map(|config| match config.input {
            Input::Live(live) => live.otlp,
            Input::Replay(_) => panic!("a replay"),
        })
    }

    #[test]
    fn the_flag_alone_pushes_to_a_collector_on_this_host() {
        assert_eq!(otlp("").unwrap(), None);
        let expected = Otlp {
            url: "http://127.0.0.1:4318".to_owned(),
            interval: Duration::from_secs(60),
            profiles: false,
            headers: None,
            authority: None,
        };
        assert_eq!(otlp("--otlp").unwrap(), Some(expected));
        let found =
            otlp("--otlp https://otel.example/tenant/ --otlp-interval 5s --otlp-profiles --otlp-headers h --otlp-ca c");
        let expected = Otlp {
            url: "https://otel.example/tenant".to_owned(),
            interval: Duration::from_secs(5),
            profiles: true,
            headers: Some("h".into()),
            authority: Some("c".into()),
        };
        assert_eq!(found.unwrap(), Some(expected));
    }

    #[test]
    fn secrets_go_encrypted_or_stay_on_the_host() {
        for host in ["127.0.0.1:4318", "localhost", "[::1]:4318/x"] {
            assert!(otlp(&format!("--otlp http://{host} --otlp-headers h")).is_ok(), "{host}");
        }
        for host in ["collector:4318", "192.0.2.1", "[2001:db8::1]:1", "localhost.example"] {
            assert!(otlp(&format!("--otlp http://{host}")).is_ok(), "{host}");
            let error = otlp(&format!("--otlp http://{host} --otlp-headers h")).unwrap_err().to_string();
            assert!(error.contains("https://"), "{error}");
        }
    }

    #[test]
    fn what_pushes_nothing_is_refused() {
        for (line, words) in [
            ("--otlp collector:4318", "not an address such as"),
            ("--otlp http://", "not an address such as"),
            ("--otlp http://user@host", "not an address such as"),
            ("--otlp --otlp-interval 10ms", "between 1s and 3600s"),
            ("--otlp-interval 5s", "give --otlp too"),
            ("--otlp-profiles", "give --otlp too"),
            ("--otlp-headers h", "give --otlp too"),
            ("--otlp-ca c", "give --otlp too"),
        ] {
            let error = otlp(line).unwrap_err().to_string();
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
