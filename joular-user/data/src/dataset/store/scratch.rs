//! Keeps a data set for a while, in a file without a name.
//!
//! All files of the data set are parts of that one file. It takes one descriptor however many they
//! are, and its room is free again when the last reader is gone, even if the program is killed.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::{fs::FallocateFlags, io::Errno};

use super::{Claim, ClaimKind, Object, Published, ReadAt, Store};
use crate::{
    dataset::error::{DataSetError, Result as ReadResult},
    output::{OutputError, Result},
};

/// A data set that nobody else sees, and that is gone when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    /// Where the file was made.
    folder: PathBuf,
    file: Arc<File>,
    /// Bytes that it has on disk, whatever it holds.
    reserved: u64,
    parts: Mutex<Parts>,
}

/// Where each file of the data set lies in the one file.
#[derive(Debug)]
struct Parts {
    places: BTreeMap<PathBuf, Place>,
    end: u64,
    /// Bytes that it may have.
    most: u64,
}

impl Default for Parts {
    fn default() -> Self {
        Self { places: BTreeMap::new(), end: 0, most: u64::MAX }
    }
}

#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    length: u64,
}

impl Scratch {
    /// # Errors
    /// If no file can be made in `folder`.
    pub fn within(folder: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(folder)
            .map_err(|source| OutputError::Scratch { folder: folder.to_owned(), source })?;
        Ok(Self { folder: folder.to_owned(), file: Arc::new(file), reserved: 0, parts: Mutex::default() })
    }

    /// The same, with so many bytes that nobody else can take. Some file systems have no such thing.
    ///
    /// # Errors
    /// As [`Self::within`], or if there is no room.
    pub fn reserving(folder: &Path, reserved: u64) -> Result<Self> {
        let scratch = Self::within(folder)?;
        if reserved == 0 {
            return Ok(scratch);
        }
        match rustix::fs::fallocate(&scratch.file, FallocateFlags::empty(), 0, reserved) {
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(Self { reserved, ..scratch }),
            Err(error) => Err(OutputError::Scratch { folder: folder.to_owned(), source: error.into() }),
        }
    }

    /// Forgets all that it holds. It takes no more than so many bytes then, or what is reserved if that is more.
    ///
    /// # Errors
    /// If its room cannot be given back.
    pub fn begin_again(&self, most: u64) -> Result<()> {
        let mut parts = self.parts();
        let shrunk = if parts.end > self.reserved { self.file.set_len(self.reserved) } else { Ok(()) };
        *parts = Parts { most: most.max(self.reserved), ..Parts::default() };
        shrunk.map_err(|source| OutputError::Scratch { folder: self.folder.clone(), source })
    }

    /// What a thread that panicked left is whole: a part is noted after it was written.
    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Scratch {
    fn path(&self) -> &Path {
        &self.folder
    }

    fn list(&self, table: &str, most: usize) -> ReadResult<Vec<PathBuf>> {
        let files: Vec<PathBuf> = self.parts().places.keys().filter(|path| path.starts_with(table)).cloned().collect();
        if files.len() > most {
            return Err(DataSetError::TooManyFiles { path: self.folder.join(table), most });
        }
        Ok(files)
    }

    fn open(&self, file: &Path) -> ReadResult<Object> {
        let place = self.parts().places.get(file).copied();
        let absent = || DataSetError::Io { path: self.folder.join(file), cause: io::ErrorKind::NotFound.into() };
        let Place { offset, length } = place.ok_or_else(absent)?;
        Ok(Object::new(Part { file: Arc::clone(&self.file), offset }, length))
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        let mut parts = self.parts();
        let place = Place { offset: parts.end, length: bytes.len() as u64 };
        let is_small = place.length <= parts.most.saturating_sub(place.offset);
        let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, "it holds more than it may");
        let written = if is_small { self.file.write_all_at(bytes, place.offset) } else { Err(too_large()) };
        written.map_err(|source| OutputError::Scratch { folder: self.folder.clone(), source })?;
        parts.end = parts.end.saturating_add(place.length);
        parts.places.insert(folder.join(name), place);
        Ok(())
    }

    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published> {
        if self.find(folder, name)?.is_some() {
            return Ok(Published::AlreadyThere);
        }
        self.publish(folder, name, bytes).map(|()| Published::Created)
    }

    /// Its room is not used again.
    fn remove(&self, file: &Path) -> Result<()> {
        self.parts().places.remove(file);
        Ok(())
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        let path = folder.join(name);
        Ok(self.parts().places.contains_key(&path).then_some(path))
    }

    /// Nobody else sees it, so there is nobody to keep away.
    fn claim(&self, _kind: ClaimKind) -> Result<Claim> {
        Ok(Claim::new(None::<()>))
    }
}

/// The file from an offset on.
struct Part {
    file: Arc<File>,
    offset: u64,
}

impl ReadAt for Part {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        ReadAt::read_at(&*self.file, buffer, self.offset.saturating_add(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(store: &Scratch, file: &str) -> Vec<u8> {
        store.open(Path::new(file)).unwrap().read_all().unwrap()
    }

    #[test]
    fn files_are_kept_apart_replaced_and_listed_by_table() {
        let folder = tempfile::tempdir().unwrap();
        let store = Scratch::within(folder.path()).unwrap();
        let publish = |table: &str, bytes: &[u8]| store.publish(Path::new(table), "x.parquet", bytes).unwrap();
        publish("threads/host=a", b"first");
        publish("runs/host=a", b"");
        publish("threads/host=b", b"other");
        publish("threads/host=a", b"the second");
        assert_eq!(content(&store, "threads/host=a/x.parquet"), b"the second");
        assert_eq!(content(&store, "threads/host=b/x.parquet"), b"other");
        assert_eq!(content(&store, "runs/host=a/x.parquet"), b"");
        assert_eq!(store.list("threads", 2).unwrap().len(), 2);
        assert!(matches!(store.list("threads", 1), Err(DataSetError::TooManyFiles { .. })));
        assert!(matches!(store.open(Path::new("threads/x.parquet")), Err(DataSetError::Io { .. })));
        assert!(store.find(Path::new("runs/host=a"), "x.parquet").unwrap().is_some());
        assert!(store.find(Path::new("runs/host=b"), "x.parquet").unwrap().is_none());
    }

    #[test]
    fn what_is_reserved_stays_and_the_rest_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let store = Scratch::reserving(folder.path(), 8_192).unwrap();
        let publish = |bytes: usize| store.publish(Path::new("t"), &format!("{bytes}.parquet"), &vec![1; bytes]);
        let size = || store.file.metadata().unwrap().len();
        assert_eq!(size(), 8_192);
        publish(20_000).unwrap();
        assert_eq!(size(), 20_000);
        store.begin_again(10_000).unwrap();
        assert_eq!((size(), store.list("t", 9).unwrap().len()), (8_192, 0));
        publish(6_000).unwrap();
        assert!(publish(4_001).unwrap_err().to_string().contains("more than it may"));
        publish(4_000).unwrap();
        store.begin_again(0).unwrap();
        publish(8_192).unwrap();
    }

    #[test]
    fn nothing_of_it_is_seen_and_a_folder_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = Scratch::within(folder.path()).unwrap();
        store.publish(Path::new("t"), "x.parquet", b"bytes").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let message = Scratch::within(&folder.path().join("absent")).unwrap_err().to_string();
        assert!(message.contains("No such file") && message.contains("TMPDIR"), "{message}");
    }
}
