//! The data set's directory: who may write to it, and how a file appears in it.
//!
//! A file is written whole beside the tables, in `.partial`, brought to disk,
//! and only then moved to its place: a reader never sees a part of a file, and
//! a crash leaves nothing but a leftover there, which the next run removes.
//! `.partial` is one folder for all tables because some readers refuse a table
//! folder that holds anything but Parquet files.
//!
//! One run writes to a directory at a time, held by a lock that the kernel
//! releases when the run ends, however it ends. Data sets of several hosts are
//! merged by copying: names never collide.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, fchown},
    path::{Component, Path, PathBuf},
};

use rustix::fs::OFlags;

use super::lock::{self, LOCK};
use crate::output::{OutputError, Result};

const PARTIAL: &str = ".partial";
const DIRECTORY_MODE: u32 = 0o750;
const FILE_MODE: u32 = 0o640;

/// A directory that this run alone writes to.
#[derive(Debug)]
pub struct OutputDirectory {
    root: PathBuf,
    owner: Option<(u32, u32)>,
    /// Holds the lock as long as it is open.
    _lock: File,
}

impl OutputDirectory {
    /// Creates the directory if need be, locks it, removes what a crashed run
    /// left behind, and makes sure that files can be written. Whatever is
    /// created will belong to `owner` (user, group).
    pub fn create(root: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        create_directories(root, owner, Links::Follow)?;
        Self::within(root, owner)
    }

