//! Listens, and takes requests to who answers them.

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    pin::Pin,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    body::{Bytes, Incoming},
    header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE},
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
    seats::{Seat, Seats},
    tls::Tls,
    token::Token,
};

/// Kind of an answer for people who asked for none.
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// How much clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until a request has come; the same again for its body, if it may have one.
    pub header_time: Duration,
    /// From the first byte to the last one of an answer.
    pub connection_time: Duration,
    /// Of a request with its headers; at least 8 KiB.
    pub header_bytes: usize,
    /// Connections at a time.
    pub connections: usize,
    /// The same of one address.
    pub connections_of_address: usize,
}

/// A request to read something.
#[derive(Debug)]
pub struct Asked {
    pub uri: Uri,
    pub headers: HeaderMap,
    /// The other end of the connection: a proxy's address, if one stands between.
    pub client: IpAddr,
    /// Whether the client has shown that it may read what not all may.
    pub is_allowed: bool,
    /// Empty unless [`Answers::body_bytes`] allows one, and [`Answers::takes_body`].
    pub body: Bytes,
}

/// An answer under way.
pub type Answering = Pin<Box<dyn Future<Output = Response<Full<Bytes>>> + Send>>;

/// Who answers. All requests share one thread: what takes long has to be done elsewhere.
pub trait Answers: Send + Sync {
    fn answer(self: Arc<Self>, asked: Asked) -> Answering;

    /// The largest body of questions at a path to which they are posted; `None`: they have none, and are asked by GET.
    fn body_bytes(&self, _path: &str) -> Option<usize> {
        None
    }

    /// Whether a body of this client is read, by all else that it sent: not of those who may read nothing.
    fn takes_body(&self, asked: &Asked) -> bool {
        asked.is_allowed
    }
}

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

    /// Starts the thread that answers, of this name.
    ///
    /// # Errors
    /// If there can be no thread or event loop.
    pub fn start(self, name: &str, limits: Limits, answers: Arc<dyn Answers>) -> io::Result<Running> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Requests are less urgent than windows, whose thread this one has its priority from.
            let _allowed = rustix::process::setpriority_process(None, 0);
            runtime.block_on(async move {
                tokio::select! {
                    () = serve(self, limits, answers) => {}
                    _ = stopped => {}
                }
            });
            // What still works for an answer works for nobody.
            runtime.shutdown_background();
        })?;
        Ok(Running { stop: Some(stop), thread: Some(thread) })
    }
}

async fn serve(mut server: Server, limits: Limits, answers: Arc<dyn Answers>) {
    let Ok(listener) = Listener::from_std(server.listener) else { return };
    let token = Arc::new(server.token);
    let seats = Seats::new(limits.connections, limits.connections_of_address);
    loop {
        match listener.accept().await {
            Ok((stream, client)) => {
                let (acceptor, token) = (server.tls.as_mut().map(Tls::acceptor), token.clone());
                let answers = Arc::clone(&answers);
                let expects_certificate = server.tls.as_ref().is_some_and(Tls::expects_certificates);
                let client = client.ip();
                let seat = Arc::new(seats.take(client));
                let number = seat.number();
                let task = tokio::spawn(async move {
                    let connection = async {
                        match acceptor {
                            None => connection(stream, limits, seat, token, (client, true), answers).await,
                            Some(acceptor) => {
                                if let Ok(stream) = acceptor.accept(stream).await {
                                    // One that is not signed as it should be ends the handshake.
                                    let has_shown_one = stream.get_ref().1.peer_certificates().is_some();
                                    let is_known = has_shown_one || !expects_certificate;
                                    connection(stream, limits, seat, token, (client, is_known), answers).await;
                                }
                            }
                        }
                    };
                    let _late = timeout(limits.connection_time, connection).await;
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
    limits: Limits,
    seat: Arc<Seat>,
    token: Arc<Option<Token>>,
    (client, is_known): (IpAddr, bool),
    answers: Arc<dyn Answers>,
) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let is_allowed = is_known && is_allowed(request.headers(), token.as_ref().as_ref());
        if is_allowed {
            seat.trust();
        }
        let (parts, body) = request.into_parts();
        let answers = Arc::clone(&answers);
        async move {
            let most = answers.body_bytes(parts.uri.path());
            if let Some(refused) = refused(&parts.method, most.is_some()) {
                return Ok::<_, Infallible>(refused);
            }
            let (uri, headers) = (parts.uri, parts.headers);
            let asked = Asked { uri, headers, client, is_allowed, body: Bytes::new() };
            let most = most.filter(|_| answers.takes_body(&asked));
            Ok(match body_of(body, most, limits.header_time).await {
                Ok(body) => answers.answer(Asked { body, ..asked }).await,
                Err((status, text)) => response(status, PLAIN, text),
            })
        }
    });
    let _broken = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(limits.header_bytes)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
}

/// The body of a request, of at most so many bytes; it is not looked at if there is to be none.
async fn body_of(body: Incoming, most: Option<usize>, time: Duration) -> Result<Bytes, (StatusCode, &'static str)> {
    let Some(most) = most else { return Ok(Bytes::new()) };
    match timeout(time, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, "the body of the request is too long\n"))
        }
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body of the request cannot be read\n")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body of the request did not come in time\n")),
    }
}

fn refused(method: &Method, is_posted: bool) -> Option<Response<Full<Bytes>>> {
    let (allowed, names, text): (&[Method], _, _) = if is_posted {
        (&[Method::POST], "POST", "only POST\n")
    } else {
        (&[Method::GET, Method::HEAD], "GET, HEAD", "only GET and HEAD\n")
    };
    if allowed.contains(method) {
        return None;
    }
    let mut refusal = response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, text);
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(names));
    Some(refusal)
}

/// An answer of this kind.
pub fn response(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// What a client gets that has not shown that it may read something.
pub fn unauthorised() -> Response<Full<Bytes>> {
    let needed = "a bearer token or a certificate of the client is missing\n";
    let mut refusal = response(StatusCode::UNAUTHORIZED, PLAIN, needed);
    for scheme in ["Bearer", "Basic realm=\"joular-bpf: any name, and the token as password\""] {
        refusal.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
    }
    refusal
}

/// Whether the token is shown: as it is, or as the password of anybody, which is how browsers ask for one.
fn is_allowed(headers: &HeaderMap, token: Option<&Token>) -> bool {
    let Some(token) = token else { return true };
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let of_scheme = |scheme: &[u8]| {
        let (begin, rest) = given.split_at_checked(scheme.len())?;
        begin.eq_ignore_ascii_case(scheme).then_some(rest)
    };
    let is_password = |given: &[u8]| {
        let pair = BASE64_STANDARD.decode(given.trim_ascii()).unwrap_or_default();
        let colon = pair.iter().position(|byte| *byte == b':');
        colon.is_some_and(|at| token.is(&pair[at + 1..]))
    };
    of_scheme(b"Bearer ").is_some_and(|given| token.is(given)) || of_scheme(b"Basic ").is_some_and(is_password)
}
