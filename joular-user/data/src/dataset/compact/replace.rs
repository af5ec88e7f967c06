//! Puts one data set in the place of another, at once. Both stand side by side on one file system,
//! and the kernel exchanges their names. Before the exchange the old one is untouched; after it the
//! new one is whole. A killed run leaves a hidden directory beside them, which the next run
//! removes. If the directory has the mark of one that nobody needs, it is removed unseen; else only
//! if the present data set has all that it has.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, OpenOptions},
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use crate::{
    dataset::{
        OutputDirectory,
        column::Table as _,
        error::{DataSetError, Result},
        read::{files, footer::Footer},
        store::{self, ClaimKind, LocalDirectory, Store as _},
        tables::{Runs, Stacks, TABLES},
    },
    output::OutputError,
};

/// Marks a directory whose other content nobody needs: it is half built, or half removed.
const MARK: &str = ".joular-bpf.unfinished";

/// The directory beside a data set in which its successor is built. Dropping this value removes it,
/// unless it got the data set's name.
pub(crate) struct Staging {
    path: PathBuf,
    pub(crate) directory: OutputDirectory,
    is_needed: bool,
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_needed {
            // What failed before counts; the next run tries again.
            let _ = clear(&self.path);
        }
    }
}

impl Staging {
    pub(crate) fn make(target: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        let path = path_beside(target)?;
        let directory = OutputDirectory::create_new(&path, owner)?;
        let staging = Self { path, directory, is_needed: false };
        mark(&staging.path).map_err(|cause| failed("writing", &staging.path, cause))?;
        Ok(staging)
    }

    /// Tries whether the file system can do the exchange that comes later.
    pub(crate) fn try_exchange(&self, root: &Path) -> Result<()> {
        let [one, other] = ["one", "other"].map(|name| self.path.join(name));
        for path in [&one, &other] {
            fs::create_dir(path).map_err(|cause| failed("creating", path, cause))?;
        }
        swap(&one, &other).map_err(|error| unreplaced(root, error))?;
        for path in [&one, &other] {
            fs::remove_dir(path).map_err(|cause| failed("removing", path, cause))?;
        }
        Ok(())
    }

    /// Exchanges the two and removes the old one, unless files were put into it meanwhile.
    pub(crate) fn exchange(mut self, root: &Path, known: &HashSet<PathBuf>) -> Result<()> {
        let permit = || open(&self.path)?.set_permissions(fs::metadata(root)?.permissions());
        permit().map_err(|cause| failed("changing the mode of", &self.path, cause))?;
        unmark(&self.path)?;
        swap(root, &self.path).map_err(|error| unreplaced(root, error))?;
        self.is_needed = true;
        sync_parent(root)?;
        let moved: HashSet<PathBuf> =
            known.iter().filter_map(|path| Some(self.path.join(path.strip_prefix(root).ok()?))).collect();
        if let Err(error) = refuse_foreign(&self.path, &moved) {
            swap(root, &self.path).map_err(|error| unreplaced(root, error))?;
            self.is_needed = false;
            sync_parent(root)?;
            return Err(error);
        }
        // Without it the next run looks closer, should this one be killed now.
        let _ = mark(&self.path);
        clear(&self.path)
    }

    /// Gives a finished data set its final name.
    pub(crate) fn rename(mut self, output: &Path) -> Result<()> {
        unmark(&self.path)?;
        fs::rename(&self.path, output).map_err(|cause| failed("renaming the compacted data set to", output, cause))?;
        self.is_needed = true;
        sync_parent(output)
    }
}

fn path_beside(target: &Path) -> Result<PathBuf> {
    let unnamed = || DataSetError::Replace {
        path: target.into(),
        problem: "it has no name within a directory".into(),
        advice: "name another directory with --output",
    };
    let name = target.file_name().ok_or_else(unnamed)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".compacting");
    Ok(target.with_file_name(hidden))
}

/// Removes what a killed run left beside `target`, if `present` has all that is
/// needed of it.
pub(crate) fn remove_leftover(target: &Path, present: Option<&Path>) -> Result<()> {
    let path = path_beside(target)?;
    match open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened.map_err(|cause| failed("opening", &path, cause))?,
    };
    let _lock = LocalDirectory::new(&path, None).claim(ClaimKind::Write)?;
    let is_marked = path.join(MARK).symlink_metadata().is_ok();
    let is_empty = || Ok::<_, DataSetError>(entries(&path)?.iter().all(|path| is_own(path)));
    if !is_marked && !is_empty()? {
        let former = || DataSetError::Former { path: path.clone() };
        let present = present.ok_or_else(former)?;
        // A damaged one is for its owner to judge, too.
        if !has_all_of(present, &path).map_err(|_| former())? {
            return Err(former());
        }
    }
    clear(&path)
}

/// Whether `former` holds only runs that `present` has too, with as many rows.
fn has_all_of(present: &Path, former: &Path) -> Result<bool> {
    let (present, _) = rows_of_runs(present)?;
    let (former_rows, known) = rows_of_runs(former)?;
    refuse_foreign(former, &known)?;
    Ok(former_rows.iter().all(|(run, rows)| present.get(run) == Some(rows)))
}

