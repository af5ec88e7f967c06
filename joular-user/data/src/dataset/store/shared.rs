//! Opens a place that several hosts publish new files to: a bucket, or a directory, such as a share that is mounted.
//!
//! A directory has to prove itself by a file: where a share is not mounted, files would go to the host's own disk, and
//! the share would hide them later.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{LocalDirectory, Store, bucket, place::Place};
use crate::output::{OutputError, Result};

/// The file in a directory that hosts ship to.
pub const SHARE_MARK: &str = ".joular-bpf-share";

/// A place that is opened each time something is brought there.
#[derive(Clone, Debug)]
pub enum SharedPlace {
    /// Files will belong to this user and group.
    Directory {
        root: PathBuf,
        owner: Option<(u32, u32)>,
    },
    Store(Arc<dyn Store>),
}

impl SharedPlace {
    /// Neither directory nor bucket are asked yet.
    ///
    /// # Errors
    /// If it is not a place, or the environment of a bucket is wrong.
    pub fn of(place: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        match Place::of(place)? {
            Place::Directory(root) => Ok(Self::Directory { root, owner }),
            Place::Bucket(url) => {
                let opened = bucket(place, &url);
                let failed = |source| OutputError::Bucket { action: "opening", path: place.into(), source };
                opened.map(Self::Store).map_err(failed)
            }
        }
    }

    /// The name for messages.
    pub fn path(&self) -> &Path {
        match self {
            Self::Directory { root, .. } => root,
            Self::Store(store) => store.path(),
        }
    }

    /// Whether hosts ship to it: a bucket, or a directory that says so.
    pub fn is_shared(&self) -> bool {
        match self {
            Self::Directory { root, .. } => root.join(SHARE_MARK).exists(),
            Self::Store(_) => true,
        }
    }

    /// Opens it. What is a share now stays the one that is written to, whatever is mounted meanwhile.
    ///
    /// # Errors
    /// If a directory is not there, or does not prove itself.
    pub fn open(&self) -> Result<Arc<dyn Store>> {
        let (root, owner) = match self {
            Self::Directory { root, owner } => (root, *owner),
            Self::Store(store) => return Ok(Arc::clone(store)),
        };
        let directory = LocalDirectory::new(root, owner).held()?;
        if directory.has(SHARE_MARK)? {
            Ok(Arc::new(directory))
        } else {
            Err(OutputError::NoShare { path: root.clone(), mark: root.join(SHARE_MARK) })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::dataset::store::Published;

    #[test]
    fn a_directory_proves_itself_by_a_file_and_is_never_made() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("share");
        let place = SharedPlace::of(&root, None).unwrap();
        let message = |place: &SharedPlace| place.open().unwrap_err().to_string();
        assert!(message(&place).contains("No such file") && !root.exists());
        fs::create_dir(&root).unwrap();
        assert!(message(&place).contains(&format!("touch {}", root.join(SHARE_MARK).display())));
        fs::write(root.join(SHARE_MARK), "").unwrap();
        place.open().unwrap();
    }

    #[test]
    fn what_was_opened_is_written_to_whatever_takes_its_place() {
        let parent = tempfile::tempdir().unwrap();
        let (root, moved) = (parent.path().join("share"), parent.path().join("moved"));
        fs::create_dir(&root).unwrap();
        fs::write(root.join(SHARE_MARK), "").unwrap();
        let store = SharedPlace::of(&root, None).unwrap().open().unwrap();
        fs::rename(&root, &moved).unwrap();
        fs::create_dir(&root).unwrap();
        let published = store.publish_new(Path::new("runs/date=2026-03-01/host=a"), "a.parquet", b"1").unwrap();
        assert_eq!(published, Published::Created);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
        assert!(moved.join("runs/date=2026-03-01/host=a/a.parquet").exists());
    }
}
