//! Where an export goes: a file appears when it is whole, standard output as it
//! comes.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, BufWriter, IsTerminal, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use super::{ExportError, Exported, Files, Result};

const FILE_MODE: u32 = 0o640;
const DIRECTORY_MODE: u32 = 0o750;

fn is_standard_output(output: Option<&Path>) -> bool {
    output.is_none_or(|path| path == Path::new("-"))
}

pub(super) fn refuse_terminal(format: &'static str, output: Option<&Path>) -> Result<()> {
    if is_standard_output(output) && io::stdout().is_terminal() {
        return Err(ExportError::Terminal { format });
    }
    Ok(())
}

/// Calls `write` with a file, or with standard output.
pub(super) fn stream(
    output: Option<&Path>,
    owner: Option<(u32, u32)>,
    write: impl FnOnce(&mut dyn Write) -> Result<Exported>,
) -> Result<Exported> {
    match output.filter(|_| !is_standard_output(output)) {
        Some(path) => file(path, owner, write).map_err(|error| named(error, path.display().to_string())),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            let written = write(&mut out).and_then(|written| {
                out.flush()?;
                Ok(written)
            });
            written.map_err(|error| named(error, "standard output".to_owned()))
        }
    }
}

fn named(error: ExportError, target: String) -> ExportError {
    match error {
        ExportError::Stream(cause) => ExportError::Write { target, cause },
        other => other,
    }
}

/// Writes beside the file and renames, so that nobody sees a part of it. What is
/// no regular file (a pipe, a device) is written to as it is.
fn file(
    path: &Path,
    owner: Option<(u32, u32)>,
    write: impl FnOnce(&mut dyn Write) -> Result<Exported>,
) -> Result<Exported> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        let written = write(&mut out)?;
        out.flush()?;
        return Ok(written);
    }
    let partial = beside(path);
    let result = write_aside(&partial, owner, write);
    let result = result.and_then(|written| {
        fs::rename(&partial, path)?;
        Ok(written)
    });
    if result.is_err() {
        // It may not exist; the error that counts is the first one.
        let _ = fs::remove_file(&partial);
    }
    result
}

fn write_aside(
    partial: &Path,
    owner: Option<(u32, u32)>,
    write: impl FnOnce(&mut dyn Write) -> Result<Exported>,
) -> Result<Exported> {
    let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(partial)?;
    give(&file, owner, FILE_MODE)?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(written)
}

fn beside(path: &Path) -> PathBuf {
    path.with_file_name(format!(".joular-bpf-export-{}.partial", std::process::id()))
}

fn give(file: &File, owner: Option<(u32, u32)>, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    owner.map_or(Ok(()), |(user, group)| fchown(file, Some(user), Some(group)))
}

impl Files {
    /// Creates a folder below the directory, and those above it.
    pub(super) fn folder(&self, below: &Path) -> Result<PathBuf> {
        let path = self.directory.join(below);
        self.create(&path).map_err(|cause| Self::failed(&path, cause))?;
        Ok(path)
    }

    /// Creates a folder that must not be there yet.
    pub(super) fn new_folder(&self, below: &Path) -> Result<PathBuf> {
        let path = self.directory.join(below);
        match fs::symlink_metadata(&path) {
            Ok(_) => Err(ExportError::Exists { path }),
            Err(_) => self.folder(below),
        }
    }

    /// Adds rows to a file, creates it if need be.
    pub(super) fn append(&self, path: &Path, rows: &str) -> Result<()> {
        let write = || {
            let mut file = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(path)?;
            give(&file, self.owner, FILE_MODE)?;
            file.write_all(rows.as_bytes())
        };
        write().map_err(|cause| Self::failed(path, cause))
    }

    /// Makes `text` the content of a file.
    pub(super) fn write(&self, below: &Path, text: &str) -> Result<()> {
        let path = self.directory.join(below);
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&path)?;
            give(&file, self.owner, FILE_MODE)?;
            file.write_all(text.as_bytes())
        };
        write().map_err(|cause| Self::failed(&path, cause))
    }

    fn create(&self, path: &Path) -> io::Result<()> {
        if path.as_os_str().is_empty() || path.is_dir() {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.create(parent)?;
        }
        DirBuilder::new().mode(DIRECTORY_MODE).create(path)?;
        give(&File::open(path)?, self.owner, DIRECTORY_MODE)
    }

    fn failed(path: &Path, cause: io::Error) -> ExportError {
        ExportError::Write { target: path.display().to_string(), cause }
    }
}
