//! Writes one file that a command makes: a picture, a page, an export. The file appears whole at
//! its place or not at all; standard output, pipes and devices get the content as it comes.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions, Permissions},
    io::{self, BufWriter, IsTerminal as _, Write},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{OpenOptionsExt as _, PermissionsExt as _, fchown},
    },
    path::Path,
};

use rustix::fs::{FlockOperation, flock};

use crate::output::{OutputError, Result};

const FILE_MODE: u32 = 0o640;

/// Stands for standard output.
pub const STDOUT: &str = "-";

/// Writes `bytes` to `path` for `owner` (user, group), or to `out` if it is `-`. A reader of `out`
/// that closes it early is not an error.
///
/// # Errors
/// If it cannot be written; what was at `path` before stays.
pub fn write(path: &Path, bytes: &[u8], owner: Option<(u32, u32)>, out: &mut impl Write) -> Result<()> {
    let failed = |source| match path == Path::new(STDOUT) {
        true => OutputError::Stream { what: "the output", source },
        false => OutputError::from_io("writing", path, source),
    };
    match stream(path, owner, out, |out| out.write_all(bytes).map_err(failed)) {
        Err(error) if error.is_broken_pipe() => Ok(()),
        written => written,
    }
}

/// Calls `write` with a writer to `path` (`out` if it is `-`). A file that is new or replaced
/// belongs to `owner`; anything but a regular file is written to as it is.
///
/// # Errors
/// Those of `write`, and if the file cannot be made or put in its place; what was
/// at `path` before stays.
pub fn stream<T, E: From<OutputError>>(
    path: &Path,
    owner: Option<(u32, u32)>,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    if path == Path::new(STDOUT) {
        let mut out = BufWriter::new(out);
        let written = write(&mut out)?;
        out.flush().map_err(|source| OutputError::Stream { what: "the output", source })?;
        return Ok(written);
    }
    let failed = |source| OutputError::from_io("writing", path, source);
    if let Some(file) = special(path).map_err(failed)? {
        let mut out = BufWriter::new(file);
        let written = write(&mut out)?;
        out.flush().map_err(failed)?;
        return Ok(written);
    }
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::IsADirectory.into()))?;
    remove_stale(path, name);
    let partial = path.with_file_name(partial_name(name, std::process::id()));
    let file = create(&partial, owner).map_err(failed)?;
    let result = fill(file, write, failed)
        .and_then(|written| fs::rename(&partial, path).map(|()| written).map_err(|source| failed(source).into()));
    if result.is_err() {
        // The error that counts is the first one.
        let _ = fs::remove_file(&partial);
    }
    result
}

/// Whether what is written to `path` would be seen on a terminal.
pub fn is_terminal(path: &Path) -> bool {
    if path == Path::new(STDOUT) {
        return io::stdout().is_terminal();
    }
    special(path).is_ok_and(|file| file.is_some_and(|file| file.is_terminal()))
}

/// Opens anything but a regular file: a pipe, a device.
fn special(path: &Path) -> io::Result<Option<File>> {
    if fs::metadata(path).map_or(true, |found| found.is_file()) {
        return Ok(None);
    }
    let file = OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    // It was none a moment ago: somebody puts files here while we look.
    if file.metadata()?.is_file() { Err(io::Error::other("it was replaced meanwhile")) } else { Ok(Some(file)) }
}

fn create(partial: &Path, owner: Option<(u32, u32)>) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(partial)?;
    let prepare = || {
        // Held for as long as this lives: by it a partial file is known to be written to. Not all file systems have it.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        owner.map_or(Ok(()), |(user, group)| fchown(&file, Some(user), Some(group)))
    };
    if let Err(error) = prepare() {
        let _ = fs::remove_file(partial);
        return Err(error);
    }
    Ok(file)
}

fn fill<T, E: From<OutputError>>(
    file: File,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
    failed: impl Fn(io::Error) -> OutputError,
) -> Result<T, E> {
    let mut out = BufWriter::new(file);
    let written = write(&mut out)?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(written)
}

/// A name may have at most 255 bytes; this part of it must do.
const MOST_OF_NAME: usize = 200;

/// `.NAME.PID.partial`, beside the file.
fn partial_name(name: &OsStr, pid: u32) -> OsString {
    let mut partial = prefix(name);
    partial.push(format!("{pid}{SUFFIX}"));
    partial
}

const SUFFIX: &str = ".partial";

fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    let bytes = name.as_bytes();
    prefix.push(OsStr::from_bytes(bytes.get(..MOST_OF_NAME).unwrap_or(bytes)));
    prefix.push(".");
    prefix
}

/// Removes partial files of commands that were killed: nobody holds their locks. This only tidies
/// up, so its failures do not matter.
fn remove_stale(path: &Path, name: &OsStr) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let prefix = prefix(name);
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let pid = found.as_bytes().strip_prefix(prefix.as_bytes());
        let pid = pid.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
        if !pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit)) {
            continue;
        }
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(entry.path()) else { continue };
        if file.metadata().is_ok_and(|found| found.is_file())
            && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::unix::fs::FileTypeExt as _};

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("page.html");
        for text in ["first", "second"] {
            write(&path, text.as_bytes(), None, &mut io::sink()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, FILE_MODE);
        }
        let failure = |_: &mut dyn Write| Err(OutputError::AfterFailure);
        stream::<(), _>(&path, None, &mut io::sink(), failure).unwrap_err();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        let error = write(&root.path().join("no/page.html"), b"", None, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("no/page.html"), "{error}");
    }

    #[test]
    fn a_fifo_is_written_to_and_stays_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let reader = std::thread::spawn({
            let path = path.clone();
            move || {
                let mut text = String::new();
                File::open(path).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        write(&path, b"text", None, &mut io::sink()).unwrap();
        assert_eq!(reader.join().unwrap(), "text");
        assert!(fs::symlink_metadata(&path).unwrap().file_type().is_fifo());
    }

    #[test]
    fn partial_files_of_killed_commands_go_and_those_that_are_written_to_stay() {
        let root = tempfile::tempdir().unwrap();
        let stale = [1, std::process::id()].map(|pid| root.path().join(format!(".page.html.{pid}.partial")));
        for path in &stale {
            fs::write(path, "half").unwrap();
        }
        let live = create(&root.path().join(".page.html.2.partial"), None).unwrap();
        for other in [".page.html.x.partial", ".page.svg.3.partial"] {
            fs::write(root.path().join(other), "not ours").unwrap();
        }
        write(&root.path().join("page.html"), b"text", None, &mut io::sink()).unwrap();
        let entries = fs::read_dir(root.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, [".page.html.2.partial", ".page.html.x.partial", ".page.svg.3.partial", "page.html"]);
        drop(live);
    }

    #[test]
    fn a_name_may_be_as_long_as_names_can_be() {
        let root = tempfile::tempdir().unwrap();
        write(&root.path().join("n".repeat(255)), b"text", None, &mut io::sink()).unwrap();
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
