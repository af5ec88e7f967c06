//! A data set in a directory: how a file appears in it.
//!
//! A file is written whole beside the tables, in `.partial`, brought to disk,
//! and only then moved to its place: a reader never sees a part of a file, and
//! a crash leaves nothing but a leftover there, which the next run removes.
//! `.partial` is one folder for all tables because some readers refuse a table
//! folder that holds anything but Parquet files. Data sets of several hosts are
//! merged by copying: names never collide.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Component, Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{
    Claim, ClaimKind, Object, Store,
    lock::{self, LOCK},
};
use crate::{
    dataset::error::{DataSetError, Result as ReadResult},
    output::{OutputError, Result},
};

pub(super) const PARTIAL: &str = ".partial";
const DIRECTORY_MODE: u32 = 0o750;
const FILE_MODE: u32 = 0o640;

/// A directory with a data set in it, or one to be.
#[derive(Clone, Debug)]
pub struct LocalDirectory {
    root: PathBuf,
    owner: Option<(u32, u32)>,
}

impl LocalDirectory {
    /// Whatever is created in it will belong to `owner` (user, group).
    pub fn new(root: &Path, owner: Option<(u32, u32)>) -> Self {
        Self { root: root.to_owned(), owner }
    }

    pub(super) fn partial(&self) -> PathBuf {
        self.root.join(PARTIAL)
    }

    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = create_file(OpenOptions::new().write(true).create_new(true), path, self.owner)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Creates the folders between the root and `folder`, never through a link.
    fn create_below(&self, folder: &Path) -> Result<()> {
        let mut path = self.root.clone();
        for part in folder.strip_prefix(&self.root).unwrap_or(folder).components() {
            if let Component::Normal(part) = part {
                path.push(part);
                create_directories(&path, self.owner, Links::Refuse)?;
            }
        }
        Ok(())
    }
}

impl Store for LocalDirectory {
    fn path(&self) -> &Path {
        &self.root
    }

    fn list(&self, table: &str, most: usize) -> ReadResult<Vec<PathBuf>> {
        let mut files = Vec::new();
        let table_folder = self.root.join(table);
        for (date, date_path) in entries(&table_folder)? {
            for (host, host_path) in entries(&date_path)? {
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

    fn open(&self, file: &Path) -> ReadResult<Object> {
        let path = self.root.join(file);
        let failed = |cause| DataSetError::Io { path: path.clone(), cause };
        let flags = no_links(OFlags::NONBLOCK);
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(&path).map_err(failed)?;
        let metadata = opened.metadata().map_err(failed)?;
        if metadata.is_file() { Ok(Object::new(opened, metadata.len())) } else { Err(DataSetError::NotAFile { path }) }
    }

    fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        let folder = self.root.join(folder);
        self.create_below(&folder)?;
        let target = folder.join(name);
        let partial = self.partial().join(name);
        let result = self.write(&partial, bytes).and_then(|()| fs::rename(&partial, &target));
        if result.is_err() {
            // It may not exist; the error that counts is the first one.
            let _ = fs::remove_file(&partial);
        }
        result.and_then(|()| sync(&folder)).map_err(|source| OutputError::from_io("writing", target, source))
    }

    fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        let path = self.root.join(folder).join(name);
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(Some(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(OutputError::from_io("looking for", path, source)),
        }
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

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// The user named the directory: links are their wish.
    Follow,
    /// Below it, a link could lead a privileged writer anywhere.
    Refuse,
}

pub(super) fn create_directories(path: &Path, owner: Option<(u32, u32)>, links: Links) -> Result<()> {
    let found = if links == Links::Follow { fs::metadata(path) } else { fs::symlink_metadata(path) };
    match found {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(metadata) if metadata.is_symlink() => {
            return Err(OutputError::Link { action: "creating", path: path.to_owned() });
        }
        Ok(_) => return Err(OutputError::NotADirectory { action: "creating", path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(OutputError::from_io("creating", path, source)),
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_directories(parent, owner, links)?;
    }
    create_directory(path, owner).map_err(|source| OutputError::from_io("creating", path, source))
}

pub(super) fn create_directory(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY_MODE).create(path)?;
    let directory = OpenOptions::new().read(true).custom_flags(no_links(OFlags::DIRECTORY)).open(path)?;
    give(&directory, owner, DIRECTORY_MODE)?;
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        sync(parent)?;
    }
    Ok(())
}

pub(super) fn create_file(options: &mut OpenOptions, path: &Path, owner: Option<(u32, u32)>) -> io::Result<File> {
    let file = options.mode(FILE_MODE).custom_flags(no_links(OFlags::empty())).open(path)?;
    give(&file, owner, FILE_MODE)?;
    Ok(file)
}

/// Mode whatever the umask, and the owner if one is asked for.
fn give(file: &File, owner: Option<(u32, u32)>, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    owner.map_or(Ok(()), |(user, group)| fchown(file, Some(user), Some(group)))
}

pub(super) fn no_links(flags: OFlags) -> i32 {
    (flags | OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
