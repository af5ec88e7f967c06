//! Makes answers of what was asked for, or of why there is nothing.

use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{
        CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY,
        RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
    },
};
use joular_data::text::harmless_json;
use serde::Serialize;
use serde_json::json;

use crate::{output::http, query::Refusal};

pub const HTML: &str = "text/html; charset=utf-8";
pub const JSON: &str = "application/json";
pub const GZIP: &str = "application/gzip";

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub kind: &'static str,
    pub body: Bytes,
}

impl Answer {
    pub fn page(body: Vec<u8>) -> Self {
        Self { kind: HTML, body: body.into() }
    }

    /// JSON, in which no name acts on a terminal.
    ///
    /// # Errors
    /// If it cannot be written, which does not happen in memory.
    pub fn json(value: &impl Serialize) -> Result<Self, Refusal> {
        let text = serde_json::to_string_pretty(value).map_err(|error| Refusal::broken(error.to_string()))?;
        Ok(Self { kind: JSON, body: (harmless_json(&text) + "\n").into() })
    }

    /// JSON that `write` writes.
    ///
    /// # Errors
    /// As `write`.
    pub fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Result<Self, Refusal> {
        let mut body = Vec::new();
        write(&mut body).map_err(|error| Refusal::broken(error.to_string()))?;
        Ok(Self { kind: JSON, body: body.into() })
    }

    pub fn into_response(self) -> Response<Full<Bytes>> {
        let policy = policy(self.kind, &self.body);
        let mut response = http::response(StatusCode::OK, self.kind, self.body);
        if self.kind == GZIP {
            let name = HeaderValue::from_static("attachment; filename=\"joular.pb.gz\"");
            response.headers_mut().insert(CONTENT_DISPOSITION, name);
        }
        guarded(response, policy)
    }
}

impl Refusal {
    pub fn nowhere() -> Self {
        let message = "there is nothing at this path: /openapi.json lists those there are".to_owned();
        Self::missing("not_found", message)
    }

    pub fn into_response(self) -> Response<Full<Bytes>> {
        let text = json!({ "code": self.code, "message": self.message }).to_string();
        let mut response = http::response(self.status, JSON, harmless_json(&text) + "\n");
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
        }
        guarded(response, NO_PAGE.to_owned())
    }
}

/// Nothing may run or be shown within another page.
const NO_PAGE: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

/// What the browser may do: as the page itself says, which knows its own script.
fn policy(kind: &str, body: &[u8]) -> String {
    const BEGIN: &str = "Content-Security-Policy\" content=\"";
    // It stands at the beginning, where no name is.
    let head = String::from_utf8_lossy(body.get(..1000).unwrap_or(body));
    let own =
        || head.split_once(BEGIN)?.1.split_once('"').map(|(policy, _)| format!("{policy}; frame-ancestors 'none'"));
    let own = if kind == HTML { own() } else { None };
    own.unwrap_or_else(|| NO_PAGE.to_owned())
}

/// The answer with what keeps others out of it.
pub fn guarded(mut response: Response<Full<Bytes>>, policy: String) -> Response<Full<Bytes>> {
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The same for what no reading of the data set made.
pub fn guarded_text(response: Response<Full<Bytes>>) -> Response<Full<Bytes>> {
    guarded(response, NO_PAGE.to_owned())
}
