//! Tests `serve` from the command line: every path as a plain client asks it, and clients that mean no good.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::{Duration, Instant},
};

use joular_tests::{paths, process::Running};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    expect_usage_error,
    html::{Set, start},
    joular_bpf,
};

pub const START: Duration = Duration::from_secs(20);

/// A server of a data set; it ends when dropped.
pub struct Served {
    process: Running,
    address: SocketAddr,
}

impl Served {
    pub fn of(set: &Set, options: &[&str]) -> Self {
        Self::place(set.data().to_str().unwrap(), &[], options)
    }

    /// The data set may be in a bucket that the environment leads to.
    pub fn place(place: &str, environment: &[(&str, String)], options: &[&str]) -> Self {
        let mut command = Command::new(paths::joular_bpf());
        command.args(["serve", place, "--listen", "127.0.0.1:0"]).args(options);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut process = Running::spawn("joular-bpf", &mut command).unwrap();
        let told = process.wait_stderr_with(" at http", START).unwrap();
        let (_, url) = told.split_once(" at http").unwrap();
        let (_, address) = url.split_once("://").unwrap();
        let address = address.split_once('/').unwrap().0.parse().unwrap();
        Self { process, address }
    }

    /// Status, head and body of the answer.
    pub fn ask(&self, request: impl AsRef<[u8]>) -> (u16, String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        // It may be refused before all of it has been sent.
        let _closed = stream.write_all(request.as_ref());
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer);
        let at = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(answer.len());
        let head = String::from_utf8_lossy(&answer[..at]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, head, answer.get(at + 4..).unwrap_or_default().to_owned())
    }

    pub fn get(&self, path: &str) -> (u16, String, Vec<u8>) {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    pub fn json(&self, path: &str) -> Value {
        let (status, _, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).unwrap()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How often the data set was read.
    pub fn scans(&self) -> u64 {
        let text = String::from_utf8(self.get("/metrics").2).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("joular_serve_scans_total "));
        line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
    }
}

