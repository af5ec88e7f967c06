//! Sends a body by HTTP, with headers of the user's.

use std::{fmt, path::Path};

use super::sender::PushError;
use crate::output::secret_file::{self, SecretFileError};

const MAX_HEADERS_BYTES: usize = 64 << 10;

/// Headers of each request: who pushes. They are secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} headers", self.0.len())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum HeadersError {
    #[error(transparent)]
    File(#[from] SecretFileError),
    #[error("line {0}: a header is NAME: VALUE, in visible ASCII characters")]
    Line(usize),
}

impl Headers {
    /// Reads a file that only its owner and group may read, with one header a line.
    ///
    /// # Errors
    /// See [`HeadersError`].
    pub fn read(path: &Path) -> Result<Self, HeadersError> {
        let bytes = secret_file::read(path, MAX_HEADERS_BYTES)?;
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Result<Self, HeadersError> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let header = |(index, line): (usize, &str)| {
            let pair = line.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
            let is_token = |name: &str| {
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
                !name.is_empty() && name.bytes().all(is_name)
            };
            let is_value = |value: &str| value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
            let pair = pair.filter(|(name, value)| is_token(name) && is_value(value));
            pair.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or(HeadersError::Line(index + 1))
        };
        lines.map(header).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(feature = "otlp")]
pub(super) use real::Client;

#[cfg(feature = "otlp")]
mod real {
    use std::time::Duration;

    use joular_data::text::with_causes;
    use reqwest::{
        Certificate, Client as Http, StatusCode,
        header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
        redirect::Policy,
    };
    use tokio::runtime::{Builder, Runtime};

    use super::{super::sender::said, Headers, PushError};

    const TIME: Duration = Duration::from_secs(10);
    /// Longest answer that is read.
    const MAX_ANSWER_BYTES: usize = 64 << 10;

    pub(in super::super) struct Client {
        runtime: Runtime,
        http: Http,
    }

    impl Client {
        pub(in super::super) fn new(authority: Option<&[u8]>, headers: &Headers) -> Result<Self, String> {
            // Whoever was first has installed the same.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let mut all = HeaderMap::new();
            for (name, value) in &headers.0 {
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
                let mut value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
                value.set_sensitive(true);
                all.insert(name, value);
            }
            // Headers are the collector's alone, so nothing is sent on to where an answer points.
            let mut http = Http::builder().default_headers(all).redirect(Policy::none()).timeout(TIME);
            if let Some(authority) = authority {
                http =
                    http.tls_certs_only(Certificate::from_pem_bundle(authority).map_err(|error| with_causes(&error))?);
            }
            let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
            Ok(Self { runtime, http: http.build().map_err(|error| with_causes(&error))? })
        }

        /// Sends a gzipped message, and returns the answer.
        pub(in super::super) fn post(&self, url: &str, zipped: Vec<u8>) -> Result<Vec<u8>, PushError> {
            self.runtime.block_on(async {
                let request = self.http.post(url).header(CONTENT_TYPE, "application/x-protobuf");
                let request = request.header(CONTENT_ENCODING, "gzip").body(zipped);
                let later = |error: reqwest::Error| PushError::Later(with_causes(&error.without_url()));
                let mut answer = request.send().await.map_err(later)?;
                let mut body = Vec::new();
                while let Some(chunk) = answer.chunk().await.map_err(later)? {
                    body.extend_from_slice(&chunk[..chunk.len().min(MAX_ANSWER_BYTES - body.len())]);
                }
                judged(answer.status(), body)
            })
        }
    }

    /// By <https://opentelemetry.io/docs/specs/otlp/#failures-1>.
    fn judged(status: StatusCode, body: Vec<u8>) -> Result<Vec<u8>, PushError> {
        // Errors are a message of protobuf with a text, or a text.
        let words = || {
            let text = String::from_utf8_lossy(&body);
            said(text.trim_start_matches(|character: char| character.is_control() || !character.is_ascii()))
        };
        match status {
            status if status.is_success() => Ok(body),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Err(PushError::Later(format!("it answers {status}{}", words()))),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(PushError::Refused(format!("it answers {status}{}: check --otlp-headers", words())))
            }
            StatusCode::NOT_FOUND => Err(PushError::Refused(
                "it does not take them there (404): check --otlp, and whether the collector has this signal switched on"
                    .to_owned(),
            )),
            status => Err(PushError::Refused(format!("it answers {status}{}", words()))),
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_may_work_later_is_tried_again_and_nothing_else() {
            let status = |code| judged(StatusCode::from_u16(code).unwrap(), b"busy".to_vec());
            assert_eq!(status(200), Ok(b"busy".to_vec()));
            for code in [429, 502, 503, 504] {
                assert!(matches!(status(code), Err(PushError::Later(text)) if text.ends_with(": busy")));
            }
            for (code, words) in [(400, "busy"), (401, "--otlp-headers"), (302, "302"), (404, "--otlp"), (500, "500")] {
                assert!(matches!(status(code), Err(PushError::Refused(text)) if text.contains(words)), "{code}");
            }
        }
    }
}

#[cfg(not(feature = "otlp"))]
pub(super) struct Client;

#[cfg(not(feature = "otlp"))]
impl Client {
    pub(super) fn new(_: Option<&[u8]>, _: &Headers) -> Result<Self, String> {
        Err("this joular-bpf was built without the feature otlp".to_owned())
    }

    pub(super) fn post(&self, _: &str, _: Vec<u8>) -> Result<Vec<u8>, PushError> {
        Err(PushError::Refused(String::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let headers = Headers::parse("# who\nAuthorization: Basic abc=\n\nx-scope-orgid:7\n").unwrap();
        let expected = [("Authorization", "Basic abc="), ("x-scope-orgid", "7")];
        assert_eq!(headers, Headers(expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into()));
        for (text, line) in [("Authorization", 1), ("a: b\n: c", 2), ("a b: c", 1), ("a: \u{e9}", 1), ("a: b\u{7}", 1)]
        {
            assert!(matches!(Headers::parse(text), Err(HeadersError::Line(at)) if at == line), "{text:?}");
        }
        assert!(!format!("{headers:?}").contains("abc"));
    }
}
