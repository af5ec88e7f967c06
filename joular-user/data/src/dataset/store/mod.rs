//! Says where a data set's files lie.
//!
//! A [`Store`] lists files, opens them, publishes whole ones and gives out claims. All that reads
//! or writes a data set goes through it, whether it lies in a directory ([`LocalDirectory`]) or in a bucket. Readers
//! get the data sets of an experiment as one.

#[cfg(feature = "object-store")]
mod bucket;
mod create;
pub mod directory;
mod held;
mod kept;
mod lifecycle;
pub mod lock;
mod near;
mod object;
mod output_directory;
mod part;
mod place;
mod ring;
mod room;
mod scratch;
mod shared;
mod trial;
mod united;

use std::{
    any::Any,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use self::near::{Content, TableEnd, TableSchema};
pub use self::{
    create::create_directories,
    directory::LocalDirectory,
    kept::{Keeper, keep},
    lifecycle::lifecycle,
    near::Near,
    object::{Object, ReadAt},
    output_directory::OutputDirectory,
    part::{Hour, Part},
    place::PlaceError,
    ring::{Limits, Ring},
    room::{KeepFree, Room},
    scratch::Scratch,
    shared::{SHARE_MARK, SharedPlace},
    trial::{Trial, try_place},
    united::{EXPERIMENT, refuse_experiment},
};
use self::{
    place::{BucketUrl, Place},
    united::United,
};
use super::error::{DataSetError, Result};
use crate::output::OutputError;

/// Folder beside the tables in which [`crate::shipping`] notes what has arrived elsewhere.
pub(crate) const SHIPPED: &str = ".shipped";

/// A place that holds the files of a data set. Files are named by their path within
/// it: `TABLE/date=DATE/host=HOST/NAME.parquet` (see [`super::layout`]), or as [`super::bundle`] says.
pub trait Store: fmt::Debug + Send + Sync {
    /// The name for messages: a directory's path.
    fn path(&self) -> &Path;

    /// The Parquet files of a table, by their paths within the store, in no order; none
    /// if there is no such table.
    ///
    /// # Errors
    /// If the store cannot be listed, or has more than `most` files.
    fn list(&self, table: &str, most: usize) -> Result<Vec<PathBuf>>;

    /// The same of several tables, as far as they may be in a part of the data set. It may list others, too.
    ///
    /// # Errors
    /// As [`Self::list`]; `most` is of one table, or of all.
    fn list_part(&self, tables: &[&str], _part: &Part, most: usize) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for table in tables {
            files.extend(self.list(table, most)?);
        }
        Ok(files)
    }

    /// The files that have a whole run each ([`super::bundle`]), as far as they may be in a part of the data set. Only places
    /// that runs are shipped to have some.
    ///
    /// # Errors
    /// As [`Self::list`].
    fn list_bundles(&self, _part: &Part, _most: usize) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// Says which files will be opened next, in this order: a store that is far away may fetch them meanwhile.
    fn expect(&self, _files: &mut dyn Iterator<Item = &Path>) {}

    /// Where the bundle at this path is kept near, of a store that is far away.
    fn near(&self, _bundle: &Path) -> Option<Arc<Near>> {
        None
    }

    /// The folder of the data set that a file belongs to, and the file's path within that. There is a folder only
    /// where this unites several data sets.
    fn data_set_of<'a>(&self, file: &'a Path) -> (Option<&'a Path>, &'a Path) {
        (None, file)
    }

    /// Opens a file to be read at random. It follows no link out of the store and waits for
    /// nothing.
    ///
    /// # Errors
    /// If it is not there, is not a regular file, or may not be read.
    fn open(&self, file: &Path) -> Result<Object>;

    /// What tells one content of a file from another, as the last listing has it.
    ///
    /// # Errors
    /// As [`Self::open`].
    fn stamp(&self, file: &Path) -> Result<Stamp> {
        Ok(Stamp { size_bytes: self.open(file)?.size_bytes(), tag: None })
    }

    /// Makes `bytes` the content of `name` within `folder`, whole and at once: a reader sees all of
    /// it or nothing. It replaces what was there before.
    ///
    /// # Errors
    /// If it cannot be written; nothing of it is left behind then.
    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), OutputError>;

    /// Makes `bytes` the content of `name` within `folder`, unless that is there already: it stays as it is
    /// then. So what is published again after an interruption is there once.
    ///
    /// # Errors
    /// If it cannot be written; nothing of it is left behind then.
    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published, OutputError>;

    /// Makes `bytes` the content of `name` within `folder`, if it still is what `before` says, or still is not there. So whoever
    /// looked at it long ago does not undo what another one has written since. A store that cannot do both at once looks just
    /// before it writes.
    ///
    /// # Errors
    /// If it cannot be looked at or written.
    fn publish_over(&self, folder: &Path, name: &str, bytes: &[u8], before: Option<&Stamp>) -> Result<Published> {
        let file = folder.join(name);
        match before {
            None => Ok(self.publish_new(folder, name, bytes)?),
            Some(_) if self.stamp_if_any(&file)?.as_ref() == before => {
                self.publish(folder, name, bytes)?;
                Ok(Published::Created)
            }
            Some(_) => Ok(Published::AlreadyThere),
        }
    }

    /// The stamp of a file that may not be there.
    ///
    /// # Errors
    /// As [`Self::stamp`].
    fn stamp_if_any(&self, file: &Path) -> Result<Option<Stamp>> {
        match self.stamp(file) {
            Err(error) if error.is_gone() => Ok(None),
            stamp => stamp.map(Some),
        }
    }

    /// Removes a file, or does nothing if there is none.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, file: &Path) -> Result<(), OutputError>;

    /// Removes files, in no order; those that are not there are no error.
    ///
    /// # Errors
    /// If one cannot be removed. Others may be removed then, or not.
    fn remove_all(&self, files: &[PathBuf]) -> Result<(), OutputError> {
        files.iter().try_for_each(|file| self.remove(file))
    }

    /// Where `name` within `folder` is, if there is anything.
    ///
    /// # Errors
    /// If that cannot be told.
    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>, OutputError>;

    /// What its file system has; `None` if it has no bounds, or does not say.
    fn room(&self) -> Option<Room> {
        None
    }

    /// Keeps others from the data set for as long as the claim is held.
    ///
    /// # Errors
    /// If another holds a claim that excludes this one.
    fn claim(&self, kind: ClaimKind) -> Result<Claim, OutputError>;
}

