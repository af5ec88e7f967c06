//! Keeps small files that were read: pages of a server ask for the same ones every minute.
//!
//! They outlive the connections to a bucket, which keeps bundles on disk for as long as questions read their tables
//! (`near.rs`), also for commands, of which nothing is kept here.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use bytes::Bytes;

use super::lock;
use crate::dataset::store::Stamp;

/// Stores that are far away fetch files of this size as a whole.
pub(super) const SMALL_BYTES: u64 = 1 << 20;
/// What keeping a file takes beside its bytes, roughly.
const BESIDE_BYTES: u64 = 300;

/// Files by name, each as it is by its tag.
pub(super) struct SmallFiles {
    most_bytes: u64,
    kept: Mutex<Files>,
}

#[derive(Default)]
struct Files {
    bytes: u64,
    by_name: HashMap<PathBuf, (String, Bytes)>,
    /// In the order in which they were read.
    order: VecDeque<PathBuf>,
}

impl fmt::Debug for SmallFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmallFiles").field("most_bytes", &self.most_bytes).finish_non_exhaustive()
    }
}

impl SmallFiles {
    pub(super) fn new(most_bytes: u64) -> Self {
        Self { most_bytes, kept: Mutex::default() }
    }

    /// Whether such a file is kept: one without a tag may change unseen.
    pub(super) fn takes(&self, stamp: &Stamp) -> bool {
        stamp.tag.is_some() && stamp.size_bytes <= SMALL_BYTES && weight(stamp.size_bytes) <= self.most_bytes
    }

    pub(super) fn has(&self, file: &Path, stamp: Option<&Stamp>) -> bool {
        stamp.is_some_and(|stamp| self.get(file, stamp).is_some())
    }

    pub(super) fn get(&self, file: &Path, stamp: &Stamp) -> Option<Bytes> {
        let kept = lock(&self.kept);
        let (tag, bytes) = kept.by_name.get(file)?;
        (stamp.tag.as_ref() == Some(tag)).then(|| bytes.clone())
    }

    /// Keeps a file; those that were read first go. Returns its bytes.
    pub(super) fn put(&self, file: &Path, stamp: &Stamp, bytes: Vec<u8>) -> Bytes {
        let bytes = Bytes::from(bytes);
        let weight = weight(bytes.len() as u64);
        let Some(tag) = stamp.tag.clone().filter(|_| weight <= self.most_bytes) else { return bytes };
        let mut kept = lock(&self.kept);
        kept.remove(file);
        while kept.bytes.saturating_add(weight) > self.most_bytes {
            let Some(oldest) = kept.order.front().cloned() else { break };
            kept.remove(&oldest);
        }
        kept.bytes = kept.bytes.saturating_add(weight);
        kept.by_name.insert(file.to_owned(), (tag, bytes.clone()));
        kept.order.push_back(file.to_owned());
        bytes
    }
}

impl Files {
    fn remove(&mut self, file: &Path) {
        if let Some((_, bytes)) = self.by_name.remove(file) {
            self.bytes = self.bytes.saturating_sub(weight(bytes.len() as u64));
            self.order.retain(|one| one != file);
        }
    }
}

const fn weight(bytes: u64) -> u64 {
    bytes.saturating_add(BESIDE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(tag: &str, size_bytes: u64) -> Stamp {
        Stamp { size_bytes, tag: Some(tag.to_owned()) }
    }

    #[test]
    fn a_file_is_kept_by_its_tag_and_the_oldest_goes_when_there_is_no_room() {
        let small = SmallFiles::new(3 * weight(100));
        for name in ["a", "b", "c"] {
            small.put(Path::new(name), &stamp("1", 100), vec![0; 100]);
        }
        let has = |name: &str, tag: &str| small.has(Path::new(name), Some(&stamp(tag, 100)));
        assert!(has("a", "1") && !has("a", "2") && !small.has(Path::new("a"), None));
        // The same name again takes no more room.
        small.put(Path::new("b"), &stamp("2", 100), vec![1; 100]);
        assert!(has("a", "1") && has("b", "2") && !has("b", "1") && has("c", "1"));
        small.put(Path::new("d"), &stamp("1", 100), vec![0; 100]);
        assert_eq!(["a", "b", "c", "d"].map(|name| has(name, "1") || has(name, "2")), [false, true, true, true]);
        assert_eq!(small.kept.lock().unwrap().bytes, 3 * weight(100));
    }

    #[test]
    fn what_is_large_or_has_no_tag_is_not_kept() {
        let small = SmallFiles::new(1 << 30);
        assert!(small.takes(&stamp("1", SMALL_BYTES)) && !small.takes(&stamp("1", SMALL_BYTES + 1)));
        assert!(!small.takes(&Stamp { size_bytes: 1, tag: None }));
        assert!(!SmallFiles::new(0).takes(&stamp("1", 0)));
    }
}
