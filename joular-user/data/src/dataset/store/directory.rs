//! Keeps a data set in a directory, and makes a file appear in it whole.
//!
//! A file is written beside the tables, in `.partial`, brought to disk, and only then moved to its
//! place. So a reader never sees a part of a file, and a crash leaves at most a file in `.partial`,
//! which the next run removes. `.partial` is one folder for all tables because some readers refuse
//! a table folder that holds anything but Parquet files. Data sets of several hosts are merged by
//! copying: names never collide.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt as _,
    path::{Component, Path, PathBuf},
};

use rustix::fs::OFlags;

use super::{
    Claim, ClaimKind, Object, Store,
    create::{Links, create_directories, create_file, no_links, sync},
    lock::{self, LOCK},
};
use crate::{
    dataset::error::{DataSetError, Result as ReadResult},
    output::{OutputError, Result},
};

pub(super) const PARTIAL: &str = ".partial";

/// A directory that holds a data set, or will hold one.
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
