use std::fs;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::*;
use crate::{
    cli::{self, Command},
    config,
};

/// What flags make of a server.
fn readers(flags: &str) -> Readers {
    let rules = tempfile::NamedTempFile::new().unwrap();
    let text = "[[access]]\nusers = [\"ann\"]\nservices = [\"shop\"]\n[[access]]\ngroup = \"sre\"\neverything = true\n";
    fs::write(rules.path(), text).unwrap();
    let line = flags.replace("RULES", rules.path().to_str().unwrap());
    let arguments = ["joular-bpf", "serve"].into_iter().chain(line.split_whitespace());
    let Some(Command::Serve(flags)) = cli::parse(arguments.map(Into::into)).unwrap().command else { panic!() };
    let config::Serving { token, token_user, trust, access, .. } = config::serving(&flags).unwrap();
    Readers { has_token: token.is_some(), token_user, trust, rules: access }
}

fn asked(readers: &Readers, client: &str, headers: &[(&'static str, &'static str)], shows_token: bool) -> Asked {
    let pairs = headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    Asked {
        uri: "/".parse().unwrap(),
        headers: pairs.collect::<HeaderMap>(),
        client: client.parse().unwrap(),
        // As the server has it: without a token all have shown it.
        is_allowed: shows_token || !readers.has_token,
        body: Bytes::new(),
    }
}

const PROXY: &str = "--trust-header X-Forwarded-User --trust-from 10.1.0.0/16 --groups-header X-Forwarded-Groups";
const ANN: &[(&str, &str)] = &[("x-forwarded-user", "ann")];
const SRE: &[(&str, &str)] = &[("x-forwarded-user", "bob"), ("x-forwarded-groups", "other, sre")];
const BOB: &[(&str, &str)] = &[("x-forwarded-user", "bob")];

#[test]
fn who_asks_is_known_by_the_proxy_or_the_token() {
    let (everything, nothing) = (Ok(""), Ok("rules "));
    for (flags, client, headers, shows_token, expected) in [
        // As without a proxy.
        ("", "127.0.0.1", &[][..], false, everything),
        ("", "127.0.0.1", ANN, false, everything),
        ("--token-file t", "10.1.0.1", ANN, false, Err(Unknown::NoToken)),
        ("--token-file t", "10.1.0.1", &[], true, everything),
        // The proxy names somebody, or nobody.
        ("PROXY", "10.1.0.1", ANN, false, everything),
        ("PROXY", "10.1.0.1", &[], false, Err(Unknown::NoUser)),
        ("PROXY", "10.1.0.1", &[("x-forwarded-groups", "sre")], false, Err(Unknown::NoUser)),
        ("PROXY --token-file t", "10.1.0.1", &[], true, Err(Unknown::NoUser)),
        // Others say what they like.
        ("PROXY", "10.2.0.1", ANN, false, Err(Unknown::NotFromProxy)),
        ("PROXY", "127.0.0.1", ANN, false, Err(Unknown::NotFromProxy)),
        ("PROXY --token-file t", "10.2.0.1", ANN, false, Err(Unknown::NoToken)),
        ("PROXY --token-file t", "10.2.0.1", &[], true, everything),
        // Rules.
        ("PROXY --access RULES", "10.1.0.1", ANN, false, Ok("rules 0")),
        ("PROXY --access RULES", "10.1.0.1", BOB, false, nothing),
        ("PROXY --access RULES", "10.1.0.1", SRE, false, everything),
        ("PROXY --access RULES --token-file t", "10.2.0.1", SRE, true, everything),
        ("PROXY --access RULES --token-file t --token-user ann", "10.2.0.1", SRE, true, Ok("rules 0")),
        ("--access RULES --token-file t --token-user bob", "127.0.0.1", SRE, true, nothing),
    ] {
        let readers = readers(&flags.replace("PROXY", PROXY));
        let sight = readers.sight(&asked(&readers, client, headers, shows_token));
        let key = sight.as_ref().map(|sight| sight.key.as_str()).map_err(|unknown| *unknown);
        assert_eq!(key, expected, "{flags}: {client} {headers:?} {shows_token}");
        if let Ok(sight) = &sight {
            let access = (sight.access.is_everything(), sight.access.is_nothing());
            assert_eq!(access, (key == everything, key == nothing), "{flags}: {client} {headers:?}");
        }
    }
}

#[test]
fn a_proxy_on_this_host_has_to_name_this_host() {
    for (flags, client, expected) in [
        ("", "127.0.0.1", false),
        ("--token-file t", "127.0.0.1", true),
        ("PROXY", "10.1.0.1", true),
        ("PROXY", "127.0.0.1", false),
        ("LOCAL", "127.0.0.1", false),
        ("LOCAL --token-file t", "127.0.0.1", false),
        ("LOCAL --token-file t", "10.1.0.1", true),
    ] {
        let local = "--trust-header X-Forwarded-User --trust-from 127.0.0.0/8";
        let readers = readers(&flags.replace("PROXY", PROXY).replace("LOCAL", local));
        assert_eq!(readers.takes_any_name(&asked(&readers, client, ANN, false)), expected, "{flags}: {client}");
    }
}
