//! A store for tests in which something goes wrong at a given moment.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    DataSetError,
    fixture::files,
    store::{Claim, ClaimKind, LocalDirectory, Object, Part, Published, Stamp, Store},
};
use crate::output::OutputError;

/// A directory that takes so many files and then none.
#[derive(Debug)]
pub(crate) struct FailingStore {
    directory: LocalDirectory,
    pub(crate) left: AtomicU64,
    /// Listed, and gone when it is opened.
    gone: Option<PathBuf>,
    /// Until a file is opened, those of this name are not there yet.
    late: Mutex<Option<String>>,
}

impl FailingStore {
    /// It takes `left` files.
    pub(crate) fn taking(left: u64, directory: &Path) -> Self {
        let directory = LocalDirectory::new(directory, None);
        Self { directory, left: AtomicU64::new(left), gone: None, late: Mutex::default() }
    }

    /// It lists a file that is not there.
    pub(crate) fn with_gone(file: &str, directory: &Path) -> Self {
        Self { gone: Some(file.into()), ..Self::taking(u64::MAX, directory) }
    }

    /// A run's last files come as soon as a file is opened: the run ended after the files were listed.
    pub(crate) fn with_late_files(directory: &Path) -> Self {
        let number = |(name, _): (String, _)| name.rsplit('-').next().unwrap().to_owned();
        let last = files(directory).into_iter().map(number).max();
        Self { late: Mutex::new(last), ..Self::taking(u64::MAX, directory) }
    }
}

impl Store for FailingStore {
    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn list(&self, table: &str, most: usize) -> Result<Vec<PathBuf>, DataSetError> {
        let mut listed = self.directory.list(table, most)?;
        if let Some(late) = &*self.late.lock().unwrap() {
            listed.retain(|file| table == "runs" || !file.to_string_lossy().ends_with(late));
        }
        listed.extend(self.gone.clone().filter(|file| file.starts_with(table)));
        Ok(listed)
    }

    fn list_bundles(&self, part: &Part, most: usize) -> Result<Vec<PathBuf>, DataSetError> {
        self.directory.list_bundles(part, most)
    }

    fn stamp(&self, file: &Path) -> Result<Stamp, DataSetError> {
        self.directory.stamp(file)
    }

    fn open(&self, file: &Path) -> Result<Object, DataSetError> {
        *self.late.lock().unwrap() = None;
        self.directory.open(file)
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), OutputError> {
        match self.publish_new(folder, name, bytes)? {
            Published::Created => Ok(()),
            Published::AlreadyThere => self.directory.publish(folder, name, bytes),
        }
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published, OutputError> {
        if self.left.load(Ordering::Relaxed) == 0 {
            let source = std::io::Error::other("the bucket is away");
            return Err(OutputError::Io { action: "writing", path: folder.join(name), source });
        }
        let published = self.directory.publish_new(folder, name, bytes)?;
        if published == Published::Created {
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(published)
    }

    fn remove(&self, file: &Path) -> Result<(), OutputError> {
        self.directory.remove(file)
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, OutputError> {
        self.directory.find(folder, name)
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim, OutputError> {
        self.directory.claim(kind)
    }
}