/// What tells one content of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub size_bytes: u64,
    /// What a bucket calls the content (`ETag`); of a directory, which file it is and when it was written.
    pub tag: Option<String>,
}

/// The data set in a directory or a bucket, to be read; of an experiment's directory, all its data sets as one.
///
/// # Errors
/// If there is no such directory, `root` is not a place, or an experiment's file cannot be read. A bucket is not asked
/// yet.
pub fn open(root: &Path) -> Result<Arc<dyn Store>> {
    let failed = |cause| DataSetError::Open { path: root.into(), cause };
    match Place::of(root)? {
        Place::Directory(root) => {
            fs::read_dir(&root).map_err(failed)?;
            let directory = LocalDirectory::new(&root, None);
            if let Some(united) = United::of(&directory)? {
                return Ok(Arc::new(united));
            }
            Ok(Arc::new(directory))
        }
        Place::Bucket(url) => {
            kept::kept(root, || bucket(root, &url).map_err(|cause| DataSetError::Bucket { path: root.into(), cause }))
        }
    }
}

/// Whether a data set lies in a bucket.
///
/// # Errors
/// If it is not a place.
pub fn is_bucket(root: &Path) -> Result<bool> {
    Ok(matches!(Place::of(root)?, Place::Bucket(_)))
}

/// For what needs a directory, to exchange it or to know whether somebody writes to it.
///
/// # Errors
/// If it is a bucket, or no place at all.
pub fn refuse_bucket(action: &'static str, root: &Path) -> Result<()> {
    match Place::of(root)? {
        Place::Directory(_) => Ok(()),
        Place::Bucket(_) => {
            let advice = "copy it to a directory first";
            Err(DataSetError::NotLocal { action, path: root.into(), advice })
        }
    }
}

#[cfg(feature = "object-store")]
fn bucket(root: &Path, url: &BucketUrl) -> io::Result<Arc<dyn Store>> {
    Ok(Arc::new(bucket::Bucket::new(root, url)?))
}

#[cfg(not(feature = "object-store"))]
fn bucket(_root: &Path, _url: &BucketUrl) -> io::Result<Arc<dyn Store>> {
    Err(io::Error::other("this joular-bpf was built without the feature object-store"))
}

