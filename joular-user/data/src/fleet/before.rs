//! Keeps one who was stopped for long from undoing what another one has summed since: a file is written only in place of what
//! was there when the unit was claimed.
//!
//! Buckets compare and write at once. Directories, and buckets that cannot do that, are looked at just before: there, who is
//! stopped between the look and the write still undoes what came in that moment.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{note, unit::Unit};
use crate::dataset::{
    error::Result,
    read::files::MAX_FILES,
    store::{Part, Published, Stamp, Store, StoredFile},
};

/// What a unit had when it was claimed.
pub(super) struct Before<'a> {
    store: &'a Arc<dyn Store>,
    part: Part,
    note: PathBuf,
    /// Its files and its note.
    known: BTreeMap<PathBuf, Stamp>,
}

impl<'a> Before<'a> {
    pub(super) fn look(store: &'a Arc<dyn Store>, unit: Unit) -> Result<Self> {
        let (part, note) = (unit.own_part(), note::path(unit));
        let mut files = store.list_bundles(&part, MAX_FILES)?;
        files.push(note.clone());
        let mut known = BTreeMap::new();
        for file in files {
            if let Some(stamp) = store.stamp_if_any(&file)? {
                known.insert(file, stamp);
            }
        }
        Ok(Self { store, part, note, known })
    }

    pub(super) fn root(&self) -> &Path {
        self.store.path()
    }

    /// Whether the note is as it was: then nobody else has finished.
    pub(super) fn has_same_note(&self) -> Result<bool> {
        Ok(self.store.stamp_if_any(&self.note)?.as_ref() == self.known.get(&self.note))
    }

    /// Writes a file, unless another one has been written there since. Returns whether the file has this content now.
    pub(super) fn replace(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<bool> {
        let path = folder.join(name);
        if self.store.publish_over(folder, name, bytes, self.known.get(&path))? == Published::Created {
            return Ok(true);
        }
        // An answer was lost, or who sums the same has written the same. Listings say how it is now.
        self.store.list_bundles(&self.part, MAX_FILES)?;
        match StoredFile::new(self.store, path).read_whole(bytes.len() as u64) {
            Ok(found) => Ok(found == bytes),
            Err(error) if error.file().is_some() => Ok(false),
            Err(error) => Err(error),
        }
    }
}
