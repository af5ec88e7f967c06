//! Tests `serve` of a bucket: what it says is what commands say of it, and it asks the bucket for little.

use std::path::Path;

use joular_tests::s3::S3;
use serde_json::Value;

use crate::{
    expect_usage_error,
    serve::Served,
    shipping::{recorded, with},
};

const BUCKET: &str = "s3://fleet/energy/prod";
/// Recordings of tests are older than the last hour.
const SINCE: &str = "1970-01-02T00:00:00Z";

/// A bucket with a data set of files of tables.
fn bucket(parent: &Path) -> S3 {
    shipped(parent, &["--window", "recorded"])
}

fn shipped(parent: &Path, options: &[&str]) -> S3 {
    let data = recorded(parent);
    let server = S3::with_bucket("fleet").unwrap();
    let shipped = with(&server.environment(), &[&["ship", &data, BUCKET], options].concat());
    assert_eq!(shipped.code(), Some(0), "{shipped:?}");
    server
}

fn text(served: &Served, path: &str) -> String {
    let (status, _, body) = served.get(path);
    let text = String::from_utf8(body).unwrap();
    assert_eq!(status, 200, "{path}: {text}");
    text
}

#[test]
fn answers_about_a_bucket_are_those_of_the_command_line() {
    // The second one has bundles.
    for options in [&["--window", "recorded"][..], &[]] {
        let parent = tempfile::tempdir().unwrap();
        are_those_of_the_command_line(&shipped(parent.path(), options));
    }
}

fn are_those_of_the_command_line(server: &S3) {
    let environment = server.environment();
    let served = Served::place(BUCKET, &environment, &[]);
    for (path, arguments) in [
        (
            "/api/v1/top?by=process&by=method&from=SINCE",
            &["report", BUCKET, "--json", "--by", "process,method", "--since", SINCE] as &[_],
        ),
        ("/api/v1/runs", &["runs", BUCKET, "--json"]),
        ("/api/v1/audit", &["audit", BUCKET, "--json"]),
    ] {
        let said = with(&environment, arguments);
        assert_eq!(said.code(), Some(0), "{arguments:?}: {said:?}");
        let [found, expected] = [text(&served, &path.replace("SINCE", SINCE)), said.stdout];
        let [found, expected] = [&found, &expected].map(|text| serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(found, expected, "{path}");
    }
    let part = served.json(&format!("/api/v1/top?from={SINCE}"));
    assert!(part["selection"]["energy_uj"].as_u64() > Some(0), "{part}");
    assert_eq!(served.get("/readyz").0, 200);
    // Without a beginning it is about the last hour, and says so.
    let (status, head, _) = served.get("/api/v1/top");
    assert!(status == 200 && head.contains("\njoular-from: 20"), "{head}");
    assert!(!served.get(&format!("/api/v1/top?from={SINCE}")).1.contains("joular-from"), "it was said");
    assert!(text(&served, "/").contains("From is empty: this begins 60 minutes before Until, or now"));
    assert!(!text(&served, &format!("/?from={SINCE}")).contains("From is empty"));
}

#[test]
fn equal_questions_are_one_listing() {
    let parent = tempfile::tempdir().unwrap();
    let mut server = bucket(parent.path());
    let environment = server.environment();
    let listed_by = |server: &mut S3, ask: &dyn Fn()| {
        drop(server.count().unwrap());
        ask();
        server.count().unwrap().get("LIST").copied().unwrap_or(0)
    };
    let report = ["report", BUCKET, "--json", "--since", SINCE];
    let of_report = listed_by(&mut server, &|| assert_eq!(with(&environment, &report).code(), Some(0)));
    assert!(of_report > 0);
    let served = Served::place(BUCKET, &environment, &[]);
    let path = format!("/api/v1/top?from={SINCE}");
    let of_server = listed_by(&mut server, &|| {
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..20).map(|_| scope.spawn(|| served.get(&path))).collect();
            let answers: Vec<_> = asked.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(answers.iter().all(|answer| answer.0 == 200 && answer.2 == answers[0].2));
        });
    });
    assert_eq!((of_server, served.scans()), (of_report, 1));
}

#[test]
fn a_question_that_would_read_too_much_says_what_to_ask_for() {
    let parent = tempfile::tempdir().unwrap();
    let server = bucket(parent.path());
    let environment = server.environment();
    let served = Served::place(BUCKET, &environment, &["--scan", "1KiB", "--nodes", "20"]);
    for (path, words) in [
        (format!("/api/v1/top?from={SINCE}"), "ask for less time (from, until) or fewer hosts (host)"),
        (format!("/part?from={SINCE}"), "ask for less time"),
        ("/api/v1/audit".to_owned(), "ask joular-bpf runs or audit instead"),
    ] {
        let (status, _, body) = served.get(&path);
        let said: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &said["code"]), (413, &Value::from("too_much")), "{path}: {said}");
        assert!(said["message"].as_str().unwrap().contains(words), "{path}: {said}");
    }
    assert_eq!(served.scans(), 0);
    assert_eq!(served.get("/api/v1/top?host=nowhere").0, 200);
    // Grafana's calls, of which some never say a time, are no exception.
    let call = |method: &str, body: &str| {
        let head = format!("POST /querier.v1.QuerierService/{method} HTTP/1.1\r\nHost: localhost");
        let length = body.len();
        served.ask(format!("{head}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"))
    };
    for method in ["ProfileTypes", "LabelNames", "Series", "GetProfileStats"] {
        let (status, head, _) = call(method, "{}");
        assert!(status == 200 && head.contains("\njoular-from: 20"), "{method}: {head}");
    }
    for method in ["ProfileTypes", "LabelNames", "Series"] {
        let (status, _, body) = call(method, r#"{"start":"1"}"#);
        let said: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((status, &said["code"]), (413, &Value::from("resource_exhausted")), "{method}: {said}");
    }
    drop(served);
    let served = Served::place(BUCKET, &environment, &["--scan", "0", "--nodes", "5"]);
    assert_eq!(served.get(&format!("/api/v1/flame?nodes=6&from={SINCE}")).0, 400);
    let flame = served.json(&format!("/api/v1/flame?from={SINCE}"));
    assert!(flame["merged_nodes"].as_u64() > Some(0) && flame["until"].is_string(), "{flame}");
}

#[test]
fn a_bucket_that_cannot_be_read_is_told_at_once() {
    let server = S3::with_bucket("fleet").unwrap();
    let finished = with(&server.environment(), &["serve", "s3://absent/energy", "--listen", "127.0.0.1:0"]);
    assert!(finished.code() == Some(1) && finished.stderr.contains("check the name of the bucket"), "{finished:?}");
    expect_usage_error(&["serve", "ftp://fleet"], &["is not a place for a data set", "s3://BUCKET/PREFIX"]);
    // One without a run yet is waited for.
    let served = Served::place(BUCKET, &server.environment(), &[]);
    assert_eq!((served.get("/livez").0, served.get("/readyz").0), (200, 503));
    assert_eq!(served.get("/api/v1/top").0, 503);
}
