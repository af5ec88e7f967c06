//! Locks a data set with a file in its directory. The kernel holds the lock for one writer or for
//! several readers until they end, however they end.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::create::{create_file, no_links};
use crate::output::{OutputError, Result};

pub(crate) const LOCK: &str = ".joular-bpf.lock";

/// While a run locks a directory, it is exchanged less often than this.
const LOCK_ATTEMPTS: usize = 8;

/// Keeps writers from a directory as long as the file is open; `None` if nobody ever locked it, as
/// in a copy.
pub(super) fn shared(path: &Path) -> Result<Option<File>> {
    let open = || OpenOptions::new().read(true).custom_flags(no_links(OFlags::NONBLOCK)).open(path);
    match locked(path, FlockOperation::NonBlockingLockShared, open) {
        Ok(file) => Ok(Some(file)),
        Err(OutputError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Keeps everybody else from a directory, as long as the file is open.
pub(super) fn exclusive(path: &Path, owner: Option<(u32, u32)>) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let open = || match create_file(&mut options, path, owner) {
        // It may be writable later. Until then the lock that is there does.
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => File::open(path),
        opened => opened,
    };
    let mut file = locked(path, FlockOperation::NonBlockingLockExclusive, open)?;
    // The pid is only a hint for whoever finds the directory in use: a full disk has no room for it.
    let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Locks the file that still has this name once it is locked, because the directory may have been
/// exchanged since the file was opened.
fn locked(path: &Path, operation: FlockOperation, mut open: impl FnMut() -> io::Result<File>) -> Result<File> {
    let failed = |source| OutputError::from_io("locking", path, source);
    let mut pid = None;
    for _ in 0..LOCK_ATTEMPTS {
        let mut file = open().map_err(failed)?;
        match flock(&file, operation) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(OutputError::InUse { path: path.to_owned(), pid: recorded_pid(&mut file) });
            }
            Err(error) => return Err(failed(error.into())),
        }
        let own = file.metadata().map_err(failed)?;
        match fs::symlink_metadata(path) {
            Ok(named) if (named.dev(), named.ino()) == (own.dev(), own.ino()) => return Ok(file),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => pid = recorded_pid(&mut file),
        }
    }
    Err(OutputError::InUse { path: path.to_owned(), pid })
}

fn recorded_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_that_of_the_directory_which_has_the_name() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(LOCK);
        let mut opened = 0;
        let file = locked(&path, FlockOperation::NonBlockingLockExclusive, || {
            opened += 1;
            let file = File::create(&path)?;
            // Exchanged between opening and locking.
            if opened == 1 {
                fs::rename(&path, root.path().join("old"))?
            }
            Ok(file)
        });
        assert_eq!(file.unwrap().metadata().unwrap().ino(), fs::metadata(&path).unwrap().ino());
        assert_eq!(opened, 2);
    }
}
