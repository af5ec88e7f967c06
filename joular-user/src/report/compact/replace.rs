//! One data set in place of another, at once: they are built side by side on one
//! file system and the kernel exchanges their names. Before that the old one is
//! untouched, afterwards the new one is whole; what an interrupted run leaves is a
//! hidden directory beside them, which the next one removes.

use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::{
    output::OutputDirectory,
    report::{
        error::{DataSetError, Result},
        files::TABLES,
    },
};

/// The directory beside `target` in which its successor is built, free of what an
/// interrupted run left.
pub(super) fn staging(target: &Path) -> Result<PathBuf> {
    let unnamed = || DataSetError::Replace {
        path: target.into(),
        problem: "it has no name within a directory".into(),
        advice: "name another directory with --output",
    };
    let name = target.file_name().ok_or_else(unnamed)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".compacting");
    let staging = target.with_file_name(hidden);
    remove(&staging)?;
    Ok(staging)
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(DataSetError::Io { path: directory.into(), cause })
        }
        _ => Ok(()),
    }
}

/// Who the data set belongs to, if we may give files away.
pub(super) fn owner(root: &Path) -> Result<Option<(u32, u32)>> {
    let metadata = fs::metadata(root).map_err(|cause| DataSetError::Io { path: root.into(), cause })?;
    Ok(rustix::process::geteuid().is_root().then(|| (metadata.uid(), metadata.gid())))
}

/// An output must not hold anything yet.
pub(super) fn refuse_taken(output: &Path) -> Result<()> {
    let failed = |cause| DataSetError::Io { path: output.into(), cause };
    match fs::read_dir(output).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(DataSetError::Taken { path: output.into() }),
        Ok(false) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(failed(cause)),
    }
}

/// The old directory will be removed: it must hold nothing but what was read.
pub(super) fn refuse_foreign(root: &Path, known: &HashSet<PathBuf>) -> Result<()> {
    let own = OutputDirectory::OWN_ENTRIES;
    for path in entries(root)? {
        let name = path.file_name().unwrap_or_default();
        let is_table = TABLES.iter().chain(&["runs"]).any(|table| name == *table);
        if own.iter().any(|own| name == *own) {
            continue;
        }
        if !is_table {
            return Err(DataSetError::Foreign { path });
        }
        let mut folders = vec![path];
        while let Some(folder) = folders.pop() {
            for path in entries(&folder)? {
                let metadata = fs::symlink_metadata(&path);
                let metadata = metadata.map_err(|cause| DataSetError::Io { path: path.clone(), cause })?;
                if metadata.is_dir() {
                    folders.push(path);
                } else if !known.contains(&path) {
                    return Err(DataSetError::Foreign { path });
                }
            }
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |cause| DataSetError::Io { path: folder.into(), cause };
    fs::read_dir(folder).map_err(failed)?.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// Exchanges the two and removes the old one, unless files were put into it meanwhile.
pub(super) fn exchange(root: &Path, staging: &Path, known: &HashSet<PathBuf>) -> Result<()> {
    let failed = |cause: io::Error| DataSetError::Replace {
        path: root.into(),
        problem: cause.to_string(),
        advice: "this file system cannot exchange directories at once: name another directory with --output",
    };
    let exchange =
        || renameat_with(CWD, root, CWD, staging, RenameFlags::EXCHANGE).map_err(|error| failed(error.into()));
    let metadata = fs::metadata(root).map_err(failed)?;
    fs::set_permissions(staging, metadata.permissions()).map_err(failed)?;
    exchange()?;
    sync_parent(root)?;
    let moved: HashSet<PathBuf> =
        known.iter().filter_map(|path| Some(staging.join(path.strip_prefix(root).ok()?))).collect();
    if let Err(error) = refuse_foreign(staging, &moved) {
        exchange()?;
        sync_parent(root)?;
        remove(staging)?;
        return Err(error);
    }
    remove(staging)
}

/// Gives a finished data set its name.
pub(super) fn rename(staging: &Path, output: &Path) -> Result<()> {
    fs::rename(staging, output).map_err(|cause| DataSetError::Io { path: output.into(), cause })?;
    sync_parent(output)
}

fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let sync = || fs::File::open(parent)?.sync_all();
    sync().map_err(|cause| DataSetError::Io { path: parent.into(), cause })
}
