//! Reads files with secrets: only their owner may write them, and only their group may read them beside, as Kubernetes
//! has it for a pod with `fsGroup`.

use std::{
    fs::{File, OpenOptions},
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
    #[error(
        "others than its owner may write it, or others than its group read it (mode {0:o}): `chmod 600` changes that"
    )]
    Mode(u32),
    #[error("it is longer than {0} bytes: name the right file")]
    TooLong(usize),
}

/// All of a file that only its owner and group may read.
///
/// # Errors
/// See [`SecretFileError`].
pub fn read(path: &Path, max_bytes: usize) -> Result<Vec<u8>, SecretFileError> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes { Err(SecretFileError::TooLong(max_bytes)) } else { Ok(bytes) }
}

/// A file that only its owner and group may read.
///
/// # Errors
/// See [`SecretFileError`].
pub fn open(path: &Path) -> Result<File, SecretFileError> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(SecretFileError::NotAFile);
    }
    if metadata.mode() & 0o037 != 0 {
        return Err(SecretFileError::Mode(metadata.mode() & 0o777));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use super::*;

    #[test]
    fn a_file_that_others_may_read_is_refused_and_so_is_one_that_is_no_file_or_too_long() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(&path, "secret\n").unwrap();
        for (mode, is_taken) in
            [(0o600, true), (0o400, true), (0o440, true), (0o640, true), (0o644, false), (0o660, false), (0o601, false)]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match read(&path, 100) {
                Ok(bytes) => assert!(is_taken && bytes == b"secret\n", "{mode:o}"),
                Err(SecretFileError::Mode(refused)) => assert!(!is_taken && refused == mode, "{mode:o}"),
                Err(error) => panic!("{mode:o}: {error}"),
            }
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path, 7).unwrap(), b"secret\n");
        assert!(matches!(read(&path, 6), Err(SecretFileError::TooLong(6))));
        assert!(matches!(read(dir.path(), 100), Err(SecretFileError::NotAFile)));
        assert!(matches!(read(&dir.path().join("none"), 100), Err(SecretFileError::Io(_))));
    }

    /// The kubelet puts a link to a link in its place, so that all files of a secret change at once.
    #[test]
    fn a_secret_is_read_where_the_kubelet_puts_it() {
        let dir = tempfile::tempdir().unwrap();
        let version = dir.path().join("..2026_11_29_08_00_00.1");
        fs::create_dir(&version).unwrap();
        fs::write(version.join("metrics-token"), "secret").unwrap();
        fs::set_permissions(version.join("metrics-token"), fs::Permissions::from_mode(0o440)).unwrap();
        symlink(&version, dir.path().join("..data")).unwrap();
        symlink("..data/metrics-token", dir.path().join("metrics-token")).unwrap();
        assert_eq!(read(&dir.path().join("metrics-token"), 100).unwrap(), b"secret");
    }
}
