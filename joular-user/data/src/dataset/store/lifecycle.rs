//! Writes rules by which a bucket removes old files itself, as each cloud's tools take them.
//!
//! A cloud counts the age of an object from when it was written, not from the date of its windows, and removes it within
//! a day or two. Formats: Amazon's `PutBucketLifecycleConfiguration`, Google's `gcloud storage buckets update
//! --lifecycle-file`, Azure's management policies.

use std::path::Path;

use serde_json::{Value, json};

use super::place::{BucketUrl, Cloud, Place};
use crate::dataset::{
    column::Table as _,
    error::{DataSetError, Result},
    tables::{Runs, TABLES},
};

/// The rules of a place whose files are kept for so many days.
///
/// # Errors
/// If it is not a bucket.
pub fn lifecycle(place: &Path, days: u32) -> Result<Value> {
    match Place::of(place)? {
        Place::Bucket(url) => Ok(of_bucket(&url, days)),
        Place::Directory(_) => {
            let advice = "only buckets remove files by themselves: let a timer run it without --lifecycle";
            Err(DataSetError::NotABucket { action: "printing rules for", path: place.into(), advice })
        }
    }
}

fn of_bucket(url: &BucketUrl, days: u32) -> Value {
    // The run's row last: without it, a run is named as one that cannot be read.
    let tables = TABLES.iter().chain([&Runs::NAME]);
    let prefix =
        |table: &&str| if url.prefix.is_empty() { format!("{table}/") } else { format!("{}/{table}/", url.prefix) };
    let prefixes = tables.map(prefix);
    match url.cloud {
        Cloud::S3 => {
            let rule = |prefix: String| {
                let name = format!("joular-bpf {prefix}");
                json!({"ID": name, "Status": "Enabled", "Filter": {"Prefix": prefix}, "Expiration": {"Days": days}})
            };
            json!({ "Rules": prefixes.map(rule).collect::<Vec<_>>() })
        }
        Cloud::Google => {
            let condition = json!({ "age": days, "matchesPrefix": prefixes.collect::<Vec<_>>() });
            json!({ "rule": [{ "action": { "type": "Delete" }, "condition": condition }] })
        }
        Cloud::Azure => {
            let prefixes: Vec<_> = prefixes.map(|prefix| format!("{}/{prefix}", url.bucket)).collect();
            let filters = json!({ "blobTypes": ["blockBlob"], "prefixMatch": prefixes });
            let actions = json!({ "baseBlob": { "delete": { "daysAfterModificationGreaterThan": days } } });
            let definition = json!({ "actions": actions, "filters": filters });
            json!({ "rules": [{ "enabled": true, "name": "joular-bpf", "type": "Lifecycle", "definition": definition }] })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All prefixes that a text of rules has.
    fn prefixes(rules: &Value, found: &mut Vec<String>) {
        match rules {
            Value::String(text) if text.ends_with('/') && !text.contains(' ') => found.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| prefixes(value, found)),
            Value::Object(values) => values.values().for_each(|value| prefixes(value, found)),
            _ => {}
        }
    }

    #[test]
    fn rules_name_every_table_below_the_prefix_and_nothing_else() {
        for (place, beginning) in
            [("s3://fleet/a/b", "a/b/"), ("gs://fleet/a", "a/"), ("az://fleet/a", "fleet/a/"), ("s3://fleet", "")]
        {
            let rules = lifecycle(Path::new(place), 30).unwrap();
            let mut found = Vec::new();
            prefixes(&rules, &mut found);
            let mut expected: Vec<_> =
                TABLES.iter().chain([&Runs::NAME]).map(|table| format!("{beginning}{table}/")).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{place}");
            assert!(rules.to_string().contains(":30"), "{rules}");
        }
    }

    #[test]
    fn a_directory_has_no_rules() {
        let message = lifecycle(Path::new("/srv/energy"), 30).unwrap_err().to_string();
        assert!(message.contains("only buckets"), "{message}");
    }
}
