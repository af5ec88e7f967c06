//! Resolves from flags how an application's requests are counted.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use joular_data::report::requests::scrape::{Counting, RequestCounter};

use super::{
    ConfigError, Places,
    otlp::{is_loopback, scheme},
};
use crate::cli::{Flags, RequestsFlags};

/// How to count.
#[derive(Clone, Debug)]
pub struct Scraping {
    pub url: String,
    /// Files of a bearer token and of certificates.
    pub token: Option<PathBuf>,
    pub authority: Option<PathBuf>,
    /// 1 s to 1 h.
    pub every: Duration,
    /// `None`: until a signal.
    pub duration: Option<Duration>,
    pub output: PathBuf,
    pub counting: Counting,
}

/// # Errors
/// If a flag cannot be understood.
pub fn scraping(flags: &RequestsFlags) -> Result<Scraping, ConfigError> {
    let places = Places::typed(&Flags::default());
    let host =
        |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"#@".contains(&byte));
    let Some((is_tls, host)) = scheme(&flags.url).filter(|(_, rest)| host(rest)) else {
        let shown = flags.url.escape_debug();
        let cause = format!("\"{shown}\" is not an address such as http://127.0.0.1:8080/actuator/prometheus");
        return Err(places.invalid("url", cause));
    };
    if flags.token_file.is_some() && !is_tls && !is_loopback(host) {
        let cause = "others could read the token on the way: give an address that begins with https://";
        return Err(places.invalid("token-file", cause));
    }
    let limits = Duration::from_secs(1)..=Duration::from_secs(3600);
    let every = places.time("every", Some(&flags.every), limits)?;
    let duration = places.time("duration", flags.duration.as_deref(), Duration::from_millis(1)..=Duration::MAX)?;
    let own = flags.counters.iter().map(|text| RequestCounter::parse(text)).collect::<Result<Vec<_>, _>>();
    let own = own.map_err(|cause| places.invalid("counter", cause))?;
    let counters = if own.is_empty() { RequestCounter::known() } else { RequestCounter::each_of_its_kind(own) };
    let handlers = flags.handlers.iter().map(|text| handler(text)).collect::<Result<BTreeMap<_, _>, _>>();
    let counting = handlers.and_then(|all| Counting::new(counters, all).map_err(|error| error.to_string()));
    Ok(Scraping {
        url: flags.url.clone(),
        token: flags.token_file.clone(),
        authority: flags.ca.clone(),
        every: every.unwrap_or(Duration::from_secs(10)),
        duration,
        output: flags.output.clone(),
        counting: counting.map_err(|cause| places.invalid("handler", cause))?,
    })
}

/// A route may have an equals sign, and no method has.
fn handler(text: &str) -> Result<(String, String), String> {
    let pair = text.rsplit_once('=').map(|(route, handler)| (route.trim(), handler.trim()));
    match pair {
        Some((route, handler)) if !route.is_empty() && !handler.is_empty() => {
            Ok((route.to_owned(), handler.to_owned()))
        }
        _ => Err(format!(
            "'{}' is not ROUTE=HANDLER, such as 'GET /cart/{{id}}=CartController.get'",
            text.escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{self, Command};

    fn resolved(line: &[&str]) -> Result<Scraping, String> {
        let arguments = ["joular-bpf", "requests", "--output", "f"].iter().chain(line);
        let Command::Requests(flags) = cli::parse(arguments.map(Into::into)).unwrap().command.unwrap() else {
            panic!()
        };
        scraping(&flags).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_is_enough() {
        let found = resolved(&["--url", "http://shop:8080/metrics?x=1"]).unwrap();
        assert_eq!((found.every, found.duration, found.token), (Duration::from_secs(10), None, None));
        assert!(found.counting.names().any(|name| name == "http_server_requests_seconds_count"));
        let own = resolved(&["--url", "http://shop", "--counter", "a_total{x,y}", "--counter", "b_total", "-d", "5m"]);
        let own = own.unwrap();
        assert_eq!(own.counting.names().collect::<Vec<_>>(), ["a_total", "b_total"]);
        assert_eq!(own.duration, Some(Duration::from_secs(300)));
    }

    #[test]
    fn the_last_equals_sign_is_before_the_handler() {
        let expected = ("GET /a?b=c".to_owned(), "A.get".to_owned());
        assert_eq!(handler("GET /a?b=c = A.get"), Ok(expected));
        let found = resolved(&["--url", "http://shop", "--handler", "GET /a=A.get"]).unwrap();
        assert_eq!(found.counting.routes_not_seen().collect::<Vec<_>>(), ["GET /a"]);
    }

    #[test]
    fn mistakes_name_the_flag() {
        for (line, expected) in [
            (&["--url", "shop:8080"][..], "--url: \"shop:8080\" is not an address such as"),
            (&["--url", "http://"], "--url: \"http://\" is not an address"),
            (&["--url", "https://user:x@shop/"], "--url: "),
            (&["--url", "http://shop", "--every", "10ms"], "--every: \"10ms\" is not between 1s and 3600s"),
            (&["--url", "http://shop", "--duration", "5"], "--duration: \"5\" is not a time"),
            (&["--url", "http://shop", "--handler", "/a"], "--handler: '/a' is not ROUTE=HANDLER"),
            (&["--url", "http://shop", "--handler", "/a=[x"], "--handler: '[x' is not a pattern"),
            (&["--url", "http://shop", "--counter", "a{"], "--counter: 'a{' is not a counter"),
            (&["--url", "http://shop", "--token-file", "t"], "--token-file: others could read the token"),
        ] {
            let message = resolved(line).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
        for url in ["http://127.0.0.1:8080/metrics", "http://localhost/", "https://shop/"] {
            assert!(resolved(&["--url", url, "--token-file", "t"]).is_ok(), "{url}");
        }
    }
}
