//! Defines messages that all of OTLP's signals share, with their field numbers:
//! opentelemetry/proto/common/v1/common.proto and resource/v1/resource.proto.

use prost::{Message, Oneof};

use crate::events::HostIdentity;

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

/// What tells a host from others, beside its name. By OpenTelemetry's conventions the cloud's name of the machine goes
/// before the system's own; labels have their own keys.
pub fn of_host(identity: &HostIdentity) -> Vec<KeyValue> {
    let HostIdentity { machine_id, instance_id, labels } = identity;
    let id = instance_id.as_ref().or(machine_id.as_ref()).map(|id| KeyValue::text("host.id", id.raw()));
    let labels = labels.iter().filter_map(|label| label.raw().split_once('='));
    id.into_iter().chain(labels.map(|(key, value)| KeyValue::text(key, value))).collect()
}
