//! Records at a place what is to be erased, before anything is: `erasures/0001.json`, and so on. A record is made once and
//! never changes. Whoever sums runs that come later finds it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use crate::{
    dataset::{
        error::{DataSetError, Result},
        store::{Published, Store, StoredFile},
    },
    model::units::UnixMicros,
    output::OutputError,
    text::escape,
};

const FOLDER: &str = "erasures";
/// What a program that knows this form understands.
const FORMAT: u32 = 1;
const MAX_BYTES: u64 = 64 << 10;
/// Records of a place.
const MOST: u32 = 10_000;

/// What is erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// Processes of the service of this name.
    Service(String),
    /// Processes of the pod with this uid or name.
    Pod(String),
    /// All runs of the host of this name.
    Host(String),
}

/// An erasure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    format: u32,
    #[serde(flatten)]
    pub(super) subject: Subject,
    /// Runs, and hours and days of tiers, that began earlier are erased. µs since 1970.
    before_us: i64,
    /// When somebody asked for it. µs since 1970.
    asked_us: i64,
}

impl Record {
    pub(super) const fn new(subject: Subject, before: UnixMicros, asked: UnixMicros) -> Self {
        Self { format: FORMAT, subject, before_us: before.0, asked_us: asked.0 }
    }

    pub(super) const fn before(&self) -> UnixMicros {
        UnixMicros(self.before_us)
    }

    /// Whether all that the other one erases is erased by this one.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.subject == other.subject && self.before_us >= other.before_us
    }
}

fn name(number: u32) -> String {
    format!("{number:04}.json")
}

/// All records of a place, the earliest first. What cannot be read is an error: it may be what is not to come back.
pub(super) fn all(place: &Arc<dyn Store>) -> Result<Vec<Record>> {
    let mut records = Vec::new();
    for number in 1..=MOST {
        match read(place, number)? {
            Some(record) => records.push(record),
            None => break,
        }
    }
    Ok(records)
}

fn read(place: &Arc<dyn Store>, number: u32) -> Result<Option<Record>> {
    let file = StoredFile::new(place, Path::new(FOLDER).join(name(number)));
    let bytes = match file.read_whole(MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.is_gone() => return Ok(None),
        Err(error) => return Err(error),
    };
    let damaged = |problem| DataSetError::Damaged { path: file.path(), problem };
    let record: Record = serde_json::from_slice(&bytes)
        .map_err(|error| damaged(format!("it does not say what is erased: {}", escape(&error.to_string()))))?;
    if record.format != FORMAT {
        let problem = format!("it has format {}, this joular-bpf reads {FORMAT}: use a newer one", record.format);
        return Err(damaged(problem));
    }
    Ok(Some(record))
}

/// Adds a record, and returns where it is.
pub(super) fn publish(place: &Arc<dyn Store>, record: &Record) -> Result<PathBuf> {
    let path = place.path().join(FOLDER);
    let failed = |source: std::io::Error| OutputError::Io { action: "writing a record in", path: path.clone(), source };
    let text = serde_json::to_vec(record).map_err(|error| failed(error.into()))?;
    for number in 1..=MOST {
        let name = name(number);
        if place.publish_new(Path::new(FOLDER), &name, &text)? == Published::Created {
            return Ok(path.join(name));
        }
    }
    Err(failed(std::io::Error::other(format!("there are {MOST} records already"))).into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::dataset::store::LocalDirectory;

    fn record(name: &str, before: i64) -> Record {
        Record::new(Subject::Service(name.to_owned()), UnixMicros(before), UnixMicros(7))
    }

    #[test]
    fn records_are_numbered_and_read_as_they_were_written() {
        let root = tempfile::tempdir().unwrap();
        let place: Arc<dyn Store> = Arc::new(LocalDirectory::new(root.path(), None));
        assert_eq!(all(&place).unwrap(), []);
        let records = [record("shop", 5), Record { subject: Subject::Pod("1a".to_owned()), ..record("", 6) }];
        for (number, record) in (1..).zip(&records) {
            let path = publish(&place, record).unwrap();
            assert_eq!(path, root.path().join(format!("erasures/000{number}.json")));
        }
        assert_eq!(all(&place).unwrap(), records);
        let text = fs::read_to_string(root.path().join("erasures/0001.json")).unwrap();
        assert_eq!(text, r#"{"format":1,"service":"shop","before_us":5,"asked_us":7}"#);
    }

    #[test]
    fn a_record_that_cannot_be_understood_is_an_error() {
        for (text, problem) in [
            ("", "does not say what is erased"),
            (r#"{"format":1,"cluster":"x","before_us":1,"asked_us":1}"#, "does not say what is erased"),
            (r#"{"format":2,"service":"x","before_us":1,"asked_us":1}"#, "use a newer one"),
        ] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join(FOLDER)).unwrap();
            fs::write(root.path().join("erasures/0001.json"), text).unwrap();
            let place: Arc<dyn Store> = Arc::new(LocalDirectory::new(root.path(), None));
            let error = all(&place).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("0001.json"), "{error}");
        }
    }

    #[test]
    fn a_later_end_covers_an_earlier_one_of_the_same_name() {
        assert!(record("shop", 5).covers(&record("shop", 5)) && record("shop", 6).covers(&record("shop", 5)));
        assert!(!record("shop", 4).covers(&record("shop", 5)) && !record("cart", 6).covers(&record("shop", 5)));
    }
}
