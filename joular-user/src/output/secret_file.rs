//! Reads files with secrets: only their owner may have access.

use std::{
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("{0}: check the file")]
    Io(#[from] io::Error),
    #[error("it is not a regular file: name a file")]
    NotAFile,
    #[error("others than its owner may read or write it (mode {0:o}): change that with `chmod 600`")]
    Mode(u32),
    #[error("it is longer than {0} bytes: name the right file")]
    TooLong(usize),
}

/// All of a file that only its owner may read.
///
/// # Errors
/// See [`SecretFileError`].
pub fn read(path: &Path, max_bytes: usize) -> Result<Vec<u8>, SecretFileError> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(SecretFileError::NotAFile);
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(SecretFileError::Mode(metadata.mode() & 0o777));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes { Err(SecretFileError::TooLong(max_bytes)) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_file_that_others_may_read_is_refused_and_so_is_one_that_is_no_file_or_too_long() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(&path, "secret\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(read(&path, 100), Err(SecretFileError::Mode(0o640))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path, 7).unwrap(), b"secret\n");
        assert!(matches!(read(&path, 6), Err(SecretFileError::TooLong(6))));
        assert!(matches!(read(dir.path(), 100), Err(SecretFileError::NotAFile)));
        assert!(matches!(read(&dir.path().join("none"), 100), Err(SecretFileError::Io(_))));
    }
}
