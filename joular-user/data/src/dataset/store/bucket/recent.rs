//! Keeps the bundles that were read last: each is read for one table after the other, and costs one request.

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
    files: HashMap<PathBuf, Bytes>,
    /// The first goes first.
    order: VecDeque<PathBuf>,
    bytes: usize,
}

impl Recent {
    pub(super) fn get(&self, file: &Path) -> Option<Bytes> {
        self.kept().files.get(file).cloned()
    }

    pub(super) fn has(&self, file: &Path) -> bool {
        self.kept().files.contains_key(file)
    }

    pub(super) fn keep(&self, file: &Path, bytes: &Bytes) {
        let mut kept = self.kept();
        if bytes.len() > MOST_BYTES || kept.files.insert(file.to_owned(), bytes.clone()).is_some() {
            return;
        }
        kept.bytes = kept.bytes.saturating_add(bytes.len());
        kept.order.push_back(file.to_owned());
        while kept.bytes > MOST_BYTES
            && let Some(first) = kept.order.pop_front()
        {
            let length = kept.files.remove(&first).map_or(0, |bytes| bytes.len());
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
        for name in ["a", "b", "c", "a", "d"] {
            recent.keep(Path::new(name), &third);
        }
        assert_eq!(["a", "b", "c", "d"].map(|name| recent.has(Path::new(name))), [false, true, true, true]);
        assert_eq!(recent.get(Path::new("b")).unwrap().len(), third.len());
        recent.keep(Path::new("large"), &Bytes::from(vec![0; MOST_BYTES + 1]));
        assert!(!recent.has(Path::new("large")) && recent.has(Path::new("d")));
    }
}
