//! Resolves from flags how a data set is served.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use joular_data::{dataset::store, text::escape};

use super::{
    AccessRules, ConfigError, TlsFiles,
    duration::parse_duration,
    retention::parse_size,
    trust::{Trust, trust},
};
use crate::cli::ServeFlags;

/// How a data set is served, and to whom.
#[derive(Clone, Debug)]
pub struct Serving {
    pub data: PathBuf,
    pub is_bucket: bool,
    pub address: SocketAddr,
    /// Who may read. There is one or a proxy, unless the address is a loopback address.
    pub token: Option<PathBuf>,
    /// Who shows the token, for the rules.
    pub token_user: Option<String>,
    pub trust: Option<Trust>,
    /// `None`: all see everything.
    pub access: Option<AccessRules>,
    /// `None`: there is no TLS.
    pub tls: Option<TlsFiles>,
    /// Scans at a time, 1 to 64.
    pub scans: usize,
    /// Of a scan, 1 s to 1 h.
    pub timeout: Duration,
    pub cache_bytes: u64,
    /// Of the files that a question may read; `None`: any.
    pub scan_bytes: Option<u64>,
    /// Of a flame graph, 1 to 1 000 000.
    pub most_nodes: usize,
}

const MOST_SCANS: usize = 64;
const MOST_NODES: usize = 1_000_000;
/// What a question may read of a bucket.
const SCAN_OF_BUCKET: u64 = 2 << 30;

/// # Errors
/// If a flag cannot be understood, or others than this host could read without a token.
pub fn serving(flags: &ServeFlags) -> Result<Serving, ConfigError> {
    let invalid = |flag: &str, cause: String| ConfigError::Invalid { place: format!("--{flag}"), cause };
    let shown = flags.listen.escape_debug();
    let Ok(address) = flags.listen.parse::<SocketAddr>() else {
        let cause = format!("\"{shown}\" is not an IP address with a port, such as 127.0.0.1:9898");
        return Err(invalid("listen", cause));
    };
    let trust = trust(flags)?;
    if flags.token_file.is_none() && trust.is_none() && !address.ip().to_canonical().is_loopback() {
        let cause = format!(
            "other hosts may reach {address}, and a data set names processes and methods: give --token-file FILE, or \
             --trust-header for a proxy, or an address of this host alone, such as 127.0.0.1:{}",
            address.port()
        );
        return Err(invalid("listen", cause));
    }
    if !(1..=MOST_SCANS).contains(&flags.requests) {
        return Err(invalid("requests", format!("{} is not between 1 and {MOST_SCANS}", flags.requests)));
    }
    if !(1..=MOST_NODES).contains(&flags.nodes) {
        return Err(invalid("nodes", format!("{} is not between 1 and {MOST_NODES}", flags.nodes)));
    }
    if flags.access.is_some() && trust.is_none() && flags.token_user.is_none() {
        let cause = "nobody is known by name: add --trust-header for a proxy that knows its users, or --token-user";
        return Err(invalid("access", cause.to_owned()));
    }
    let is_bucket = store::is_bucket(&flags.data);
    let is_bucket = is_bucket.map_err(|error| ConfigError::Plain { cause: escape(&error.to_string()) })?;
    let size = |flag: &str, text: &str| {
        let bytes = if text == "0" { Some(0) } else { parse_size(text) };
        let not_a_size = || format!("\"{}\" is not a size: write 500KiB, 64MiB or 0", text.escape_debug());
        bytes.ok_or_else(|| invalid(flag, not_a_size()))
    };
    let scan = flags.scan.as_deref().map(|text| size("scan", text)).transpose()?;
    let scan = scan.unwrap_or(if is_bucket { SCAN_OF_BUCKET } else { 0 });
    let tls = flags.certificate.clone().zip(flags.key.clone());
    Ok(Serving {
        data: flags.data.clone(),
        is_bucket,
        address,
        token: flags.token_file.clone(),
        token_user: flags.token_user.clone(),
        trust,
        access: flags.access.as_deref().map(AccessRules::read).transpose()?,
        tls: tls.map(|(certificate, key)| TlsFiles { certificate, key, client_authority: None }),
        scans: flags.requests,
        timeout: reading_time(&flags.timeout)?,
        cache_bytes: size("cache", &flags.cache)?,
        scan_bytes: Some(scan).filter(|bytes| *bytes > 0),
        most_nodes: flags.nodes,
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
        assert_eq!((&serving.token, &serving.tls, serving.scans), (&None, &None, 2));
        assert!(serving.trust.is_none() && serving.access.is_none() && !serving.is_bucket);
        assert_eq!((serving.scan_bytes, serving.most_nodes), (None, 100_000));
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
    fn a_question_may_read_so_much_of_a_bucket_and_any_of_a_directory() {
        for (line, bytes) in [
            ("s3://fleet/energy", Some(2 << 30)),
            ("gs://fleet --scan 0", None),
            ("az://fleet --scan 64MiB", Some(64 << 20)),
            ("data --scan 1GiB", Some(1 << 30)),
        ] {
            assert_eq!(served(line).unwrap().scan_bytes, bytes, "{line}");
        }
        assert!(served("s3://fleet").unwrap().is_bucket);
    }

    #[test]
    fn a_proxy_may_stand_for_a_token_and_rules_need_somebody_with_a_name() {
        let proxy = "--listen 0.0.0.0:1 --trust-header X-Forwarded-User --trust-from 10.0.0.1,10.1.0.0/16";
        assert!(served(proxy).unwrap().trust.is_some());
        let rules = tempfile::NamedTempFile::new().unwrap();
        let path = rules.path().to_str().unwrap();
        assert!(served(&format!("{proxy} --access {path}")).unwrap().access.is_some());
        assert!(served(&format!("--token-file t --token-user ann --access {path}")).unwrap().access.is_some());
        for line in [format!("--access {path}"), format!("--token-file t --access {path}")] {
            let error = served(&line).unwrap_err().to_string();
            assert!(error.starts_with("--access: nobody is known by name"), "{error}");
        }
        let error = served(&format!("{proxy} --access /no/such/file")).unwrap_err().to_string();
        assert!(error.starts_with("--access: /no/such/file: No such file"), "{error}");
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
            ("--scan 2G", "--scan: \"2G\" is not a size"),
            ("--nodes 0", "--nodes: 0 is not between 1 and 1000000"),
            ("ftp://fleet", "'ftp://fleet' is not a place for a data set"),
            ("--trust-header Host --trust-from 10.0.0.1", "--trust-header: \"Host\" is not a header"),
            ("--trust-header X --trust-from 0.0.0.0/0", "--trust-from: \"0.0.0.0/0\" is every address"),
        ] {
            let error = served(line).unwrap_err().to_string();
            assert!(error.starts_with(words), "{line}: {error}");
        }
        assert_eq!(served("--cache 0").unwrap().cache_bytes, 0);
    }
}
