//! Creates files and directories with their owner and mode, and never through a link that somebody
//! put there.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown},
    path::Path,
};

use rustix::fs::OFlags;

use crate::output::{OutputError, Result};

pub(super) const DIRECTORY_MODE: u32 = 0o750;
pub(super) const FILE_MODE: u32 = 0o640;

/// Creates a directory that the user named, and those above it. Links in its path are the user's choice.
///
/// # Errors
/// If it cannot be made, or is something else.
pub fn create_directories(path: &Path, owner: Option<(u32, u32)>) -> Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(_) => return Err(OutputError::NotADirectory { action: "creating", path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(OutputError::from_io("creating", path, source)),
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_directories(parent, owner)?;
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

/// Sets the mode whatever the umask, and the owner if one is asked for.
pub(super) fn give(file: &File, owner: Option<(u32, u32)>, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    owner.map_or(Ok(()), |(user, group)| fchown(file, Some(user), Some(group)))
}

pub(super) fn no_links(flags: OFlags) -> i32 {
    (flags | OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
