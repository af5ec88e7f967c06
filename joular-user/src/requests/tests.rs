//! Counts by what a server answers that knows what it says when.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    thread::{self, JoinHandle},
};

use joular_data::report::requests::scrape::Counting;

use super::*;
use crate::{
    cli::RequestsFlags,
    config,
    shutdown::{Shutdown, StopReason},
};

/// Answers once with each of these, and returns what it was asked.
fn serve(answers: Vec<(&'static str, String)>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let answer = |(status, body): (&str, String)| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut bytes = [0; 1024];
            while !asked.ends_with(b"\r\n\r\n") {
                let read = stream.read(&mut bytes).unwrap();
                assert!(read > 0, "the question has no end");
                asked.extend_from_slice(&bytes[..read]);
            }
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
            // Whoever finds an answer too long reads no more of it.
            let _ = stream.write_all((head + &body).as_bytes());
            String::from_utf8(asked).unwrap()
        };
        answers.into_iter().map(answer).collect()
    });
    (url, server)
}

fn counters(count: u64) -> String {
    let name = "http_server_requests_seconds";
    format!("# TYPE {name} summary\n{name}_count{{method=\"GET\",uri=\"/a\"}} {count}\n")
}

fn scraper(url: String, output: &Path, token: Option<&Path>) -> Scraper {
    let flags = RequestsFlags {
        url,
        output: output.to_owned(),
        every: "1h".to_owned(),
        token_file: token.map(ToOwned::to_owned),
        ..RequestsFlags::default()
    };
    Scraper::open(config::scraping(&flags).unwrap()).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Route and count of each row, below the heading.
fn rows(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let rows = text.strip_prefix(Counting::HEADING).unwrap().lines();
    rows.map(|row| row.split(',').take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn what_counters_count_between_the_first_and_the_last_answer_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.csv");
    let token = folder.path().join("token");
    fs::write(&token, "secret\n").unwrap();
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let (url, server) = serve(vec![("200 OK", counters(40)), ("200 OK", counters(52))]);
    let scraper = scraper(url, &path, Some(&token));
    let counted = block_on(async {
        let mut shutdown = Shutdown::when(async { StopReason::Terminate });
        scraper.count(&mut shutdown).await.unwrap()
    });
    assert_eq!(counted, Counted { requests: 12, routes: 1, times: 1, is_whole: true });
    assert_eq!(rows(&path), ["GET /a 12"]);
    for asked in server.join().unwrap() {
        let asked = asked.to_lowercase();
        assert!(asked.starts_with("get /metrics http/1.1\r\n") && asked.contains("\r\naccept: text/plain;"), "{asked}");
        assert!(asked.contains("\r\nauthorization: bearer secret\r\n"), "{asked}");
    }
}

#[test]
fn an_answer_that_does_not_come_or_cannot_be_read_loses_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.csv");
    let long = "#".repeat((16 << 20) + 1);
    let (url, server) = serve(vec![
        ("200 OK", counters(1)),
        ("500 Internal Server Error", String::new()),
        ("200 OK", "http_server_requests_seconds_count{ 5\n".to_owned()),
        ("200 OK", long),
        ("200 OK", counters(11)),
        ("200 OK", counters(12)),
    ]);
    let mut scraper = scraper(url, &path, None);
    let failures: Vec<Option<String>> = block_on(async {
        let mut failures = Vec::new();
        for _ in 0..6 {
            failures.push(scraper.turn().await.unwrap().err().map(|failed| failed.to_string()));
        }
        failures
    });
    let expected = [
        None,
        Some("it answers 500 Internal Server Error"),
        Some("line 1 of the answer cannot be understood: a label has no value"),
        Some("the answer is longer than 16 MiB"),
        None,
        None,
    ];
    assert_eq!(failures, expected.map(|text| text.map(ToOwned::to_owned)));
    assert_eq!(rows(&path), ["GET /a 10", "GET /a 1"]);
    assert_eq!((scraper.counted.times, scraper.counted.requests), (2, 11));
    assert_eq!(server.join().unwrap().len(), 6);
}

#[test]
fn who_may_not_ask_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (url, server) = serve(vec![("403 Forbidden", String::new())]);
    let scraper = scraper(url, &folder.path().join("counts.csv"), None);
    let error = block_on(async {
        let mut shutdown = Shutdown::when(std::future::pending());
        scraper.count(&mut shutdown).await.unwrap_err()
    });
    assert!(error.to_string().ends_with("it answers 403 Forbidden: check --token-file"), "{error}");
    server.join().unwrap();
}
