//! Holds a directory open, and does all within it by its descriptor.
//!
//! A run as root writes to a directory that belongs to whoever called sudo, and who may put a link in
//! place of any folder at any time. A path would lead through it. A descriptor stays with the directory
//! that was checked, and each folder below is opened from it, never through a link.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fstatvfs, linkat, mkdirat, openat, renameat, renameat_with,
        statat, unlinkat,
    },
    io::Errno,
};

use super::{
    Published, Room,
    create::{DIRECTORY_MODE, FILE_MODE, give},
};

/// An open directory.
#[derive(Debug)]
pub(super) struct HeldDirectory(OwnedFd);

/// What is in the way of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    Link,
    File,
}

impl HeldDirectory {
    /// Opens a directory that the user named: its links are the user's choice.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// The folder `name` in it, made if it is not there. A link is an error.
    pub(super) fn folder(&self, name: &Path, owner: Option<(u32, u32)>) -> io::Result<Self> {
        let made = match mkdirat(&self.0, name, Mode::from_bits_truncate(DIRECTORY_MODE)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(error.into()),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&self.0, name, flags, Mode::empty())?;
        if made {
            let file = File::from(folder.try_clone()?);
            give(&file, owner, DIRECTORY_MODE)?;
            self.sync()?;
        }
        Ok(Self(folder))
    }

    /// The same directory, to be closed apart.
    pub(super) fn again(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    pub(super) fn has(&self, name: &str) -> io::Result<bool> {
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// What is there in place of a folder that could not be opened.
    pub(super) fn obstacle(&self, name: &Path) -> Option<Obstacle> {
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => Some(Obstacle::Link),
            FileType::Directory => None,
            _ => Some(Obstacle::File),
        }
    }

    /// Writes a new file, and brings it to disk.
    pub(super) fn write(&self, name: &str, bytes: &[u8], owner: Option<(u32, u32)>) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.0, name, flags, Mode::from_bits_truncate(FILE_MODE))?);
        give(&file, owner, FILE_MODE)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Moves a file to another directory, in place of what has that name there.
    pub(super) fn move_to(&self, name: &str, other: &Self, other_name: &str) -> io::Result<Published> {
        renameat(&self.0, name, &other.0, other_name)?;
        other.sync()?;
        Ok(Published::Created)
    }

    /// Moves a file to another directory, unless something has that name there.
    pub(super) fn move_new_to(&self, name: &str, other: &Self, other_name: &str) -> io::Result<Published> {
        let moved = match renameat_with(&self.0, name, &other.0, other_name, RenameFlags::NOREPLACE) {
            // Such as NFS, which can do it in two steps.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                linkat(&self.0, name, &other.0, other_name, AtFlags::empty())
                    .and_then(|()| unlinkat(&self.0, name, AtFlags::empty()))
            }
            moved => moved,
        };
        match moved {
            Err(Errno::EXIST) => return Ok(Published::AlreadyThere),
            moved => moved?,
        }
        other.sync()?;
        Ok(Published::Created)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// What its file system has.
    pub(super) fn room(&self) -> io::Result<Room> {
        Ok(fstatvfs(&self.0)?.into())
    }

    /// Removes a folder in it that is empty.
    pub(super) fn remove_folder(&self, name: &Path) -> io::Result<()> {
        Ok(unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes all files in it.
    pub(super) fn clear(&self) -> io::Result<()> {
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                unlinkat(&self.0, entry.file_name(), AtFlags::empty())?;
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}
