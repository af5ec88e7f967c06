//! Reads values of the configuration file that may be written in several ways.

use serde::{Deserialize, Deserializer};

/// Reads a number of the configuration file as text, so that `tdp = 65` means the
/// same as `--tdp 65`.
pub(super) fn number_as_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Whole(u64),
        Decimal(f64),
        Text(String),
    }
    Ok(Some(match Number::deserialize(deserializer)? {
        Number::Whole(number) => number.to_string(),
        Number::Decimal(number) => number.to_string(),
        Number::Text(text) => text,
    }))
}

/// Reads a list of the configuration file, which may also be a single text.
pub(super) fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum OneOrSeveral {
        One(String),
        Several(Vec<String>),
    }
    Ok(match OneOrSeveral::deserialize(deserializer)? {
        OneOrSeveral::One(text) => vec![text],
        OneOrSeveral::Several(texts) => texts,
    })
}
