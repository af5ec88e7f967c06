//! Knows the names by which the server may be asked.
//!
//! A page elsewhere can give its own name this host's address, and then read what a browser here gets from it (DNS
//! rebinding). Such a request has the name of that page, which is refused. With a token any name will do: the browser
//! shows a token only to the name that it was given for.

use std::net::IpAddr;

use hyper::{
    Uri,
    header::{HOST, HeaderMap},
};

/// Names of the server.
#[derive(Clone, Copy, Debug)]
pub struct Hosts {
    pub listened: IpAddr,
    pub has_token: bool,
}

impl Hosts {
    /// Whether a request names the server.
    pub fn allow(self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(HOST).iter();
        let (Some(first), None) = (named.next(), named.next()) else { return false };
        let is_name = |authority: &str| self.has_token || self.is_own(authority);
        first.to_str().is_ok_and(is_name) && uri.authority().is_none_or(|authority| is_name(authority.as_str()))
    }

    fn is_own(self, authority: &str) -> bool {
        let Some(host) = without_port(authority) else { return false };
        if host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
            return true;
        }
        let Ok(address) = host.parse::<IpAddr>().map(|address| address.to_canonical()) else { return false };
        // An address is not a name that somebody could give another address.
        address.is_loopback() || self.listened.is_unspecified() || address == self.listened.to_canonical()
    }
}

/// `None` if it is no host with or without a port.
fn without_port(authority: &str) -> Option<&str> {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(host);
    }
    match authority.split_once(':') {
        Some((host, port)) => is_port(port).then_some(host),
        None => Some(authority),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn allows(hosts: Hosts, names: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for name in names {
            headers.append(HOST, HeaderValue::from_str(name).unwrap());
        }
        hosts.allow(&"/".parse().unwrap(), &headers)
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        let loopback = Hosts { listened: "127.0.0.1".parse().unwrap(), has_token: false };
        for name in ["localhost", "LOCALHOST:9898", "localhost.:1", "127.0.0.1:9898", "127.9.9.9", "[::1]:9898"] {
            assert!(allows(loopback, &[name]), "{name}");
        }
        for name in [
            "evil.example",
            "evil.example:9898",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.1",
            "localhost:9898:1",
            "[::1",
            "[::1]x",
            "me@localhost",
            "",
        ] {
            assert!(!allows(loopback, &[name]), "{name}");
        }
        assert!(!allows(loopback, &[]) && !allows(loopback, &["localhost", "localhost"]));
        let uri: Uri = "http://evil.example/".parse().unwrap();
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
        assert!(!loopback.allow(&uri, &headers));
    }

    #[test]
    fn addresses_that_are_listened_at_are_names_and_a_token_makes_all_names_safe() {
        let everywhere = Hosts { listened: "0.0.0.0".parse().unwrap(), has_token: false };
        assert!(allows(everywhere, &["192.0.2.1:9898"]) && !allows(everywhere, &["joular.example"]));
        let one = Hosts { listened: "192.0.2.1".parse().unwrap(), has_token: false };
        assert!(allows(one, &["192.0.2.1"]) && !allows(one, &["192.0.2.2"]));
        assert!(allows(Hosts { has_token: true, ..one }, &["joular.example"]));
    }
}