type RowsOfRuns = BTreeMap<PathBuf, BTreeMap<&'static str, u64>>;

/// Rows of each table but `stacks`, because compacting leaves some of those out; and all files.
fn rows_of_runs(root: &Path) -> Result<(RowsOfRuns, HashSet<PathBuf>)> {
    let (mut runs, mut known) = (RowsOfRuns::new(), HashSet::new());
    for files in files::find(&store::open(root)?)? {
        let rows = runs.entry(files.place.folder(Runs::NAME).join(&files.place.name)).or_default();
        known.insert(files.row.path());
        for (_, part) in &files.parts {
            for table in TABLES {
                let Some(file) = part.named(table) else { continue };
                known.insert(file.path());
                if table != Stacks::NAME {
                    *rows.entry(table).or_default() += Footer::read(file)?.rows;
                }
            }
        }
    }
    Ok((runs, known))
}

/// Opens the directory itself, not what a link leads to.
fn open(directory: &Path) -> io::Result<fs::File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY).open(directory)
}

fn mark(directory: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o640).open(directory.join(MARK))?;
    file.sync_all()?;
    open(directory)?.sync_all()
}

fn unmark(directory: &Path) -> Result<()> {
    let remove = || fs::remove_file(directory.join(MARK)).and_then(|()| open(directory)?.sync_all());
    remove().map_err(|cause| failed("removing the mark in", directory, cause))
}

/// Removes a directory, with its mark and its lock last.
fn clear(directory: &Path) -> Result<()> {
    let last = [MARK, OutputDirectory::OWN_ENTRIES[0]];
    let empty = || {
        let opened = open(directory)?;
        // Whatever has its name by now.
        let inside = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        for entry in fs::read_dir(&inside)?.collect::<io::Result<Vec<_>>>()? {
            if last.iter().any(|last| entry.file_name() == *last) {
                continue;
            }
            if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
        for name in last {
            match fs::remove_file(inside.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::remove_dir(directory)
    };
    empty().map_err(|cause| failed("removing", directory, cause))
}

fn failed(action: &'static str, path: &Path, cause: io::Error) -> DataSetError {
    OutputError::from_io(action, path, cause).into()
}

/// Owner of the data set, if we may give files away.
pub(crate) fn owner(root: &Path) -> Result<Option<(u32, u32)>> {
    let metadata = fs::metadata(root).map_err(|cause| DataSetError::Io { path: root.into(), cause })?;
    Ok(rustix::process::geteuid().is_root().then(|| (metadata.uid(), metadata.gid())))
}

/// Refuses an output that already holds anything.
pub(crate) fn refuse_taken(output: &Path) -> Result<()> {
    let failed = |cause| DataSetError::Io { path: output.into(), cause };
    match fs::read_dir(output).map(|mut entries| entries.next().is_some()) {
        Ok(true) => Err(DataSetError::Taken { path: output.into() }),
        Ok(false) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(failed(cause)),
    }
}

/// Refuses a directory with anything but what was read, because the old directory will be removed.
pub(crate) fn refuse_foreign(root: &Path, known: &HashSet<PathBuf>) -> Result<()> {
    for path in entries(root)? {
        let name = path.file_name().unwrap_or_default();
        let is_table = TABLES.iter().chain(&[Runs::NAME]).any(|table| name == *table);
        if is_own(&path) {
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

/// Refuses a directory on another device than its parent, because it cannot be exchanged.
pub(crate) fn refuse_mounted(root: &Path) -> Result<()> {
    let device = |path: &Path| {
        Ok::<_, DataSetError>(fs::metadata(path).map_err(|cause| failed("looking at", path, cause))?.dev())
    };
    if device(root)? == device(parent(root))? { Ok(()) } else { Err(unreplaced(root, Errno::XDEV)) }
}

fn is_own(path: &Path) -> bool {
    OutputDirectory::OWN_ENTRIES.iter().any(|own| path.file_name().is_some_and(|name| name == *own))
}

fn swap(one: &Path, other: &Path) -> Result<(), Errno> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

fn unreplaced(root: &Path, error: Errno) -> DataSetError {
    let advice = match error {
        Errno::ACCESS | Errno::PERM => {
            "run as the owner of it and of the directory around it, or name another directory with --output"
        }
        Errno::BUSY | Errno::XDEV => {
            "it is a mount point, which cannot be exchanged: name a directory within it with --output"
        }
        Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP => {
            "this file system cannot exchange directories at once: name another directory with --output"
        }
        _ => "check that the file system is mounted and healthy, or name another directory with --output",
    };
    DataSetError::Replace { path: root.into(), problem: io::Error::from(error).to_string(), advice }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

fn sync_parent(path: &Path) -> Result<()> {
    let parent = parent(path);
    let sync = || fs::File::open(parent)?.sync_all();
    sync().map_err(|cause| failed("bringing to disk", parent, cause))
}
