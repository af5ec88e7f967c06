use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use joular_data::{
    dataset::{DEFAULT_FLUSH_NS, OutputDirectory, ParquetOutput},
    fixture::{self, SMALL},
    report::{
        diff,
        profile::{Filter, Listed, Profile},
        ranking::{Look, command},
    },
};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::{
    cli::{DiffFlags, ReportFlags},
    config,
    output::{
        Server,
        http::{Limits, Running},
    },
};

/// A server of a data set with a minute of two processes of one service.
struct Served {
    data: Arc<TempDir>,
    address: SocketAddr,
    _running: Running,
}

impl Served {
    fn new() -> Self {
        Self::with(2, Duration::from_secs(30), 1 << 26)
    }

    fn with(scans: usize, time: Duration, cache: u64) -> Self {
        let data = tempfile::tempdir().unwrap();
        let directory = OutputDirectory::create(data.path(), None).unwrap();
        fixture::play(&mut ParquetOutput::new(directory, DEFAULT_FLUSH_NS), SMALL, 60).unwrap();
        Self::serving(Arc::new(data), scans, time, cache, None)
    }

    /// The same data set, of which a question may read so much.
    fn of(data: &Arc<TempDir>, scan_bytes: Option<u64>) -> Self {
        Self::serving(Arc::clone(data), 2, Duration::from_secs(30), 1 << 26, scan_bytes)
    }

    fn serving(data: Arc<TempDir>, scans: usize, time: Duration, cache: u64, scan_bytes: Option<u64>) -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), None, None).unwrap();
        let address = server.address().unwrap();
        let hosts = Hosts { listened: address.ip(), has_token: false };
        let desk = Desk::new(Setting {
            readings: Readings::new(data.path().to_owned(), scans, time, "ask again"),
            hosts,
            readers: Readers::default(),
            scan_bytes,
            most_nodes: 100_000,
            cache_bytes: cache,
        });
        let limits = Limits {
            header_time: Duration::from_secs(5),
            connection_time: Duration::from_secs(60),
            header_bytes: 1 << 16,
            connections: 256,
            connections_of_address: 256,
        };
        let running = server.start("serve", limits, Arc::new(desk)).unwrap();
        Self { data, address, _running: running }
    }

    /// Head and body.
    fn get(&self, path: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let at = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        (String::from_utf8(answer[..at].to_owned()).unwrap(), answer[at + 4..].to_owned())
    }

    fn json(&self, path: &str) -> Value {
        let (head, body) = self.get(path);
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}\n{}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    fn count(&self, name: &str) -> u64 {
        let text = String::from_utf8(self.get("/metrics").1).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}_total ")));
        line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
    }
}

fn energy(rows: &Value, column: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[column].as_u64().unwrap()).sum()
}

#[test]
fn tables_and_comparisons_are_those_of_the_command_line() {
    let served = Served::new();
    let flags = ReportFlags {
        by: vec!["method".to_owned(), "thread".to_owned()],
        top: 5,
        sort: "total".to_owned(),
        json: true,
        part: crate::cli::PartFlags { service: vec!["sh*".to_owned()], ..Default::default() },
        ..ReportFlags::default()
    };
    let mut expected = Vec::new();
    let request = config::report_request(&flags, None).unwrap();
    command::run(served.data.path(), &request, Look::default(), &mut expected).unwrap().written.unwrap();
    let (_, found) = served.get("/api/v1/top?by=method,thread&top=5&view=total&service=sh*");
    assert_eq!(String::from_utf8(found).unwrap(), String::from_utf8(expected).unwrap());

    let choices = config::diff_choices(&DiffFlags { json: true, as_attributed: true, ..DiffFlags::default() }).unwrap();
    let place = served.data.path();
    let comparison = diff::run(place, place, &Filter::default(), None, &choices).unwrap();
    let mut expected = Vec::new();
    comparison.write(&choices, None, &mut expected).unwrap();
    let (_, found) = served.get("/api/v1/diff");
    assert_eq!(String::from_utf8(found).unwrap(), String::from_utf8(expected).unwrap());
}

