//! Defines messages that all of OTLP's signals share, with their field numbers:
//! opentelemetry/proto/common/v1/common.proto and resource/v1/resource.proto.

use prost::{Message, Oneof};

/// What signals are about.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// Who made them.
#[derive(Clone, PartialEq, Message)]
pub struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Int(i64),
}

impl From<Value> for AnyValue {
    fn from(value: Value) -> Self {
        Self { value: Some(value) }
    }
}

impl InstrumentationScope {
    /// This program.
    pub fn own(attributes: Vec<KeyValue>) -> Self {
        Self { name: "joular-bpf".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned(), attributes }
    }
}

impl KeyValue {
    pub fn text(key: &str, text: &str) -> Self {
        Self { key: key.to_owned(), value: Some(Value::Text(text.to_owned()).into()) }
    }

    pub fn number(key: &str, number: i64) -> Self {
        Self { key: key.to_owned(), value: Some(Value::Int(number).into()) }
    }
}
