//! Tests `requests`, which counts by what an application exposes, and comparisons by such counts.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use joular_tests::paths;

use crate::{expect_usage_error, joular_bpf};

/// An application that has five requests between two questions. Returns its address.
fn application(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (stream, turn) in listener.incoming().zip(1..) {
            let mut stream = stream.unwrap();
            let (mut asked, mut bytes) = (Vec::new(), [0; 1024]);
            while !asked.ends_with(b"\r\n\r\n") {
                let read = stream.read(&mut bytes).unwrap();
                assert!(read > 0, "the question has no end");
                asked.extend_from_slice(&bytes[..read]);
            }
            let body = format!("http_server_requests_seconds_count{{method=\"GET\",uri=\"/a\"}} {}\n", turn * 5);
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn an_application_is_asked_at_the_beginning_and_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counts.csv");
    let file = file.to_str().unwrap();
    let url = application("200 OK");
    let arguments = ["requests", "--url", &url, "--output", file, "--duration", "50ms", "--handler", "GET /a=Shop.get"];
    for runs in 1..=2 {
        let finished = joular_bpf(&arguments);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        assert!(finished.stderr.contains("5 requests of 1 route: joular-bpf report --requests"), "{finished:?}");
        let text = fs::read_to_string(file).unwrap();
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!((rows[0], rows.len()), ("route,count,handler,begin,end", 1 + runs), "{text}");
        assert!(rows[1..].iter().all(|row| row.starts_with("GET /a,5,Shop.get,20")), "{text}");
    }
}

#[test]
fn who_does_not_answer_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counts.csv");
    let url = application("404 Not Found");
    let finished = joular_bpf(&["requests", "--url", &url, "--output", file.to_str().unwrap()]);
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    assert!(finished.stderr.contains("it answers 404 Not Found: check --url"), "{finished:?}");
    expect_usage_error(&["requests", "--url", "shop", "--output", "f"], &["--url", "is not an address"]);
}

#[test]
fn a_comparison_by_request_says_why_routes_have_no_figure() {
    let folder = tempfile::tempdir().unwrap();
    let [data, counts] = ["data", "counts.csv"].map(|name| folder.path().join(name).to_str().unwrap().to_owned());
    let recording = paths::fixtures().join("recordings/jmh.jrec");
    let finished = joular_bpf(&["--replay", recording.to_str().unwrap(), "--output", &data, "--quiet"]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    fs::write(&counts, "route,count\nGET /a,5\n").unwrap();
    let by_request = ["--per", "request", "--requests-a", &counts, "--requests-b", &counts];
    let finished = joular_bpf(&[&["diff", &data, &data], &by_request[..]].concat());
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    for words in ["J/request, by route", "note: GET /a: no sample is of a handler with such a name in A"] {
        assert!(finished.stdout.contains(words), "{words}: {finished:?}");
    }
    expect_usage_error(&["diff", &data, &data, "--per", "request"], &["--requests-a"]);
}
