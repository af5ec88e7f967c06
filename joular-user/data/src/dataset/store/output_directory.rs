//! Prepares the directory that a run writes to: makes it, locks it, clears what a crash left, and
//! tries to write. One run at a time writes to a directory. The kernel releases the run's lock when
//! the run ends, however it ends.

use std::{fs, io, path::Path};

use super::{
    Claim, ClaimKind, LocalDirectory, SHIPPED, Store,
    create::{create_directories, create_directory},
    directory::PARTIAL,
    lock::LOCK,
    place::Place,
    united,
};
use crate::output::{OutputError, Result};

const PROBE: &str = "probe";

/// A directory that this run alone writes to.
#[derive(Debug)]
pub struct OutputDirectory {
    directory: LocalDirectory,
    /// Holds the lock as long as it is there.
    claim: Claim,
}

impl OutputDirectory {
    /// Creates the directory if need be, locks it, removes what a crashed run
    /// left behind, and makes sure that files can be written. Whatever is
    /// created will belong to `owner` (user, group).
    pub fn create(root: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        refuse_bucket(root)?;
        create_directories(root, owner)?;
        let made = Self::within(root, owner)?;
        made.probe()?;
        Ok(made)
    }

    /// The same without the probe file, for a run that goes on when nothing can be written.
    pub fn create_lasting(root: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        refuse_bucket(root)?;
        create_directories(root, owner)?;
        Self::within(root, owner)
    }

    /// The same for a directory that must not exist: no link leads elsewhere.
    /// On failure nothing of it is left behind, unless somebody else locked it.
    ///
    /// # Errors
    /// Also if anything is there.
    pub fn create_new(root: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        refuse_bucket(root)?;
        if let Some(parent) = root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            create_directories(parent, owner)?;
        }
        create_directory(root, owner).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => OutputError::Exists { path: root.to_owned() },
            _ => OutputError::from_io("creating", root, source),
        })?;
        let created = Self::within(root, owner).and_then(|made| made.probe().map(|()| made));
        if created.as_ref().is_err_and(|error| !matches!(error, OutputError::InUse { .. })) {
            // The error that counts is the first one.
            let _ = fs::remove_dir(root.join(PARTIAL));
            let _ = fs::remove_file(root.join(LOCK));
            let _ = fs::remove_dir(root);
        }
        created
    }

    /// Entries that the data set keeps beside the tables.
    pub const OWN_ENTRIES: [&str; 3] = [LOCK, PARTIAL, SHIPPED];

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The store that files are written to.
    pub fn store(&self) -> &LocalDirectory {
        &self.directory
    }

    /// The directory, and the claim that keeps others from it.
    pub fn into_parts(self) -> (LocalDirectory, Claim) {
        (self.directory, self.claim)
    }

    fn within(root: &Path, owner: Option<(u32, u32)>) -> Result<Self> {
        let directory = LocalDirectory::new(root, owner).held()?;
        // A data set beside those of an experiment would hide them.
        united::refuse("writing to", &directory)?;
        let claim = directory.claim(ClaimKind::Write)?;
        let made = Self { directory, claim };
        let partial = made.directory.partial()?;
        partial.clear().map_err(|source| OutputError::from_io("removing leftovers in", root.join(PARTIAL), source))?;
        Ok(made)
    }

    fn probe(&self) -> Result<()> {
        let partial = self.directory.partial()?;
        let written = self.directory.write(&partial, PROBE, b"probe").and_then(|()| partial.remove(PROBE));
        written.map_err(|source| OutputError::from_io("writing a probe file in", self.path(), source))
    }
}

/// Whatever has a scheme was not meant to be a directory.
fn refuse_bucket(root: &Path) -> Result<()> {
    match Place::of(root)? {
        Place::Directory(_) => Ok(()),
        Place::Bucket(_) => Err(OutputError::NotLocal { path: root.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, symlink};

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
        directory.store().publish(Path::new("t"), "a.parquet", b"whole").unwrap();
        fs::write(root.path().join(PARTIAL).join("b.parquet"), b"par").unwrap();
        drop(directory);
        let _directory = OutputDirectory::create(root.path(), None).unwrap();
        assert_eq!(fs::read_dir(root.path().join(PARTIAL)).unwrap().count(), 0);
        assert_eq!(fs::read(root.path().join("t/a.parquet")).unwrap(), b"whole");
    }

    #[test]
    fn publishing_again_replaces() {
        let root = temporary();
        let directory = OutputDirectory::create(&root.path().join("a/b"), None).unwrap();
        for bytes in [b"one", b"two"] {
            directory.store().publish(Path::new("t/host=x"), "a.parquet", bytes).unwrap();
        }
        assert_eq!(fs::read(directory.path().join("t/host=x/a.parquet")).unwrap(), b"two");
    }

    #[test]
    fn nothing_is_left_of_a_file_that_cannot_be_moved_to_its_place() {
        let root = temporary();
        let directory = OutputDirectory::create(root.path(), None).unwrap();
        fs::create_dir_all(root.path().join("t/a.parquet")).unwrap();
        directory.store().publish(Path::new("t"), "a.parquet", b"1").unwrap_err();
        assert_eq!(fs::read_dir(root.path().join(PARTIAL)).unwrap().count(), 0);
    }

    #[test]
    fn only_owner_and_group_may_look() {
        let root = temporary();
        let out = root.path().join("out");
        let directory = OutputDirectory::create(&out, None).unwrap();
        directory.store().publish(Path::new("t"), "a.parquet", b"").unwrap();
        for (path, mode) in [("", 0o750), ("t", 0o750), ("t/a.parquet", 0o640), (LOCK, 0o640)] {
            assert_eq!(fs::metadata(out.join(path)).unwrap().mode() & 0o777, mode, "{path}");
        }
    }

    #[test]
    fn what_is_created_belongs_to_the_owner() {
        if !rustix::process::geteuid().is_root() {
            joular_tests::notes::skipped("giving files away needs root");
            return;
        }
        let root = temporary();
        let out = root.path().join("out");
        let directory = OutputDirectory::create(&out, Some((1234, 1235))).unwrap();
        directory.store().publish(Path::new("t"), "a.parquet", b"").unwrap();
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
        let error = directory.store().publish(Path::new("t"), "a.parquet", b"").unwrap_err();
        assert!(matches!(error, OutputError::Link { .. }), "{error}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    /// Whoever owns the directory may move it, and put links in its place, while a run writes.
    #[test]
    fn links_swapped_in_while_running_lead_nowhere() {
        let (root, elsewhere) = (temporary(), temporary());
        let (path, moved) = (root.path().join("out"), root.path().join("moved"));
        let directory = OutputDirectory::create(&path, None).unwrap();
        directory.store().publish(Path::new("t"), "a.parquet", b"1").unwrap();
        fs::rename(&path, &moved).unwrap();
        symlink(elsewhere.path(), &path).unwrap();
        directory.store().publish(Path::new("t"), "b.parquet", b"2").unwrap();
        assert_eq!(fs::read(moved.join("t/b.parquet")).unwrap(), b"2");
        for folder in [PARTIAL, "t"] {
            fs::rename(moved.join(folder), moved.join("old")).unwrap();
            symlink(elsewhere.path(), moved.join(folder)).unwrap();
            let error = directory.store().publish(Path::new("t"), "c.parquet", b"3").unwrap_err();
            assert!(matches!(error, OutputError::Link { .. }), "{error}");
            fs::remove_file(moved.join(folder)).unwrap();
            fs::rename(moved.join("old"), moved.join(folder)).unwrap();
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
        directory.store().publish(Path::new("t"), "c.parquet", b"3").unwrap();
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
