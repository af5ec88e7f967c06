//! Serves the metrics over HTTP, on a thread of its own.
//!
//! It answers GET and HEAD only, a few connections at a time ([`super::seats`]), each for a few seconds at most, so slow
//! clients hold up nothing but each other.

use std::{
    convert::Infallible,
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Bytes,
    header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener as Listener,
    sync::oneshot,
    time::{sleep, timeout},
};

use super::{
    format::prometheus_text,
    seats::{Seat, Seats},
    tls::Tls,
    token::Token,
};

const HEADER_TIME: Duration = Duration::from_secs(2);
const CONNECTION_TIME: Duration = Duration::from_secs(10);
const MAX_HEADER_BYTES: usize = 16 * 1024;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// What there is to be served.
pub trait Served: Send + Sync {
    /// The text that a scrape gets.
    fn metrics(&self) -> String;

    /// Whether windows end as they should, and a line that says so.
    fn is_alive(&self) -> (bool, String);

    /// Whether there are figures, and a line that says so.
    fn is_ready(&self) -> (bool, String);
}

type Serves = Arc<dyn Served>;

/// A socket that listens; nobody answers yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    token: Option<Token>,
    tls: Option<Tls>,
}

/// Ends the server when dropped. Nobody listens at its address then, so another server can.
#[derive(Debug)]
pub struct Running {
    stop: Option<oneshot::Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        // It ends at once, unless it writes an answer. What it panicked with is no concern of a recording that ends.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Server {
    /// # Errors
    /// If the address cannot be listened at.
    pub fn bind(address: SocketAddr, token: Option<Token>, tls: Option<Tls>) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, token, tls })
    }

    /// The address, with the port that the kernel chose if 0 was asked for.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts the thread that answers.
    ///
    /// # Errors
    /// If there can be no thread or event loop.
    pub fn start(self, served: Serves) -> io::Result<Running> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            // Scrapes are less urgent than windows, whose thread this one has its priority from.
            let _allowed = rustix::process::setpriority_process(None, 0);
            runtime.block_on(async move {
                tokio::select! {
                    () = serve(self, served) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Running { stop: Some(stop), thread: Some(thread) })
    }
}

async fn serve(mut server: Server, served: Serves) {
    let Ok(listener) = Listener::from_std(server.listener) else { return };
    let (token, seats) = (Arc::new(server.token), Seats::default());
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let (acceptor, token, served) = (server.tls.as_mut().map(Tls::acceptor), token.clone(), served.clone());
                let expects_certificate = server.tls.as_ref().is_some_and(Tls::expects_certificates);
                let seat = Arc::new(seats.take(client.ip()));
                let number = seat.number();
                let task = tokio::spawn(async move {
                    let connection = async {
                        match acceptor {
                            None => connection(stream, seat, token, true, served).await,
                            Some(acceptor) => {
                                if let Ok(stream) = acceptor.accept(stream).await {
                                    // One that is not signed as it should be ends the handshake.
                                    let has_shown_one = stream.get_ref().1.peer_certificates().is_some();
                                    let is_known = has_shown_one || !expects_certificate;
                                    connection(stream, seat, token, is_known, served).await;
                                }
                            }
                        }
                    };
                    let _late = timeout(CONNECTION_TIME, connection).await;
                });
                seats.serve(number, task.abort_handle());
            }
            // There may be no descriptor left.
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    seat: Arc<Seat>,
    token: Arc<Option<Token>>,
    is_known: bool,
    served: Serves,
) {
    let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
        let is_allowed = is_known && is_allowed(request.headers(), token.as_ref().as_ref());
        if is_allowed {
            seat.trust();
        }
        let answer = answer(request.method(), request.uri().path(), request.headers(), is_allowed, &*served);
        async move { Ok::<_, Infallible>(answer) }
    });
    let _broken = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(MAX_HEADER_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

fn answer(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    is_allowed: bool,
    served: &dyn Served,
) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(method) {
        let mut refusal = response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    match path {
        "/health" | "/-/healthy" => response(StatusCode::OK, PLAIN, "ok\n"),
        "/livez" => probe(served.is_alive()),
        "/readyz" => probe(served.is_ready()),
        "/" => response(StatusCode::OK, PLAIN, "joular-bpf: metrics are at /metrics\n"),
        "/metrics" if !is_allowed => {
            let needed = "a bearer token or a certificate of the client is missing\n";
            let mut refusal = response(StatusCode::UNAUTHORIZED, PLAIN, needed);
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            refusal
        }
        "/metrics" if takes_open_metrics(headers) => response(StatusCode::OK, OPEN_METRICS, served.metrics()),
        "/metrics" => {
            let text = prometheus_text(&served.metrics());
            response(StatusCode::OK, PROMETHEUS, text)
        }
        _ => response(StatusCode::NOT_FOUND, PLAIN, "metrics are at /metrics\n"),
    }
}

fn probe((is_well, text): (bool, String)) -> Response<Full<Bytes>> {
    let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    response(status, PLAIN, text + "\n")
}

fn response(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn is_allowed(headers: &HeaderMap, token: Option<&Token>) -> bool {
    let Some(token) = token else { return true };
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).and_then(|value| value.split_at_checked(7));
    given.is_some_and(|(scheme, given)| scheme.eq_ignore_ascii_case(b"Bearer ") && token.is(given))
}

/// Whether a scraper names OpenMetrics 1.0 among what it takes, and does not refuse it.
fn takes_open_metrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
        is_named
            && parts.all(|part| match part.split_once('=') {
                Some(("q", weight)) => weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0),
                Some(("version", version)) => version == "1.0.0",
                _ => true,
            })
    })
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
