//! Tests who may see what of a served data set, from the command line: proxies, tokens, rules.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::{expect_usage_error, html::Set, serve::Served};

const PROXY: [&str; 6] = [
    "--trust-header",
    "X-Forwarded-User",
    "--groups-header",
    "X-Forwarded-Groups",
    "--trust-from",
    "192.0.2.0/24,127.0.0.1",
];

/// A file beside the data set.
fn beside(set: &Set, name: &str, text: &str) -> String {
    let path = set.data().with_file_name(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn status(served: &Served, path: &str, headers: &str) -> u16 {
    served.ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")).0
}

#[test]
fn a_proxy_says_who_asks_and_nobody_else_does() {
    let set = Set::new();
    let token = beside(&set, "token", "secret\n");
    let here = Served::of(&set, &PROXY);
    let here_with_token = Served::of(&set, &[&PROXY[..], &["--token-file", &token]].concat());
    let elsewhere = ["--trust-header", "X-Forwarded-User", "--trust-from", "192.0.2.7"];
    let away = Served::of(&set, &elsewhere);
    let away_with_token = Served::of(&set, &[&elsewhere[..], &["--token-file", &token]].concat());
    let (user, bearer) = ("X-Forwarded-User: ann\r\n", "Authorization: Bearer secret\r\n");
    let two = "X-Forwarded-User: ann\r\nX-Forwarded-User: root\r\n";
    let both = format!("{user}{bearer}");
    for (headers, expected) in [
        ("", [401, 401, 401, 401]),
        (user, [200, 200, 401, 401]),
        (two, [401, 401, 401, 401]),
        ("X-Forwarded-User:\r\n", [401, 401, 401, 401]),
        (bearer, [401, 401, 401, 200]),
        (both.as_str(), [200, 200, 401, 200]),
    ] {
        for path in ["/", "/api/v1/labels", "/metrics", "/openapi.json"] {
            let found = [&here, &here_with_token, &away, &away_with_token].map(|one| status(one, path, headers));
            assert_eq!(found, expected, "{path} {headers:?}");
        }
    }
    assert_eq!(status(&away, "/livez", ""), 200);
    // What a user of the proxy posts is read, although it shows no token; an empty body would be refused.
    let body = r#"{"name":"host"}"#;
    let head =
        "POST /querier.v1.QuerierService/LabelValues HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let call = format!("{head}\r\nContent-Length: {}\r\n{user}\r\n{body}", body.len());
    let found = [&here, &here_with_token, &away, &away_with_token].map(|one| one.ask(&call).0);
    assert_eq!(found, [200, 200, 401, 401]);
    // A browser on this host may have been led here by another name.
    let (found, ..) = here.ask(format!("GET / HTTP/1.1\r\nHost: evil.example\r\n{user}\r\n"));
    assert_eq!(found, 403);
}

#[test]
fn rules_say_what_users_and_groups_may_see() {
    let set = Set::new();
    let rules = beside(
        &set,
        "rules.toml",
        "[[access]]\nusers = [\"ann\"]\nhosts = [\"*\"]\n[[access]]\ngroup = \"team-a\"\nservices = [\"shop\"]\n\
         [[access]]\ngroup = \"sre\"\neverything = true\n",
    );
    let served = Served::of(&set, &[&PROXY[..], &["--access", &rules]].concat());
    let energy = |headers: &str| {
        let (status, _, body) =
            served.ask(format!("GET /api/v1/top HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-User: {headers}\r\n\r\n"));
        assert_eq!(status, 200, "{headers}: {}", String::from_utf8_lossy(&body));
        let found: serde_json::Value = serde_json::from_slice(&body).unwrap();
        found["selection"]["energy_uj"].as_u64().unwrap()
    };
    let all = energy("bob\r\nX-Forwarded-Groups: other, sre");
    assert!(all > 0);
    // No process of the recording has a service.
    assert_eq!((energy("ann"), energy("bob\r\nX-Forwarded-Groups: team-a")), (all, 0));
    for (user, expected) in [("ann", 403), ("cid", 403), ("bob\r\nX-Forwarded-Groups: sre", 200)] {
        assert_eq!(status(&served, "/api/v1/runs", &format!("X-Forwarded-User: {user}\r\n")), expected, "{user}");
    }
    assert_eq!(status(&served, "/", "X-Forwarded-User: cid\r\n"), 403);
    drop(served);

    let token = beside(&set, "token", "secret\n");
    let of_token = Served::of(&set, &["--token-file", &token, "--token-user", "cid", "--access", &rules]);
    assert_eq!(status(&of_token, "/", "Authorization: Bearer secret\r\n"), 403);
    assert_eq!(status(&of_token, "/", ""), 401);
}

#[test]
fn what_could_be_seen_by_others_than_was_meant_is_refused() {
    let set = Set::new();
    let data = set.data();
    let data = data.to_str().unwrap();
    let wrong = beside(&set, "wrong.toml", "[[access]]\ngroup = \"a\"\n");
    let rules = beside(&set, "rules.toml", "");
    for (options, words) in [
        (&["--trust-header", "X-User"][..], &["--trust-from"][..]),
        (&["--trust-from", "10.0.0.1"], &["--trust-header"]),
        (&["--groups-header", "X-Groups"], &["--trust-header"]),
        (&["--trust-header", "X-User", "--trust-from", "0.0.0.0/0"], &["--trust-from", "every address"]),
        (&["--trust-header", "Host", "--trust-from", "10.0.0.1"], &["--trust-header", "is not a header for a name"]),
        (&["--access", rules.as_str()], &["--access", "nobody is known by name"]),
        (&["--token-user", "ann"], &["--token-file"]),
        (
            &["--trust-header", "X-User", "--trust-from", "10.0.0.1", "--access", wrong.as_str()],
            &["--access", "wrong.toml", "rule 1: it allows nothing"],
        ),
    ] {
        let options = [&["serve", data], options].concat();
        expect_usage_error(&options, words);
    }
}
