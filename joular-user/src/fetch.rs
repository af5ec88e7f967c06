//! Asks a server for a text by HTTP: within bounds, by no proxy, and not where its answer points, so that a token goes to
//! it alone.

use thiserror::Error;

/// What is asked for. Whoever asks limits the time.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub url: &'a str,
    /// Of a bearer.
    pub token: Option<&'a str>,
    /// Certificates of those who are believed, in PEM. `None`: those whom this host believes.
    pub authority: Option<&'a [u8]>,
    pub is_anyone_trusted: bool,
    pub accept: Option<&'static str>,
    /// Longest answer.
    pub max_bytes: usize,
}

/// Why there is no answer. Whoever asks names the address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FetchError {
    #[error("it answers {text}")]
    Status { code: u16, text: String },
    #[error("the answer is longer than {} MiB", .0 >> 20)]
    TooLong(usize),
    #[error("{0}")]
    Failed(String),
}

/// The body of an answer with status 200.
///
/// # Errors
/// See [`FetchError`].
#[cfg(any(feature = "kubelet", feature = "requests"))]
pub async fn get(request: &Request<'_>) -> Result<Vec<u8>, FetchError> {
    use reqwest::{Certificate, Client, StatusCode, header::ACCEPT, redirect::Policy};

    fn whole(error: reqwest::Error) -> FetchError {
        FetchError::Failed(joular_data::text::with_causes(&error.without_url()))
    }

    // Whoever was first has installed the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .tls_danger_accept_invalid_certs(request.is_anyone_trusted);
    if let Some(authority) = request.authority {
        client = client.tls_certs_only(Certificate::from_pem_bundle(authority).map_err(whole)?);
    }
    let mut asked = client.build().map_err(whole)?.get(request.url);
    if let Some(token) = request.token {
        asked = asked.bearer_auth(token);
    }
    if let Some(accept) = request.accept {
        asked = asked.header(ACCEPT, accept);
    }
    let mut answer = asked.send().await.map_err(whole)?;
    let status = answer.status();
    if status != StatusCode::OK {
        return Err(FetchError::Status { code: status.as_u16(), text: status.to_string() });
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(whole)? {
        if bytes.len() + chunk.len() > request.max_bytes {
            return Err(FetchError::TooLong(request.max_bytes));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// # Errors
/// Always.
#[cfg(not(any(feature = "kubelet", feature = "requests")))]
#[allow(clippy::unused_async, reason = "as with the features")]
pub async fn get(_: &Request<'_>) -> Result<Vec<u8>, FetchError> {
    Err(FetchError::Failed("this joular-bpf was built without the features kubelet and requests".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_the_server_did() {
        let status = FetchError::Status { code: 404, text: "404 Not Found".to_owned() };
        assert_eq!(status.to_string(), "it answers 404 Not Found");
        assert_eq!(FetchError::TooLong(16 << 20).to_string(), "the answer is longer than 16 MiB");
    }
}