#[test]
fn every_answer_has_the_energy_of_the_data_set() {
    let served = Served::new();
    let whole = Profile::read(served.data.path(), &Filter::default(), None).unwrap().energy().0;
    assert!(whole > 0);
    for by in ["", "?by=service", "?by=process", "?by=version", "?by=host"] {
        let series = served.json(&format!("/api/v1/series{by}"));
        assert_eq!(energy(&series["series"], "energy_uj"), whole, "{by}");
        let points = series["series"].as_array().unwrap().iter();
        assert_eq!(points.map(|one| energy_of(&one["energies_uj"])).sum::<u64>(), whole, "{by}");
    }
    for label in ["service", "version", "host", "process", "method", "thread", "category"] {
        let values = served.json(&format!("/api/v1/labels/{label}/values"));
        assert_eq!(energy(&values["values"], "energy_uj"), whole, "{label}");
    }
    let flame = served.json("/api/v1/flame?nodes=20");
    assert_eq!(energy(&flame["nodes"], "self"), whole);
    assert_eq!(flame["nodes"][0]["total"], whole);
    assert!(flame["merged_nodes"].as_u64().unwrap() > 0);
}

fn energy_of(values: &Value) -> u64 {
    values.as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).sum()
}

#[test]
fn power_over_time_of_methods_sums_to_their_energy() {
    let served = Served::new();
    let query = "method=com.example.service.module1.*";
    let series = served.json(&format!("/api/v1/series?{query}"));
    let top = served.json(&format!("/api/v1/top?{query}"));
    let whole = top["selection"]["energy_uj"].as_u64().unwrap();
    assert!(whole > 0);
    assert_eq!(energy(&series["series"], "energy_uj"), whole);
}

#[test]
fn a_selection_of_time_has_its_windows_only() {
    let served = Served::new();
    let half = served.json("/api/v1/top?from=2026-03-01T23:59:40Z&until=1772409600");
    assert_eq!(half["extent"]["windows"], 20);
    let version = served.json("/api/v1/top?version=1.2");
    assert!(version["selection"]["energy_uj"].as_u64().unwrap() > 0);
    let none = served.json("/api/v1/top?version=1.3");
    assert_eq!(none["selection"]["energy_uj"], 0);
}

#[test]
fn equal_questions_at_once_are_one_scan_and_later_ones_none() {
    let served = Served::new();
    let ask = || served.get("/api/v1/top?by=thread").1;
    let answers: Vec<Vec<u8>> = thread::scope(|scope| {
        let asking: Vec<_> = (0..20).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0] && !answer.is_empty()));
    assert_eq!(served.count("joular_serve_scans"), 1);
    assert_eq!(served.count("joular_serve_joined") + served.count("joular_serve_cache_hits"), 19);
    // Another run comes, so the answer is looked for again.
    std::fs::write(served.data.path().join("notes.txt"), "new").unwrap();
    assert_eq!(ask(), answers[0]);
    assert_eq!(served.count("joular_serve_scans"), 2);
}

#[test]
fn bad_questions_are_refused_with_what_fits_and_pages_have_their_policy() {
    let served = Served::new();
    for (path, status, words) in [
        ("/api/v1/top?speed=1", 400, "'speed' is not a parameter here: there are from, until"),
        ("/api/v1/top?by=moon", 400, "by: 'moon' is not a kind of table"),
        ("/api/v1/top?view=x", 400, "view: 'x' is not one of self, total"),
        ("/api/v1/top?measure=joules", 400, "measure: 'joules' is not a measure: use one of energy"),
        ("/api/v1/top?top=-1", 400, "top: '-1' is not a number between"),
        ("/api/v1/series?by=method", 400, "by: 'method' is not one of service"),
        ("/api/v1/labels/moon/values", 400, "'moon' is not a label"),
        ("/api/v1/diff?per=request", 400, "per: 'request' is not one of time"),
        ("/api/v1/flame?nodes=0", 400, "nodes: '0' is not a number between 1 and"),
        ("/service/shop?view=x", 400, "view: 'x' is not one of self, total"),
        ("/report.html?service=moon", 404, "the selection is empty"),
        ("/moon", 404, "there is nothing at this path"),
    ] {
        let (head, body) = served.get(path);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {head}");
        let said: Value = serde_json::from_slice(&body).unwrap();
        assert!(said["message"].as_str().unwrap().contains(words) && said["code"].is_string(), "{path}: {said}");
    }
    for path in ["/", "/service/shop", "/part?service=moon", "/compare", "/compare?left.host=node-1", "/report.html"] {
        let (head, body) = served.get(path);
        let body = String::from_utf8(body).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}\n{body}");
        let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
        let nonce = policy.split_once("'nonce-").unwrap().1.split_once('\'').unwrap().0;
        assert!(policy.starts_with("default-src 'none'; ") && policy.ends_with("frame-ancestors 'none'"), "{policy}");
        assert!(body.contains(&format!("<script nonce=\"{nonce}\">")), "{path}");
        assert!(head.contains("x-content-type-options: nosniff") && !head.contains("set-cookie"), "{head}");
    }
}

