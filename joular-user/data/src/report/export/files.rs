//! Writes an export as a directory of files. Under sudo the directory may be in a place of another
//! user, who must not be able to redirect what root writes. So links are followed nowhere below the
//! directory that was named, files are new or were made here, and folders are handed to their owner
//! last.

use std::{
    collections::{HashMap, HashSet},
    fs::{File, OpenOptions, Permissions},
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, mkdirat, openat},
    io::Errno,
};

use super::{ExportError, Result};

const FILE_MODE: u32 = 0o640;
const FOLDER_MODE: u32 = 0o750;

/// Device and inode.
type Id = (u64, u64);

/// The place that an export's files go to, and their owner.
#[derive(Debug)]
pub(super) struct Files {
    directory: PathBuf,
    base: OwnedFd,
    /// User and group; `None`: whoever runs this.
    owner: Option<(u32, u32)>,
    /// Folders that were made for the directory itself.
    above: Vec<OwnedFd>,
    /// Folders that were made below it, by their paths.
    made: HashMap<PathBuf, Id>,
    files: HashSet<Id>,
}

impl Files {
    /// Opens the directory, and makes the missing part of its path.
    pub(super) fn open(directory: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        let mut above = Vec::new();
        let base = make_all(directory, &mut above).map_err(|cause| failed(directory, cause))?;
        Ok(Self { directory: directory.to_owned(), base, owner, above, made: HashMap::new(), files: HashSet::new() })
    }

    /// Makes a folder below the directory, and those above it.
    pub(super) fn folder(&mut self, below: &Path) -> Result<()> {
        self.make_folder(below).map_err(|cause| failed(&self.directory.join(below), cause))
    }

    /// Makes a folder that must not be there yet.
    pub(super) fn new_folder(&mut self, below: &Path) -> Result<()> {
        if let Some(parent) = below.parent() {
            self.folder(parent)?;
        }
        match self.make_one(below) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ExportError::Exists { path: self.directory.join(below) }),
            Err(cause) => Err(failed(&self.directory.join(below), cause)),
        }
    }

    /// Makes a file that must not be there yet.
    pub(super) fn create(&mut self, below: &Path, text: &str) -> Result<()> {
        let written = self.create_file(below).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|cause| failed(&self.directory.join(below), cause))
    }

    /// Adds rows to a file that this export made, or makes it.
    pub(super) fn append(&mut self, below: &Path, rows: &str) -> Result<()> {
        let file = match self.create_file(below) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open_own(below),
            file => file,
        };
        let written = file.and_then(|mut file| file.write_all(rows.as_bytes()));
        written.map_err(|cause| failed(&self.directory.join(below), cause))
    }

    /// Gives the folders to their owner, the innermost first. Once a folder is theirs, nothing
    /// below it is touched any more.
    pub(super) fn hand_over(&mut self) -> Result<()> {
        let Some((user, group)) = self.owner else { return Ok(()) };
        let mut made: Vec<PathBuf> = self.made.keys().cloned().collect();
        made.sort_by_key(|below| std::cmp::Reverse(below.components().count()));
        for below in made {
            let given = self.open_folder(&below).and_then(|folder| fchown(folder, Some(user), Some(group)));
            given.map_err(|cause| failed(&self.directory.join(&below), cause))?;
        }
        for folder in self.above.drain(..).rev() {
            fchown(folder, Some(user), Some(group)).map_err(|cause| failed(&self.directory, cause))?;
        }
        Ok(())
    }

    fn make_folder(&mut self, below: &Path) -> io::Result<()> {
        if below.as_os_str().is_empty() || self.made.contains_key(below) {
            return Ok(());
        }
        if let Some(parent) = below.parent() {
            self.make_folder(parent)?;
        }
        if !self.make_one(below)? {
            self.open_folder(below)?;
        }
        Ok(())
    }

    /// Makes a folder; false if something is there already.
    fn make_one(&mut self, below: &Path) -> io::Result<bool> {
        let parent = self.open_folder(below.parent().unwrap_or(Path::new("")))?;
        let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        match mkdirat(&parent, name, Mode::from_raw_mode(FOLDER_MODE)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        let folder = own(open_folder_at(&parent, Path::new(name))?)?;
        folder.set_permissions(Permissions::from_mode(FOLDER_MODE))?;
        self.made.insert(below.to_owned(), id(&folder)?);
        Ok(true)
    }

    /// Opens a folder of ours: follows no link, and reaches only folders that we made.
    fn open_folder(&self, below: &Path) -> io::Result<File> {
        let mut folder = File::from(self.base.try_clone()?);
        let mut so_far = PathBuf::new();
        for name in below {
            folder = open_folder_at(&folder, Path::new(name))?;
            so_far.push(name);
            if let Some(made) = self.made.get(&so_far)
                && *made != id(&folder)?
            {
                return Err(replaced());
            }
        }
        Ok(folder)
    }

    fn create_file(&mut self, below: &Path) -> io::Result<File> {
        let file = self.open_file(below, OFlags::CREATE | OFlags::EXCL)?;
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        self.files.insert(id(&file)?);
        if let Some((user, group)) = self.owner {
            fchown(&file, Some(user), Some(group))?;
        }
        Ok(file)
    }

    fn open_own(&self, below: &Path) -> io::Result<File> {
        let file = self.open_file(below, OFlags::APPEND | OFlags::NONBLOCK)?;
        let found = file.metadata()?;
        let is_own = found.is_file() && found.nlink() == 1 && self.files.contains(&(found.dev(), found.ino()));
        if is_own { Ok(file) } else { Err(replaced()) }
    }

    fn open_file(&self, below: &Path, flags: OFlags) -> io::Result<File> {
        let parent = self.open_folder(below.parent().unwrap_or(Path::new("")))?;
        let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let flags = flags | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&parent, name, flags, Mode::from_raw_mode(FILE_MODE))?.into())
    }
}

/// Opens a directory that the user named, by links if they like, and makes the missing part of its
/// path.
fn make_all(path: &Path, made: &mut Vec<OwnedFd>) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let open = |flags| OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | flags).open(path);
    match open(0) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened.map(Into::into),
    }
    let parent = make_all(path.parent().unwrap_or(Path::new(".")), made)?;
    let Some(name) = path.file_name() else { return open(0).map(Into::into) };
    mkdirat(&parent, name, Mode::from_raw_mode(FOLDER_MODE))?;
    let folder = own(open_folder_at(&parent, Path::new(name))?)?;
    folder.set_permissions(Permissions::from_mode(FOLDER_MODE))?;
    made.push(folder.try_clone()?.into());
    Ok(folder.into())
}

fn open_folder_at(parent: impl AsFd, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?.into())
}

/// Returns the folder if it can be the one that was just made: one of this user.
fn own(folder: File) -> io::Result<File> {
    let found = folder.metadata()?;
    if found.uid() == rustix::process::geteuid().as_raw() { Ok(folder) } else { Err(replaced()) }
}

fn id(file: &File) -> io::Result<Id> {
    file.metadata().map(|found| (found.dev(), found.ino()))
}

fn replaced() -> io::Error {
    io::Error::other("it is not what this export made: something else changes the directory")
}

fn failed(path: &Path, cause: io::Error) -> ExportError {
    ExportError::Write { target: path.display().to_string(), cause }
}