/// What became of a file that was to be new, or to replace a certain one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    Created,
    /// Another one is there, and stays.
    AlreadyThere,
}

/// What a claim keeps others from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimKind {
    /// From reading under a lock, and from writing: one run at a time writes.
    Write,
    /// From writing.
    Read,
}

/// A claim. It ends when this is dropped, or when the process ends, however it ends.
pub struct Claim {
    _held: Option<Box<dyn Any + Send + Sync>>,
}

impl Claim {
    /// Takes what ends the claim when dropped; `None` if there is nothing to claim, as in a copy
    /// that nobody ever locked.
    pub fn new<T: Send + Sync + 'static>(held: Option<T>) -> Self {
        Self { _held: held.map(|held| Box::new(held) as Box<dyn Any + Send + Sync>) }
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").finish_non_exhaustive()
    }
}

/// A file of a store, or a table in a file that has all tables of a run.
#[derive(Clone, Debug)]
pub struct StoredFile {
    store: Arc<dyn Store>,
    within: PathBuf,
    /// Of a file that has all tables: the one that is read.
    table: Option<&'static str>,
    /// Of the same, in a store that is far away.
    near: Option<Arc<Near>>,
}

impl StoredFile {
    pub fn new(store: &Arc<dyn Store>, within: impl Into<PathBuf>) -> Self {
        Self { store: Arc::clone(store), within: within.into(), table: None, near: None }
    }

    /// A table of a bundle ([`super::bundle`]).
    pub(crate) fn in_bundle(&self, table: &'static str) -> Self {
        Self { table: Some(table), ..self.clone() }
    }

    /// A bundle. Whoever reads a table of it finds it near, if another one has been read.
    pub(crate) fn bundle(store: &Arc<dyn Store>, within: &Path) -> Self {
        Self { near: store.near(within), ..Self::new(store, within) }
    }

    pub(crate) fn near(&self) -> Option<&Near> {
        self.near.as_deref()
    }

    /// The table that is read of a bundle; `None`: the file is of one table.
    pub(crate) const fn table(&self) -> Option<&'static str> {
        self.table
    }

    /// Says that these files will be opened next: see [`Store::expect`].
    pub(crate) fn expect<'a>(files: impl Iterator<Item = &'a Self>) {
        let is_near = |file: &Self| file.near().is_some_and(Near::is_kept);
        let mut of_stores: Vec<(&Arc<dyn Store>, Vec<&Path>)> = Vec::new();
        for file in files.filter(|file| !is_near(file)) {
            match of_stores.iter_mut().find(|(store, _)| Arc::ptr_eq(store, &file.store)) {
                Some((_, within)) => within.push(&file.within),
                None => of_stores.push((&file.store, vec![&file.within])),
            }
        }
        for (store, within) in of_stores {
            store.expect(&mut within.into_iter());
        }
    }

    /// The name for messages.
    pub fn path(&self) -> PathBuf {
        self.store.path().join(&self.within)
    }

    /// The path within the store.
    pub(crate) fn within(&self) -> &Path {
        &self.within
    }

    /// The folder of its data set, if the store unites several.
    pub fn data_set(&self) -> Option<&Path> {
        self.store.data_set_of(&self.within).0
    }

    /// Its folder within the store, and its name there.
    pub fn place(&self) -> Option<(&Path, &str)> {
        Some((self.within.parent()?, self.within.file_name()?.to_str()?))
    }

    /// # Errors
    /// See [`Store::open`].
    pub fn open(&self) -> Result<Object> {
        self.store.open(&self.within)
    }

    /// # Errors
    /// See [`Store::stamp`].
    pub(crate) fn stamp(&self) -> Result<Stamp> {
        self.store.stamp(&self.within)
    }

    /// # Errors
    /// If the file cannot be opened.
    pub fn size_bytes(&self) -> Result<u64> {
        Ok(self.open()?.size_bytes())
    }

    /// The whole file; of a bundle's table that is the bundle.
    ///
    /// # Errors
    /// If it is larger than `most` bytes, or cannot be read.
    pub fn read_whole(&self, most: u64) -> Result<Vec<u8>> {
        let object = self.open()?;
        if object.size_bytes() > most {
            let problem = format!("it is larger than {most} bytes: no run writes such a file");
            return Err(DataSetError::Damaged { path: self.path(), problem });
        }
        object.read_all().map_err(|cause| DataSetError::Io { path: self.path(), cause })
    }
}