#[test]
fn a_question_that_takes_too_long_ends_and_leaves_its_place() {
    let served = Served::with(1, Duration::ZERO, 0);
    for _ in 0..3 {
        let (head, body) = served.get("/api/v1/flame");
        // It may be read faster than anybody can look at the clock.
        let is_late = head.starts_with("HTTP/1.1 503 ") && head.contains("retry-after: 10");
        assert!(is_late || head.starts_with("HTTP/1.1 200 "), "{head}\n{}", String::from_utf8_lossy(&body));
    }
    assert!(served.get("/livez").0.starts_with("HTTP/1.1 200 "));
    assert!(served.get("/readyz").0.starts_with("HTTP/1.1 200 "));
}

#[test]
fn the_description_has_every_path() {
    let served = Served::new();
    let document = served.json("/openapi.json");
    for route in routes::ROUTES {
        let parameters = &document["paths"][route.template]["get"]["parameters"];
        assert!(parameters.is_array(), "{}", route.template);
    }
    assert!(document["paths"]["/metrics"]["get"].is_object());
    assert!(document["info"]["description"].as_str().unwrap().contains("POST /querier.v1.QuerierService/METHOD"));
}

#[test]
fn a_bucket_is_asked_at_the_moment_of_its_listing_and_about_the_last_hour() {
    let terms = |place: &str| {
        let bucket = joular_data::dataset::store::keep(place.as_ref(), LISTED, 0).unwrap();
        let setting = Setting {
            readings: Readings::new(place.into(), 1, Duration::from_secs(1), "ask again")
                .kept_by(bucket.into_iter().collect()),
            hosts: Hosts { listened: "127.0.0.1".parse().unwrap(), has_token: false },
            readers: Readers::default(),
            scan_bytes: None,
            most_nodes: 7,
            cache_bytes: 0,
        };
        Desk::new(setting).terms(Sight::default())
    };
    let of_bucket = terms("s3://asked-in-a-test/energy");
    let listed_us = i64::try_from(LISTED.as_micros()).unwrap();
    assert_eq!((of_bucket.now.0 % listed_us, of_bucket.span, of_bucket.most_nodes), (0, Some(SPAN), 7));
    assert_eq!(terms("data").span, None);
}

#[test]
fn a_question_that_would_read_too_much_is_refused_before_it_is_read() {
    let served = Served::new();
    let most = |bytes| Served::of(&served.data, Some(bytes));
    let whole = Listed::of(served.data.path(), [&Filter::default()]).unwrap();
    assert!(whole.bytes > 1000 && whole.files > 3, "{whole:?}");
    let little = most(whole.bytes - 1);
    for (path, advice) in [
        ("/", "ask for less time"),
        ("/api/v1/top", "ask for less time"),
        ("/api/v1/audit", "ask joular-bpf runs or audit instead"),
        ("/api/v1/diff", "ask for less time"),
    ] {
        let (head, body) = little.get(path);
        let said: Value = serde_json::from_slice(&body).unwrap();
        assert!(head.starts_with("HTTP/1.1 413 ") && said["code"] == "too_much", "{path}: {head}");
        assert!(said["message"].as_str().unwrap().contains(advice), "{path}: {said}");
    }
    assert_eq!(little.count("joular_serve_scans"), 0);
    for path in ["/api/v1/runs", "/api/v1/top?host=moon", "/api/v1/top?until=2020-01-01T00:00:00Z", "/readyz"] {
        assert!(little.get(path).0.starts_with("HTTP/1.1 200 "), "{path}");
    }
    let enough = most(whole.bytes);
    assert!(enough.get("/api/v1/top").0.starts_with("HTTP/1.1 200 "));
    assert!(enough.get("/api/v1/diff").0.starts_with("HTTP/1.1 413 "), "both sides are read");
}
