//! Resolves from flags how a data set is served.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use super::{ConfigError, TlsFiles, duration::parse_duration, retention::parse_size};
use crate::cli::ServeFlags;

/// How a data set is served, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Serving {
    pub data: PathBuf,
    pub address: SocketAddr,
    /// Who may read. There is one, unless the address is a loopback address.
    pub token: Option<PathBuf>,
    /// `None`: there is no TLS.
    pub tls: Option<TlsFiles>,
    /// Scans at a time, 1 to 64.
    pub scans: usize,
    /// Of a scan, 1 s to 1 h.
    pub timeout: Duration,
    pub cache_bytes: u64,
}

const MOST_SCANS: usize = 64;

/// # Errors
/// If a flag cannot be understood, or others than this host could read without a token.
pub fn serving(flags: &ServeFlags) -> Result<Serving, ConfigError> {
    let invalid = |flag: &str, cause: String| ConfigError::Invalid { place: format!("--{flag}"), cause };
    let shown = flags.listen.escape_debug();
    let Ok(address) = flags.listen.parse::<SocketAddr>() else {
        let cause = format!("\"{shown}\" is not an IP address with a port, such as 127.0.0.1:9898");
        return Err(invalid("listen", cause));
    };
    if flags.token_file.is_none() && !address.ip().to_canonical().is_loopback() {
        let cause = format!(
            "other hosts may reach {address}, and a data set names processes and methods: give --token-file FILE, or an \
             address of this host alone, such as 127.0.0.1:{}",
            address.port()
        );
        return Err(invalid("listen", cause));
    }
    if !(1..=MOST_SCANS).contains(&flags.requests) {
        return Err(invalid("requests", format!("{} is not between 1 and {MOST_SCANS}", flags.requests)));
    }
    let not_a_size = || format!("\"{}\" is not a size: write 500KiB, 64MiB or 0", flags.cache.escape_debug());
    let cache = if flags.cache == "0" { Some(0) } else { parse_size(&flags.cache) };
    let tls = flags.certificate.clone().zip(flags.key.clone());
    Ok(Serving {
        data: flags.data.clone(),
        address,
        token: flags.token_file.clone(),
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key, client_authority: None }),
        scans: flags.requests,
        timeout: reading_time(&flags.timeout)?,
        cache_bytes: cache.ok_or_else(|| invalid("cache", not_a_size()))?,
    })
}

/// The longest time of one reading, of `--timeout`.
///
/// # Errors
/// If it is not a time between 1 s and 1 h.
pub fn reading_time(text: &str) -> Result<Duration, ConfigError> {
    let bounds = Duration::from_secs(1)..=Duration::from_secs(3600);
    let time = parse_duration(text).map_err(|error| error.to_string());
    let time = time.and_then(|time| match bounds.contains(&time) {
        true => Ok(time),
        false => Err("it is not between 1s and 1h".to_owned()),
    });
    time.map_err(|cause| ConfigError::Invalid { place: "--timeout".to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Command};

    fn served(line: &str) -> Result<Serving, ConfigError> {
        let arguments = ["joular-bpf", "serve"].into_iter().chain(line.split_whitespace());
        let Some(Command::Serve(flags)) = cli::parse(arguments.map(Into::into)).unwrap().command else { panic!() };
        serving(&flags)
    }

    #[test]
    fn without_flags_this_host_reads_the_usual_data_set() {
        let serving = served("").unwrap();
        assert_eq!(serving.data, PathBuf::from("joular-out"));
        assert_eq!(serving.address, "127.0.0.1:9898".parse().unwrap());
        assert_eq!((serving.token, serving.tls, serving.scans), (None, None, 2));
        assert_eq!((serving.timeout, serving.cache_bytes), (Duration::from_secs(30), 64 << 20));
    }

    #[test]
    fn other_hosts_need_a_token() {
        for address in ["0.0.0.0:9898", "192.0.2.1:80", "[::]:1", "[::ffff:192.0.2.1]:1"] {
            let error = served(&format!("--listen {address} --certificate c --key k")).unwrap_err().to_string();
            assert!(error.starts_with("--listen: other hosts") && error.contains("--token-file FILE"), "{error}");
            assert!(served(&format!("--listen {address} --token-file t")).unwrap().token.is_some());
        }
        assert!(served("--listen [::1]:0").is_ok() && served("--listen 127.9.9.9:1").is_ok());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (line, words) in [
            ("--listen here", "--listen: \"here\" is not an IP address with a port"),
            ("--requests 0", "--requests: 0 is not between 1 and 64"),
            ("--requests 65", "--requests: 65 is not between 1 and 64"),
            ("--timeout 5", "--timeout: not a time"),
            ("--timeout 2h", "--timeout: it is not between 1s and 1h"),
            ("--cache much", "--cache: \"much\" is not a size"),
        ] {
            let error = served(line).unwrap_err().to_string();
            assert!(error.starts_with(words), "{line}: {error}");
        }
        assert_eq!(served("--cache 0").unwrap().cache_bytes, 0);
    }
}
