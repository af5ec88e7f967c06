//! One file that a command makes: a picture, a page. Whole at its place or not
//! there at all, or on standard output.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt as _, fchown},
    path::Path,
};

use super::error::{OutputError, Result};

const FILE_MODE: u32 = 0o640;

/// Stands for standard output.
pub const STDOUT: &str = "-";

/// Writes `bytes` to `path` for `owner` (user, group), or to `out` if it is `-`: a
/// reader of that who has seen enough is no error.
///
/// # Errors
/// If it cannot be written; what was at `path` before stays.
pub fn write(path: &Path, bytes: &[u8], owner: Option<(u32, u32)>, out: &mut impl Write) -> Result<()> {
    if path == Path::new(STDOUT) {
        let written = out.write_all(bytes).and_then(|()| out.flush());
        return match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|source| OutputError::Stream { what: "the output", source }),
        };
    }
    let failed = |source| OutputError::from_io("writing", path, source);
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::IsADirectory.into()))?;
    let mut aside_name = std::ffi::OsString::from(".");
    aside_name.push(name);
    aside_name.push(format!(".{}", std::process::id()));
    let aside = path.with_file_name(aside_name);
    // Of a command that was killed at this very place under the same id.
    let _ = fs::remove_file(&aside);
    let written = write_aside(&aside, bytes, owner).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // It may not exist; the error that counts is the first one.
        let _ = fs::remove_file(&aside);
    }
    written.map_err(failed)
}

fn write_aside(path: &Path, bytes: &[u8], owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    if let Some((uid, gid)) = owner {
        fchown(&file, Some(uid), Some(gid))?;
    }
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("page.html");
        for text in ["first", "second"] {
            write(&path, text.as_bytes(), None, &mut io::sink()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        let error = write(&root.path().join("no/page.html"), b"", None, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("no/page.html"), "{error}");
    }

    #[test]
    fn a_dash_is_standard_output_and_a_closed_one_no_error() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut out = Vec::new();
        write(Path::new(STDOUT), b"text", None, &mut out).unwrap();
        assert_eq!(out, b"text");
        write(Path::new(STDOUT), b"text", None, &mut Closed).unwrap();
    }
}
