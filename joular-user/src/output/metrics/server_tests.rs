use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use super::*;
use crate::{
    output::http::{Running, Server, Token},
    procs::limits,
};

struct Fixed {
    is_well: bool,
}

impl Served for Fixed {
    fn metrics(&self) -> String {
        TEXT.to_owned()
    }

    fn is_alive(&self) -> (bool, String) {
        (self.is_well, "windows end".to_owned())
    }

    fn is_ready(&self) -> (bool, String) {
        (self.is_well, "windows have ended".to_owned())
    }
}

const TEXT: &str = "# TYPE a counter\n# HELP a Of a test\na_total 1\n# EOF\n";

fn started(token: Option<&str>) -> (SocketAddr, Running) {
    let token = token.map(|token| {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all(token.as_bytes()).unwrap();
        Token::read(file.path()).unwrap()
    });
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), token, None).unwrap();
    let address = server.address().unwrap();
    (address, started_as(server, true))
}

fn started_as(server: Server, is_well: bool) -> Running {
    server.start("metrics", LIMITS, Arc::new(Scrapes(Fixed { is_well }))).unwrap()
}

/// What the server answers until it closes the connection.
fn asked(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn got(address: SocketAddr, path: &str, headers: &str) -> String {
    asked(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"))
}

#[test]
fn a_scraper_gets_the_format_that_it_takes() {
    let (address, _running) = started(None);
    let both = "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1\r\n";
    for headers in [both, "Accept: application/openmetrics-text\r\n"] {
        let answer = got(address, "/metrics", headers);
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with(TEXT), "{answer}");
        assert!(answer.contains(&format!("content-type: {OPEN_METRICS}\r\n")), "{answer}");
    }
    for headers in ["", "Accept: */*\r\n", "Accept: application/openmetrics-text;q=0\r\n"] {
        let answer = got(address, "/metrics", headers);
        assert!(answer.ends_with("\r\n\r\n# TYPE a_total counter\n# HELP a_total Of a test\na_total 1\n"), "{answer}");
        assert!(answer.contains(&format!("content-type: {PROMETHEUS}\r\n")), "{answer}");
    }
}

#[test]
fn only_reading_a_few_paths_is_answered() {
    let (address, _running) = started(None);
    for (method, path, status) in [
        ("GET", "/", 200),
        ("GET", "/health", 200),
        ("GET", "/-/healthy", 200),
        ("GET", "/livez", 200),
        ("GET", "/readyz", 200),
        ("GET", "/metrics?x=1", 200),
        ("GET", "/metrics/", 404),
        ("GET", "/../etc/passwd", 404),
        ("POST", "/metrics", 405),
        ("DELETE", "/", 405),
    ] {
        let answer = asked(address, &format!("{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path}: {answer}");
    }
    let answer = asked(address, "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn metrics_need_the_token_and_health_does_not() {
    let (address, _running) = started(Some("secret\n"));
    for (headers, status) in [
        ("", 401),
        ("Authorization: Bearer wrong\r\n", 401),
        ("Authorization: Basic secret\r\n", 401),
        ("Authorization: Basic c2VjcmV0\r\n", 401),
        ("Authorization: Basic Ondyb25n\r\n", 401),
        ("Authorization: Basic bWU6c2VjcmV0\r\n", 200),
        ("Authorization: secret\r\n", 401),
        ("Authorization: Bearer secret\r\n", 200),
        ("Authorization: bearer secret\r\n", 200),
    ] {
        let answer = got(address, "/metrics", headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{headers}: {answer}");
        assert_eq!(answer.contains("a_total"), status == 200);
    }
    assert!(got(address, "/health", "").starts_with("HTTP/1.1 200 "));
}

#[test]
fn probes_say_what_is_not_well() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), None, None).unwrap();
    let address = server.address().unwrap();
    let _running = started_as(server, false);
    for (path, text) in [("/livez", "windows end\n"), ("/readyz", "windows have ended\n")] {
        let answer = got(address, path, "");
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with(text), "{answer}");
    }
}

/// Whether a scrape is answered while a client that connected before it, and sends nothing, still has its place.
fn answers_beside_silent_clients(address: SocketAddr) -> bool {
    let silent: Vec<TcpStream> = (0..2_000).map(|_| TcpStream::connect(address).unwrap()).collect();
    let answer = got(address, "/metrics", "");
    assert!(answer.ends_with("a_total 1\n"), "{answer}");
    let mut last = silent.last().unwrap();
    last.set_nonblocking(true).unwrap();
    last.read(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn clients_that_send_nothing_or_too_much_hold_up_nobody() {
    let (address, _running) = started(None);
    limits::raise_open_files();
    // Their time may be over where this thread waits long for a CPU.
    assert!((0..5).any(|_| answers_beside_silent_clients(address)));
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may close before all is written.
    let _closed = write!(stream, "GET /{} HTTP/1.1\r\n", "x".repeat(4 * LIMITS.header_bytes));
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
}

/// A connection from this host's other address 127.0.0.2.
fn from_elsewhere(address: SocketAddr) -> rustix::io::Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::from(([127, 0, 0, 2], 0)))?;
    connect(&socket, &address)?;
    Ok(TcpStream::from(socket))
}

#[test]
fn a_flood_of_headers_from_another_host_leaves_a_place_for_scrapes() {
    let (address, _running) = started(Some("secret"));
    let (mut answers, mut times) = (Vec::new(), Vec::new());
    let (is_over, begin) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_mins(1) {
                    // It is refused, or ended, sooner or later.
                    let Ok(mut stream) = from_elsewhere(address) else { continue };
                    let begun = stream.write_all(b"GET /metrics HTTP/1.1\r\n");
                    while begun.is_ok()
                        && stream.write_all(b"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n").is_ok()
                    {
                    }
                }
            });
        }
        for _ in 0..20 {
            let begin = Instant::now();
            answers.push(got(address, "/metrics", "Authorization: Bearer secret\r\n"));
            times.push(begin.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(answers.iter().all(|answer| answer.ends_with("a_total 1\n")), "{answers:?}");
    // One that waited for a place would wait until headers are late. A few also wait for a CPU.
    times.sort_unstable();
    assert!(times[10] < LIMITS.header_time / 2, "{times:?}");
}

#[test]
fn nothing_is_served_after_the_run() {
    let (address, running) = started(None);
    assert!(got(address, "/health", "").ends_with("ok\n"));
    drop(running);
    // The thread ends and closes its socket. Until then connections are accepted, and closed without answer.
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
}

/// With another configuration a service listens again at once.
#[test]
fn an_address_is_free_once_its_server_has_ended() {
    let (address, running) = started(None);
    let mut running = Some(running);
    for _ in 0..200 {
        // One who has asked nothing yet holds up nobody.
        let _client = TcpStream::connect(address).unwrap();
        drop(running.take());
        let server = Server::bind(address, None, None).unwrap();
        running = Some(started_as(server, true));
    }
    assert!(got(address, "/metrics", "").starts_with("HTTP/1.1 200 "));
}
