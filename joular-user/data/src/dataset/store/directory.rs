//! Keeps a data set in a directory, and makes a file appear in it whole.
//!
//! A file is written beside the tables, in `.partial`, brought to disk, and only then moved to its
//! place. So a reader never sees a part of a file, and a crash leaves at most a file in `.partial`,
//! which the next run removes. `.partial` is one folder for all tables because some readers refuse
//! a table folder that holds anything but Parquet files. Data sets of several hosts are merged by
//! copying: names never collide.

use std::{
    ffi::OsStr,
    fs::{self, OpenOptions},
    hash::{BuildHasher as _, RandomState},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::fs::OFlags;

use super::{
    Claim, ClaimKind, Object, Part, Published, Room, Stamp, Store,
    create::no_links,
    held::{HeldDirectory, Obstacle},
    lock::{self, LOCK},
};
use crate::{
    dataset::{
        bundle::BUNDLES,
        error::{DataSetError, Result as ReadResult},
    },
    output::{OutputError, Result},
};

pub(super) const PARTIAL: &str = ".partial";

/// A directory that holds a data set, or will hold one.
#[derive(Clone, Debug)]
pub struct LocalDirectory {
    root: PathBuf,
    owner: Option<(u32, u32)>,
    held: Option<Arc<HeldDirectory>>,
}

/// Whether a name in a folder may be wanted.
type Keeps<'a> = &'a dyn Fn(&Path, &str) -> bool;

impl LocalDirectory {
    /// Whatever is created in it will belong to `owner` (user, group).
    pub fn new(root: &Path, owner: Option<(u32, u32)>) -> Self {
        Self { root: root.to_owned(), owner, held: None }
    }

    /// The same, held open: what is written goes into this directory even if a link takes its place.
    pub(super) fn held(self) -> Result<Self> {
        let held = self.root()?;
        Ok(Self { held: Some(held), ..self })
    }

    /// Whether it holds a file of this name.
    pub(super) fn has(&self, name: &str) -> Result<bool> {
        self.root()?.has(name).map_err(|source| OutputError::from_io("looking for", self.root.join(name), source))
    }

    fn root(&self) -> Result<Arc<HeldDirectory>> {
        let open = || HeldDirectory::open(&self.root).map(Arc::new);
        let opened = self.held.clone().map_or_else(open, Ok);
        opened.map_err(|source| OutputError::from_io("opening", &self.root, source))
    }

    /// Where files are written before they are moved to their places.
    pub(super) fn partial(&self) -> Result<HeldDirectory> {
        self.folder(Path::new(PARTIAL))
    }

    /// A folder below the root, or the root itself, made if it is not there. Nothing leads out of the directory.
    fn folder(&self, below: &Path) -> Result<HeldDirectory> {
        let (root, mut path) = (self.root()?, self.root.clone());
        let mut folder: Option<HeldDirectory> = None;
        for part in below.components() {
            let Component::Normal(name) = part else { continue };
            path.push(name);
            let (parent, name) = (folder.as_ref().unwrap_or(&root), Path::new(name));
            let next = parent.folder(name, self.owner).map_err(|source| match parent.obstacle(name) {
                Some(Obstacle::Link) => OutputError::Link { action: "creating", path: path.clone() },
                Some(Obstacle::File) => OutputError::NotADirectory { action: "creating", path: path.clone() },
                None => OutputError::from_io("creating", path.clone(), source),
            })?;
            folder = Some(next);
        }
        match folder {
            Some(folder) => Ok(folder),
            None => root.again().map_err(|source| OutputError::from_io("opening", path, source)),
        }
    }

    /// The files of a table's hosts that may be wanted, of all dates: a listing costs little here, and a run of several days
    /// is read as a whole.
    fn listed(&self, table: &str, part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        let mut files = Vec::new();
        let table_folder = self.root.join(table);
        for (date, date_path) in entries(&table_folder)? {
            for (host, host_path) in entries(&date_path)?.into_iter().filter(|(host, _)| part.has_host(host)) {
                for (name, _) in entries(&host_path)? {
                    if files.len() >= most {
                        return Err(DataSetError::TooManyFiles { path: table_folder, most });
                    }
                    if name.ends_with(".parquet") {
                        files.push([table, &date, &host, &name].iter().collect());
                    }
                }
            }
        }
        Ok(files)
    }

    /// The bundles that may be wanted.
    fn listed_bundles(&self, part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        let has_hour = |above: &Path, hour: &str| {
            above.file_name().and_then(OsStr::to_str).is_some_and(|date| part.has_hour(date, hour))
        };
        let keeps: [Keeps<'_>; 4] =
            [&|_, date| part.has_date_of_bundles(date), &has_hour, &|_, _group| true, &|_, host| part.has_host(host)];
        let mut folders = vec![PathBuf::from(BUNDLES)];
        for keep in keeps {
            let mut below = Vec::new();
            for folder in folders {
                let found = entries(&self.root.join(&folder))?.into_iter().filter(|(name, _)| keep(&folder, name));
                below.extend(found.map(|(name, _)| folder.join(name)));
            }
            folders = below;
        }
        let mut files = Vec::new();
        for folder in folders {
            let found = entries(&self.root.join(&folder))?.into_iter().map(|(name, _)| folder.join(name));
            files.extend(found.filter(|file| file.extension().is_some_and(|extension| extension == "parquet")));
            if files.len() > most {
                return Err(DataSetError::TooManyFiles { path: self.root.join(BUNDLES), most });
            }
        }
        Ok(files)
    }

    /// Writes a file as `partial_name`, and moves it whole to where it belongs.
    fn place(
        &self,
        folder: &Path,
        partial_name: &str,
        name: &str,
        bytes: &[u8],
        move_to: impl FnOnce(&HeldDirectory, &str, &HeldDirectory, &str) -> io::Result<Published>,
    ) -> Result<Published> {
        let (place, partial) = (self.folder(folder)?, self.partial()?);
        let moved = self.write(&partial, partial_name, bytes).and_then(|()| {
            let moved = move_to(&partial, partial_name, &place, name);
            if !matches!(moved, Ok(Published::Created)) {
                // It may have been moved; the error that counts is the first one.
                let _ = partial.remove(partial_name);
            }
            moved
        });
        moved.map_err(|source| OutputError::from_io("writing", self.root.join(folder).join(name), source))
    }

    /// Writes a file into `.partial`; nothing of it is left if that fails.
    pub(super) fn write(&self, partial: &HeldDirectory, name: &str, bytes: &[u8]) -> io::Result<()> {
        partial.write(name, bytes, self.owner).inspect_err(|_| {
            // It may not exist; the error that counts is the first one.
            let _ = partial.remove(name);
        })
    }
}

impl Store for LocalDirectory {
    fn path(&self) -> &Path {
        &self.root
    }

    fn list(&self, table: &str, most: usize) -> ReadResult<Vec<PathBuf>> {
        self.listed(table, &Part::default(), most)
    }

    fn list_part(&self, tables: &[&str], part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        let listed = tables.iter().map(|table| self.listed(table, part, most));
        Ok(listed.collect::<ReadResult<Vec<_>>>()?.concat())
    }

    fn list_bundles(&self, part: &Part, most: usize) -> ReadResult<Vec<PathBuf>> {
        self.listed_bundles(part, most)
    }

    fn open(&self, file: &Path) -> ReadResult<Object> {
        let path = self.root.join(file);
        let failed = |cause| DataSetError::Io { path: path.clone(), cause };
        let flags = no_links(OFlags::NONBLOCK);
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path).map_err(failed)?;
        let metadata = opened.metadata().map_err(failed)?;
        if metadata.is_file() { Ok(Object::new(opened, metadata.len())) } else { Err(DataSetError::NotAFile { path }) }
    }

    /// A file that replaces another one is a new one.
    fn stamp(&self, file: &Path) -> ReadResult<Stamp> {
        let path = self.root.join(file);
        let metadata = fs::symlink_metadata(&path).map_err(|cause| DataSetError::Io { path: path.clone(), cause })?;
        if !metadata.is_file() {
            return Err(DataSetError::NotAFile { path });
        }
        let tag = format!("{:x}-{:x}-{:x}", metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
        Ok(Stamp { size_bytes: metadata.len(), tag: Some(tag) })
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        self.place(folder, name, name, bytes, HeldDirectory::move_to).map(drop)
    }

    /// Others may write the same file at the same time, on other hosts: so each has its own name until it is whole.
    fn publish_new(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<Published> {
        // Most often nobody does. Writing what is there costs a disk.
        if self.find(folder, name)?.is_some() {
            return Ok(Published::AlreadyThere);
        }
        let own = format!("{:016x}-{name}", RandomState::new().hash_one(name));
        self.place(folder, &own, name, bytes, HeldDirectory::move_new_to)
    }

    /// Folders that are empty then go as well, so that nothing stays of a date.
    fn remove(&self, file: &Path) -> Result<()> {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
            return Ok(());
        };
        match self.folder(folder)?.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(OutputError::from_io("removing", self.root.join(file), error));
            }
            _ => {}
        }
        for folder in folder.ancestors() {
            let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { break };
            let parent = if parent.as_os_str().is_empty() { None } else { Some(self.folder(parent)?) };
            // It stays as long as anything is in it.
            if parent.is_none_or(|parent| parent.remove_folder(Path::new(name)).is_err()) {
                break;
            }
        }
        Ok(())
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        let path = self.root.join(folder).join(name);
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(Some(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(OutputError::from_io("looking for", path, source)),
        }
    }

    fn room(&self) -> Option<Room> {
        self.root().ok()?.room().ok()
    }

    fn claim(&self, kind: ClaimKind) -> Result<Claim> {
        let path = self.root.join(LOCK);
        match kind {
            ClaimKind::Write => Ok(Claim::new(Some(lock::exclusive(&path, self.owner)?))),
            ClaimKind::Read => Ok(Claim::new(lock::shared(&path)?)),
        }
    }
}

/// What a folder holds, hidden entries apart; nothing if there is no folder.
fn entries(folder: &Path) -> ReadResult<Vec<(String, PathBuf)>> {
    let failed = |cause| DataSetError::Io { path: folder.into(), cause };
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(cause) => return Err(failed(cause)),
    };
    let mut found = Vec::new();
    for entry in listed {
        let entry = entry.map_err(failed)?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}