#[test]
fn every_path_is_answered_and_nothing_is_written() {
    let set = Set::new();
    let served = Served::of(&set, &[]);
    let state = |set: &Set| {
        let mut files: Vec<_> = walk(&set.data()).collect();
        files.sort();
        files
    };
    let before = state(&set);
    let document = served.json("/openapi.json");
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() >= 17, "{paths:?}");
    for path in paths.keys() {
        let path = path.replace("/service/{name}", "/service/shop").replace("{name}", "host");
        let (status, head, body) = served.get(&path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        assert!(!body.is_empty() && head.contains("x-content-type-options: nosniff"), "{path}: {head}");
        let (status, _, body) = served.ask(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert!(status == 200 && body.is_empty(), "HEAD {path}");
    }
    let report = joular_bpf(&["report", set.data().to_str().unwrap(), "--json", "--by", "process,method"]);
    let (_, _, top) = served.get("/api/v1/top?by=process&by=method");
    assert_eq!(String::from_utf8(top).unwrap().trim_end(), report.stdout.trim_end());
    assert_eq!(served.get("/api/v1/pprof").2[..2], [0x1f, 0x8b]);
    assert_eq!(state(&set), before);
    served.process.signal(Signal::INT).unwrap();
    assert_eq!(served.process.finish(START).unwrap().code(), Some(0));
}

fn walk(folder: &std::path::Path) -> Box<dyn Iterator<Item = (std::path::PathBuf, std::time::SystemTime)>> {
    Box::new(fs::read_dir(folder).unwrap().flatten().flat_map(|entry| {
        let (path, about) = (entry.path(), entry.metadata().unwrap());
        if about.is_dir() { walk(&path) } else { Box::new(std::iter::once((path, about.modified().unwrap()))) }
    }))
}

#[test]
fn what_does_not_fit_is_refused() {
    let set = Set::new();
    let served = Served::of(&set, &[]);
    for (path, status, words) in [
        ("/api/v1/top?from=noon", 400, "from: 'noon' is not a time"),
        ("/api/v1/top?speed=1", 400, "'speed' is not a parameter here"),
        ("/%00", 404, "there is nothing at this path"),
        ("/service/../../etc/passwd", 404, "there is nothing at this path"),
    ] {
        let (found, _, body) = served.get(path);
        let said: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(found, status, "{path}: {said}");
        assert!(said["message"].as_str().unwrap().contains(words), "{path}: {said}");
    }
    for (request, status) in [
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".to_owned(), 405),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(), 403),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 403),
        (format!("GET /?service={} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(70_000)), 414),
        (format!("GET / HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(140_000)), 431),
        ("POST /pyroscope/render HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".to_owned(), 405),
        ("GET /querier.v1.QuerierService/ProfileTypes HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(), 405),
        ("\0\0\r\n\r\n".to_owned(), 400),
    ] {
        let (found, head, _) = served.ask(&request);
        let shown: String = request.chars().take(60).collect();
        // What is too long may be cut off, and which limit it meets first is not ours to say.
        let is_too_long = status > 410 && found != 200;
        assert!(found == status || is_too_long, "{shown:?}: {head}");
    }
    assert_eq!(served.get("/livez").0, 200);
    let data = set.data();
    let data = data.to_str().unwrap();
    expect_usage_error(&["serve", data, "--listen", "0.0.0.0:0"], &["--listen", "--token-file", "--trust-header"]);
    expect_usage_error(&["serve", data, "--certificate", "c"], &["--key"]);
    let nowhere = joular_bpf(&["serve", "/no/such/place"]);
    assert!(nowhere.code() == Some(1) && nowhere.stderr.contains("opening the data set"), "{nowhere:?}");
}

#[test]
fn slow_clients_hold_up_nobody_and_equal_questions_are_one_scan() {
    let set = Set::new();
    let served = Served::of(&set, &[]);
    let slow: Vec<TcpStream> = (0..50)
        .map(|_| {
            let mut stream = TcpStream::connect(served.address).unwrap();
            stream.write_all(b"GET /report.html HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let begin = Instant::now();
    assert_eq!(served.get("/api/v1/runs").0, 200);
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    drop(slow);

    let before = served.scans();
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..20).map(|_| scope.spawn(|| served.get("/api/v1/top?by=line"))).collect();
        assert!(asked.into_iter().all(|one| one.join().unwrap().0 == 200));
    });
    assert_eq!(served.scans(), before + 1);
}

#[test]
fn a_token_is_needed_where_there_is_one() {
    let set = Set::new();
    let token = set.data().with_file_name("token");
    fs::write(&token, "secret\n").unwrap();
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let served = Served::of(&set, &["--token-file", token.to_str().unwrap()]);
    for (header, status) in [
        ("", 401),
        ("Authorization: Bearer wrong\r\n", 401),
        ("Authorization: Bearer secret\r\n", 200),
        ("Authorization: Basic bWU6c2VjcmV0\r\n", 200),
    ] {
        for path in ["/", "/api/v1/labels", "/metrics", "/openapi.json"] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n");
            assert_eq!(served.ask(&request).0, status, "{path} {header}");
        }
    }
    assert_eq!(served.get("/livez").0, 200);
}

#[test]
fn hostile_names_are_text() {
    let set = Set::hostile();
    let served = Served::of(&set, &[]);
    for path in ["/", "/part", "/api/v1/top", "/compare?left.process=*"] {
        let (status, _, body) = served.get(path);
        let text = String::from_utf8(body).unwrap();
        assert_eq!(status, 200, "{path}: {text}");
        let acts = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
        assert_eq!(text.find(acts), None, "{path}");
        // JSON is no page: no browser looks for markup in it.
        assert!(path.starts_with("/api/") || !text.contains("<img") && !text.contains("<script>"), "{path}");
    }
}

#[test]
fn pages_work_in_a_browser_of_any_width() {
    let Some(mut browser) = start() else { return };
    let set = Set::new();
    let served = Served::of(&set, &[]);
    for width in [1400, 800, 400] {
        browser
            .call(
                "Emulation.setDeviceMetricsOverride",
                &serde_json::json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false }),
            )
            .unwrap();
        for path in ["/", "/part", "/compare", "/compare?left.until=now&right.from=2020-01-01T00:00:00Z"] {
            browser.open_url(&served.url(path)).unwrap();
            let wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth";
            assert_eq!(browser.eval(wide).unwrap(), true, "{path} at {width}");
            let unnamed = "[...document.querySelectorAll('input:not([type=hidden])')].filter((one) => one.labels.length === 0).length";
            assert_eq!(browser.eval(unnamed).unwrap(), 0, "{path}");
        }
    }
    // A drag over power selects its time.
    browser.open_url(&served.url("/part?refresh=off")).unwrap();
    let drag = "(() => { const svg = document.getElementById('power'); const { left, top, width } = svg.getBoundingClientRect();
        svg.setPointerCapture = () => {};
        for (const [kind, part] of [['down', .25], ['move', .5], ['up', .75]]) svg.dispatchEvent(new PointerEvent(`pointer${kind}`,
            { clientX: left + width * part, clientY: top + 5, pointerId: 1 })); })()";
    browser.eval(drag).unwrap();
    browser.wait("new URLSearchParams(location.search).has('until')").unwrap();
    browser.wait("document.documentElement?.dataset.ready === 'true'").unwrap();
    let query = browser.text("location.search").unwrap();
    assert!(query.contains("from=") && query.contains("refresh=off"), "{query}");
    assert_eq!(browser.complaints, Vec::<String>::new());
}