    /// The same for a directory that must not exist: no link leads elsewhere.
    /// On failure nothing of it is left behind, unless somebody else locked it.
    ///
    /// # Errors
    /// Also if anything is there.
    pub fn create_new(root: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        if let Some(parent) = root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            create_directories(parent, owner, Links::Follow)?;
        }
        create_directory(root, owner).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => OutputError::Exists { path: root.to_owned() },
            _ => OutputError::from_io("creating", root, source),
        })?;
        let created = Self::within(root, owner);
        if created.as_ref().is_err_and(|error| !matches!(error, OutputError::InUse { .. })) {
            // The error that counts is the first one.
            let _ = fs::remove_dir(root.join(PARTIAL));
            let _ = fs::remove_file(root.join(LOCK));
            let _ = fs::remove_dir(root);
        }
        created
    }

    /// Keeps runs from an existing directory, and does nothing else to it.
    ///
    /// # Errors
    /// If a run is writing there, or the lock cannot be opened.
    pub fn claim(root: &Path) -> Result<File> {
        lock::exclusive(&root.join(LOCK), None)
    }

    fn within(root: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        let lock = lock::exclusive(&root.join(LOCK), owner)?;
        let directory = Self { root: root.to_owned(), owner, _lock: lock };
        create_directories(&directory.partial(), owner, Links::Refuse)?;
        directory.remove_leftovers()?;
        directory.probe()?;
        Ok(directory)
    }

    /// What it keeps beside the tables.
    pub const OWN_ENTRIES: [&str; 2] = [LOCK, PARTIAL];

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Makes `bytes` the content of `name` within `folder`, at once and for
    /// good. On failure nothing of it is left behind.
    pub fn publish(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
        let folder = self.root.join(folder);
        self.create_below(&folder)?;
        let target = folder.join(name);
        let partial = self.partial().join(name);
        let result = self.write(&partial, bytes).and_then(|()| fs::rename(&partial, &target));
        if result.is_err() {
            // It may not exist; the error that counts is the first one.
            let _ = fs::remove_file(&partial);
        }
        result.and_then(|()| sync(&folder)).map_err(|source| OutputError::from_io("writing", target, source))
    }

    /// Where `name` within `folder` is, if there is anything.
    pub fn find(&self, folder: &Path, name: &str) -> Result<Option<PathBuf>> {
        let path = self.root.join(folder).join(name);
        match fs::symlink_metadata(&path) {
            Ok(_) => Ok(Some(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(OutputError::from_io("looking for", path, source)),
        }
    }

    fn partial(&self) -> PathBuf {
        self.root.join(PARTIAL)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = create_file(OpenOptions::new().write(true).create_new(true), path, self.owner)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Creates the folders between the root and `folder`, never through a link.
    fn create_below(&self, folder: &Path) -> Result<()> {
        let mut path = self.root.clone();
        for part in folder.strip_prefix(&self.root).unwrap_or(folder).components() {
            if let Component::Normal(part) = part {
                path.push(part);
                create_directories(&path, self.owner, Links::Refuse)?;
            }
        }
        Ok(())
    }

    fn remove_leftovers(&self) -> Result<()> {
        let partial = self.partial();
        let remove = || {
            for entry in fs::read_dir(&partial)? {
                fs::remove_file(entry?.path())?;
            }
            Ok(())
        };
        remove().map_err(|source| OutputError::from_io("removing leftovers in", partial.clone(), source))
    }

    fn probe(&self) -> Result<()> {
        let path = self.partial().join("probe");
        let result = self.write(&path, b"probe");
        // It may not exist; the error that counts is the first one.
        let _ = fs::remove_file(&path);
        result.map_err(|source| OutputError::from_io("writing a probe file in", &self.root, source))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// The user named the directory: links are their wish.
    Follow,
    /// Below it, a link could lead a privileged writer anywhere.
    Refuse,
}

fn create_directories(path: &Path, owner: Option<(u32, u32)>, links: Links) -> Result<()> {
    let found = if links == Links::Follow { fs::metadata(path) } else { fs::symlink_metadata(path) };
    match found {
        Ok(metadata) if metadata.is_dir() => return Ok(()),
        Ok(metadata) if metadata.is_symlink() => {
            return Err(OutputError::Link { action: "creating", path: path.to_owned() });
        }
        Ok(_) => return Err(OutputError::NotADirectory { action: "creating", path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(OutputError::from_io("creating", path, source)),
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_directories(parent, owner, links)?;
    }
    create_directory(path, owner).map_err(|source| OutputError::from_io("creating", path, source))
}

fn create_directory(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    DirBuilder::new().mode(DIRECTORY_MODE).create(path)?;
    let directory = OpenOptions::new().read(true).custom_flags(no_links(OFlags::DIRECTORY)).open(path)?;
    give(&directory, owner, DIRECTORY_MODE)?;
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        sync(parent)?;
    }
    Ok(())
}

pub(crate) fn create_file(options: &mut OpenOptions, path: &Path, owner: Option<(u32, u32)>) -> io::Result<File> {
    let file = options.mode(FILE_MODE).custom_flags(no_links(OFlags::empty())).open(path)?;
    give(&file, owner, FILE_MODE)?;
    Ok(file)
}

/// Mode whatever the umask, and the owner if one is asked for.
fn give(file: &File, owner: Option<(u32, u32)>, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    owner.map_or(Ok(()), |(user, group)| fchown(file, Some(user), Some(group)))
}

pub(crate) fn no_links(flags: OFlags) -> i32 {
    (flags | OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed()
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn temporary() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn one_run_at_a_time() {
        let root = temporary();
        let first = OutputDirectory::create(root.path(), None).unwrap();
        let error = OutputDirectory::create(root.path(), None).unwrap_err();
        let OutputError::InUse { pid, .. } = &error else { panic!("{error}") };
        assert_eq!(*pid, Some(std::process::id()));
        assert!(error.to_string().contains("another run (pid "), "{error}");
        drop(first);
        OutputDirectory::create(root.path(), None).unwrap();
    }

    #[test]
    fn leftovers_of_a_crash_are_removed_and_data_is_kept() {
        let root = temporary();
        let directory = OutputDirectory::create(root.path(), None).unwrap();
        directory.publish(Path::new("t"), "a.parquet", b"whole").unwrap();
        fs::write(directory.partial().join("b.parquet"), b"par").unwrap();
        drop(directory);
        let directory = OutputDirectory::create(root.path(), None).unwrap();
        assert_eq!(fs::read_dir(directory.partial()).unwrap().count(), 0);
        assert_eq!(fs::read(root.path().join("t/a.parquet")).unwrap(), b"whole");
    }

    #[test]
    fn publishing_again_replaces() {
        let root = temporary();
        let directory = OutputDirectory::create(&root.path().join("a/b"), None).unwrap();
        for bytes in [b"one", b"two"] {
            directory.publish(Path::new("t/host=x"), "a.parquet", bytes).unwrap();
        }
        assert_eq!(fs::read(directory.path().join("t/host=x/a.parquet")).unwrap(), b"two");
    }

    #[test]
    fn only_owner_and_group_may_look() {
        let root = temporary();
        let out = root.path().join("out");
        let directory = OutputDirectory::create(&out, None).unwrap();
        directory.publish(Path::new("t"), "a.parquet", b"").unwrap();
        for (path, mode) in [("", 0o750), ("t", 0o750), ("t/a.parquet", 0o640), (LOCK, 0o640)] {
            assert_eq!(fs::metadata(out.join(path)).unwrap().mode() & 0o777, mode, "{path}");
        }
    }

    #[test]
    fn what_is_created_belongs_to_the_owner() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: giving files away needs root");
            return;
        }
        let root = temporary();
        let out = root.path().join("out");
        let directory = OutputDirectory::create(&out, Some((1234, 1235))).unwrap();
        directory.publish(Path::new("t"), "a.parquet", b"").unwrap();
        for path in ["", "t", "t/a.parquet", LOCK, PARTIAL] {
            let metadata = fs::metadata(out.join(path)).unwrap();
            assert_eq!((metadata.uid(), metadata.gid()), (1234, 1235), "{path}");
        }
        assert_ne!(fs::metadata(root.path()).unwrap().uid(), 1234, "what existed keeps its owner");
    }

    #[test]
    fn a_file_in_the_way_is_said_to_be_one() {
        let root = temporary();
        let file = root.path().join("file");
        fs::write(&file, b"").unwrap();
        for path in [file.clone(), file.join("below")] {
            let error = OutputDirectory::create(&path, None).unwrap_err();
            assert!(matches!(error, OutputError::NotADirectory { .. }), "{error}");
        }
    }

    #[test]
    fn links_below_the_directory_are_not_followed() {
        let (root, elsewhere) = (temporary(), temporary());
        let directory = OutputDirectory::create(root.path(), None).unwrap();
        symlink(elsewhere.path(), root.path().join("t")).unwrap();
        let error = directory.publish(Path::new("t"), "a.parquet", b"").unwrap_err();
        assert!(matches!(error, OutputError::Link { .. }), "{error}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_new_directory_is_made_where_nothing_is() {
        let (root, elsewhere) = (temporary(), temporary());
        let path = root.path().join("new");
        symlink(elsewhere.path(), &path).unwrap();
        let error = OutputDirectory::create_new(&path, None).unwrap_err();
        assert!(matches!(error, OutputError::Exists { .. }), "{error}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
        fs::remove_file(&path).unwrap();
        OutputDirectory::create_new(&path, None).unwrap();
    }

    #[test]
    fn causes_are_told_apart() {
        for (code, expected) in [
            (rustix::io::Errno::ACCESS, "permission denied"),
            (rustix::io::Errno::ROFS, "read-only"),
            (rustix::io::Errno::NOSPC, "no space left"),
            (rustix::io::Errno::IO, "mounted and healthy"),
        ] {
            let error = OutputError::from_io("writing", "/data", code.into());
            assert!(error.to_string().starts_with("writing /data: "), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
