//! Resolves from flags which proxy is believed when it names who asks.

use std::net::IpAddr;

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName};
use ipnet::IpNet;

use super::ConfigError;
use crate::cli::ServeFlags;

/// A proxy that names its users in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    header: HeaderName,
    groups: Option<HeaderName>,
    /// Its addresses.
    from: Vec<IpNet>,
}

/// # Errors
/// If a header or an address cannot be understood, or every address would be believed.
pub(super) fn trust(flags: &ServeFlags) -> Result<Option<Trust>, ConfigError> {
    let Some(header) = &flags.trust_header else { return Ok(None) };
    let header = named("trust-header", header)?;
    let groups = flags.groups_header.as_deref().map(|name| named("groups-header", name)).transpose()?;
    if groups.as_ref() == Some(&header) {
        return Err(invalid("groups-header", "it is the header of --trust-header: groups have their own".to_owned()));
    }
    let from = flags.trust_from.iter().map(|text| addresses(text)).collect::<Result<_, _>>()?;
    Ok(Some(Trust { header, groups, from }))
}

fn invalid(flag: &str, cause: String) -> ConfigError {
    ConfigError::Invalid { place: format!("--{flag}"), cause }
}

fn named(flag: &str, text: &str) -> Result<HeaderName, ConfigError> {
    let name = text.parse::<HeaderName>().ok();
    let name = name.filter(|name| ![AUTHORIZATION, COOKIE, HOST].contains(name));
    name.ok_or_else(|| {
        let cause = format!("\"{}\" is not a header for a name, such as X-Forwarded-User", text.escape_debug());
        invalid(flag, cause)
    })
}

fn addresses(text: &str) -> Result<IpNet, ConfigError> {
    let net = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    let shown = text.escape_debug();
    let net = net.ok_or_else(|| {
        invalid("trust-from", format!("\"{shown}\" is not an address or a range of them, such as 10.1.0.0/16"))
    })?;
    if net.prefix_len() == 0 {
        let cause = format!("\"{shown}\" is every address, so anybody could name himself: name those of the proxy");
        return Err(invalid("trust-from", cause));
    }
    Ok(net)
}

impl Trust {
    /// Whether requests from an address are the proxy's.
    pub fn believes(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        self.from.iter().any(|net| net.contains(&client))
    }

    /// Whom the proxy names. `None` if it names nobody, or several.
    pub fn user<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let mut values = headers.get_all(&self.header).iter();
        let (Some(user), None) = (values.next(), values.next()) else { return None };
        user.to_str().ok().map(str::trim).filter(|user| !user.is_empty())
    }

    pub fn groups<'a>(&self, headers: &'a HeaderMap) -> Vec<&'a str> {
        let values = self.groups.iter().flat_map(|name| headers.get_all(name));
        let groups = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        groups.map(str::trim).filter(|group| !group.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn of(from: &[&str]) -> Result<Trust, ConfigError> {
        trust(&ServeFlags {
            trust_header: Some("X-Forwarded-User".to_owned()),
            trust_from: from.iter().map(|text| (*text).to_owned()).collect(),
            groups_header: Some("X-Forwarded-Groups".to_owned()),
            ..ServeFlags::default()
        })
        .map(Option::unwrap)
    }

    #[test]
    fn only_addresses_that_are_named_are_believed() {
        let trust = of(&["10.1.0.0/16", "192.0.2.7", "2001:db8::/32"]).unwrap();
        for (client, expected) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("10.2.0.1", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("2001:db8::1", true),
            ("::1", false),
            ("127.0.0.1", false),
        ] {
            assert_eq!(trust.believes(client.parse().unwrap()), expected, "{client}");
        }
        for (text, words) in [
            ("0.0.0.0/0", "is every address"),
            ("::/0", "is every address"),
            ("10.0.0.0/33", "is not an address or a range"),
            ("proxy.example", "is not an address or a range"),
        ] {
            let error = of(&[text]).unwrap_err().to_string();
            assert!(error.starts_with("--trust-from: ") && error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_user_has_one_name_and_any_number_of_groups() {
        let trust = of(&["10.0.0.1"]).unwrap();
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            headers
        };
        for (pairs, user) in [
            (&[("x-forwarded-user", " ann ")][..], Some("ann")),
            (&[("x-forwarded-user", "")], None),
            (&[("x-forwarded-user", "ann"), ("x-forwarded-user", "root")], None),
            (&[("x-user", "ann")], None),
        ] {
            assert_eq!(trust.user(&headers(pairs)), user, "{pairs:?}");
        }
        let given = headers(&[("x-forwarded-groups", "a, b,,"), ("x-forwarded-groups", "c")]);
        assert_eq!(trust.groups(&given), ["a", "b", "c"]);
    }

    #[test]
    fn headers_that_mean_something_else_are_refused() {
        for name in ["Authorization", "Host", "cookie", "a b", ""] {
            let error = named("trust-header", name).unwrap_err().to_string();
            assert!(error.starts_with("--trust-header: ") && error.contains("is not a header for a name"), "{error}");
        }
    }
}
