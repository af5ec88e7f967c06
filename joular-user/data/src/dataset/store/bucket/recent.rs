//! Keeps the bundles that were read last: each is read for one table after the other, and costs one request.
//!
//! This is for all commands, as long as one reads. What a server keeps from one question to the next is
//! [`super::super::kept`]'s, bounded by its own flag; it does not know the tables of a file, and is not there for commands.

use std::{
    collections::{HashMap, VecDeque},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

/// Bytes that are kept at most.
const MOST_BYTES: usize = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct Recent(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Each by what the bucket calls this content of it.
    files: HashMap<PathBuf, (Option<String>, Bytes)>,
    /// The first goes first.
    order: VecDeque<PathBuf>,
    bytes: usize,
}

impl Recent {
    pub(super) fn get(&self, file: &Path, tag: Option<&str>) -> Option<Bytes> {
        let kept = self.kept();
        kept.files.get(file).filter(|(known, _)| known.as_deref() == tag).map(|(_, bytes)| bytes.clone())
    }

    pub(super) fn has(&self, file: &Path, tag: Option<&str>) -> bool {
        self.get(file, tag).is_some()
    }

    pub(super) fn keep(&self, file: &Path, tag: Option<&str>, bytes: &Bytes) {
        if bytes.len() > MOST_BYTES || self.has(file, tag) {
            return;
        }
        let mut kept = self.kept();
        if let Some((_, before)) = kept.files.insert(file.to_owned(), (tag.map(ToOwned::to_owned), bytes.clone())) {
            kept.bytes = kept.bytes.saturating_sub(before.len());
            kept.order.retain(|one| one != file);
        }
        kept.bytes = kept.bytes.saturating_add(bytes.len());
        kept.order.push_back(file.to_owned());
        while kept.bytes > MOST_BYTES
            && let Some(first) = kept.order.pop_front()
        {
            let length = kept.files.remove(&first).map_or(0, |(_, bytes)| bytes.len());
            kept.bytes = kept.bytes.saturating_sub(length);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_first_goes_first() {
        let recent = Recent::default();
        let third = Bytes::from(vec![0; MOST_BYTES / 3]);
        let keep = |name: &str, tag: &str, bytes: &Bytes| recent.keep(Path::new(name), Some(tag), bytes);
        let has = |name: &str, tag: &str| recent.has(Path::new(name), Some(tag));
        for name in ["a", "b", "c", "d"] {
            keep(name, "1", &third);
        }
        assert_eq!(["a", "b", "c", "d"].map(|name| has(name, "1")), [false, true, true, true]);
        assert_eq!(recent.get(Path::new("b"), Some("1")).unwrap().len(), third.len());
        // Another content of it takes no more room than its own.
        keep("b", "2", &third);
        assert!(has("b", "2") && !has("b", "1") && !recent.has(Path::new("b"), None) && has("c", "1") && has("d", "1"));
        keep("large", "1", &Bytes::from(vec![0; MOST_BYTES + 1]));
        assert!(!has("large", "1") && has("d", "1"));
    }
}
