//! Reads requests and writes answers as Connect's protocol has them for single calls (connectrpc.com, "Unary"): a message
//! without a frame in a POST, as protocol buffers or JSON, which may be gzipped. Errors are JSON whatever the answer would
//! have been.

use std::io::Read as _;

use flate2::read::GzDecoder;
use hyper::{
    StatusCode,
    body::Bytes,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use joular_data::text::{escape, harmless_json};
use prost::Message;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    query::Refusal,
    serve::answer::{Answer, JSON},
};

/// The largest body of a request, as it comes and when it is unpacked.
pub const MOST_BYTES: usize = 64 * 1024;

pub const PROTO: &str = "application/proto";

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Proto,
    Json,
}

impl Codec {
    /// The codec of a request, which its answer has, too.
    ///
    /// # Errors
    /// If it is neither: 415.
    pub fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let kind = text(headers, &CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
        if kind.eq_ignore_ascii_case(PROTO) {
            return Ok(Self::Proto);
        }
        if kind.eq_ignore_ascii_case(JSON) {
            return Ok(Self::Json);
        }
        let message = format!("Content-Type: '{}' is not one of {PROTO}, {JSON}", escape(kind));
        Err(Refusal { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, code: "unknown", message })
    }

    /// # Errors
    /// If the bytes are not such a message.
    pub fn read<M: Message + Default + DeserializeOwned>(self, bytes: &[u8]) -> Result<M, Refusal> {
        let failed = |cause: &dyn std::fmt::Display| {
            Refusal::bad(format!("reading the message of the request: {}", escape(&cause.to_string())))
        };
        match self {
            Self::Proto => M::decode(bytes).map_err(|error| failed(&error)),
            Self::Json if bytes.trim_ascii().is_empty() => Ok(M::default()),
            Self::Json => {
                let mut value: Value = serde_json::from_slice(bytes).map_err(|error| failed(&error))?;
                without_nulls(&mut value);
                serde_json::from_value(value).map_err(|error| failed(&error))
            }
        }
    }

    /// # Errors
    /// If it cannot be written, which does not happen in memory.
    pub fn write<M: Message + Serialize>(self, message: &M) -> Result<Answer, Refusal> {
        match self {
            Self::Proto => Ok(Answer { kind: PROTO, body: message.encode_to_vec().into() }),
            Self::Json => {
                let text = serde_json::to_string(message).map_err(|error| Refusal::broken(error.to_string()))?;
                Ok(Answer { kind: JSON, body: harmless_json(&text).into() })
            }
        }
    }
}

/// A message of protocol buffers that others wrote.
pub fn written(bytes: Vec<u8>) -> Answer {
    Answer { kind: PROTO, body: bytes.into() }
}

/// The bytes of a request's message.
///
/// # Errors
/// If they are packed in a way that is not known, or are not what they should be, or are too many.
pub fn unpacked(headers: &HeaderMap, body: &Bytes) -> Result<Bytes, Refusal> {
    let packed = text(headers, &CONTENT_ENCODING).trim();
    if packed.is_empty() || packed.eq_ignore_ascii_case("identity") {
        return Ok(body.clone());
    }
    if !packed.eq_ignore_ascii_case("gzip") {
        return Err(unimplemented(format!("Content-Encoding: '{}' is not one of gzip, identity", escape(packed))));
    }
    let most = u64::try_from(MOST_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    let read = GzDecoder::new(&**body).take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| Refusal::bad(format!("unpacking the body of the request: {error}")))?;
    if bytes.len() > MOST_BYTES {
        let message = format!("the body of the request is more than {MOST_BYTES} bytes when it is unpacked");
        return Err(Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, code: "resource_exhausted", message });
    }
    Ok(bytes.into())
}

/// Of what Pyroscope answers and we do not.
pub const fn unimplemented(message: String) -> Refusal {
    Refusal { status: StatusCode::NOT_IMPLEMENTED, code: "unimplemented", message }
}

/// A refusal with the code that clients of Connect know for its status.
#[must_use]
pub fn as_connect(refusal: Refusal) -> Refusal {
    let code = match refusal.status {
        StatusCode::BAD_REQUEST => "invalid_argument",
        StatusCode::FORBIDDEN => "permission_denied",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::PAYLOAD_TOO_LARGE => "resource_exhausted",
        StatusCode::SERVICE_UNAVAILABLE => "unavailable",
        StatusCode::INTERNAL_SERVER_ERROR => "internal",
        _ => refusal.code,
    };
    Refusal { code, ..refusal }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).map(HeaderValue::to_str).and_then(Result::ok).unwrap_or_default()
}

/// Fields that are null are not there.
fn without_nulls(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(without_nulls);
    }
}
