//! Reads and writes single values as the JSON of protocol buffers has them: integers of 64 bits are texts, and may be read
//! as numbers, too.

use serde::{Deserialize, Deserializer, Serializer, de::Error, ser::SerializeSeq as _};
use serde_json::Value;

use super::messages::{AVERAGE, SUM, TREE};

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Whole(i64),
    Decimal(f64),
    Text(String),
}

/// An integer of 64 bits.
pub fn text<S: Serializer>(value: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// A list of them.
pub fn texts<S: Serializer>(values: &[i64], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(values.len()))?;
    for value in values {
        list.serialize_element(&value.to_string())?;
    }
    list.end()
}

pub fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let found = match Written::deserialize(deserializer)? {
        Written::Whole(value) => Some(value),
        Written::Text(text) => text.parse().ok(),
        // 1e3 is an integer.
        Written::Decimal(value) if value.fract() == 0.0 => format!("{value:.0}").parse().ok(),
        Written::Decimal(_) => None,
    };
    found.ok_or_else(|| D::Error::custom("a value is not an integer of 64 bits"))
}

pub fn decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let found = match Written::deserialize(deserializer)? {
        Written::Decimal(value) => Some(value),
        Written::Whole(value) => value.to_string().parse().ok(),
        Written::Text(text) => text.parse().ok(),
    };
    found.ok_or_else(|| D::Error::custom("a value is not a number"))
}

pub fn aggregation<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let names = [("TIME_SERIES_AGGREGATION_TYPE_SUM", SUM), ("TIME_SERIES_AGGREGATION_TYPE_AVERAGE", AVERAGE)];
    enumeration(deserializer, &names)
}

pub fn format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    let names = [("PROFILE_FORMAT_UNSPECIFIED", 0), ("PROFILE_FORMAT_FLAMEGRAPH", 1), ("PROFILE_FORMAT_TREE", TREE)];
    enumeration(deserializer, &names)
}

/// The value of an enumeration, by name or number.
fn enumeration<'de, D: Deserializer<'de>>(deserializer: D, names: &[(&str, i32)]) -> Result<i32, D::Error> {
    let found = match Written::deserialize(deserializer)? {
        Written::Whole(value) => i32::try_from(value).ok(),
        Written::Text(text) => names.iter().find(|(name, _)| *name == text).map(|(_, value)| *value),
        Written::Decimal(_) => None,
    };
    found.ok_or_else(|| D::Error::custom("a value is not of its enumeration"))
}

/// Whether a message says anything: its text if so.
pub fn presence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(if says_nothing(&value) { Vec::new() } else { value.to_string().into_bytes() })
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.values().all(says_nothing),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
