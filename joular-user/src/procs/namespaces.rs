//! Opens files of a target so that the target cannot trick us.
//!
//! A target chooses what stands at a path in its own root: a link out of it, a FIFO that blocks
//! whoever opens it, a device, a file of someone else, an endless file. So every file is looked up
//! within the target's root ([`in_root`](super::in_root)), first as a mere location (`O_PATH`, which runs no
//! driver and cannot block), checked, and only then opened for reading.
//!
//! The directories are held open, so a process's perf map and its libraries stay reachable when it
//! has already gone. `/tmp` has a handle of its own, because a mount below the root goes with the
//! last process of its namespace.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
    path::Path,
};

use joular_data::model::{target_text::TargetText, units::Pid};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, open, openat, statat, unlinkat};
use thiserror::Error;

pub use super::in_root::Links;
use super::{in_root::locate, maps::Mapping};

#[derive(Debug, Error)]
pub enum TargetFileError {
    #[error(
        "opening the root of process {pid}: {source}: the process has ended, or run as root or grant CAP_SYS_PTRACE"
    )]
    Root { pid: Pid, source: io::Error },
    #[error("opening {path} in the root of the process: {source}")]
    Open { path: TargetText, source: io::Error },
    #[error("opening {path} in the root of the process: it is, or leads through, a symbolic link: not followed")]
    Link { path: TargetText },
    #[error("opening {path} in the root of the process: not a regular file: not read")]
    NotRegular { path: TargetText },
    #[error("opening {path} in the root of the process: it belongs to user {owner}, not to {expected}: not trusted")]
    WrongOwner { path: TargetText, owner: u32, expected: u32 },
    #[error("opening {path} in the root of the process: {size} bytes are more than the {limit} that are read")]
    TooLarge { path: TargetText, size: u64, limit: u64 },
}

impl TargetFileError {
    /// The file is simply not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Open { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Who a file may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Anyone,
    UserOrRoot(u32),
    User(u32),
}

impl Owner {
    /// The user that would be right, if `uid` is not allowed.
    const fn refuses(self, uid: u32) -> Option<u32> {
        match self {
            Self::UserOrRoot(user) if uid != user && uid != 0 => Some(user),
            Self::User(user) if uid != user => Some(user),
            _ => None,
        }
    }
}

/// What a file must be to be read.
#[derive(Clone, Copy, Debug)]
pub struct Expect {
    pub links: Links,
    pub owner: Owner,
    pub max_bytes: u64,
}

/// The file system as one process sees it.
#[derive(Debug)]
pub struct TargetRoot {
    root: OwnedFd,
    tmp: Option<OwnedFd>,
}

impl TargetRoot {
    /// Opens `proc_root/PID/root` and `/tmp` in it.
    pub fn open(proc_root: &Path, pid: Pid) -> Result<Self, TargetFileError> {
        let path = proc_root.join(pid.to_string()).join("root");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            open(&path, flags, Mode::empty()).map_err(|source| TargetFileError::Root { pid, source: source.into() })?;
        let tmp = locate(root.as_fd(), Path::new("tmp"), Links::WithinRoot).ok();
        let is_directory =
            |tmp: &OwnedFd| fstat(tmp).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        let tmp = tmp.filter(is_directory);
        Ok(Self { root, tmp })
    }

    /// Handle of the root itself.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Handle of the target's `/tmp`, if it has one.
    pub fn tmp(&self) -> Option<BorrowedFd<'_>> {
        self.tmp.as_ref().map(AsFd::as_fd)
    }

    /// Opens a file by the path that the target knows it by.
    pub fn open_file(&self, path: &str, expect: &Expect) -> Result<File, TargetFileError> {
        // A leading slash means this very root.
        open_checked(self.root.as_fd(), path, path, expect)
    }

    /// Opens a file of the target's `/tmp`; `name` has no slash.
    pub fn open_tmp_file(&self, name: &str, expect: &Expect) -> Result<File, TargetFileError> {
        let shown = format!("/tmp/{name}");
        match &self.tmp {
            Some(tmp) => open_checked(tmp.as_fd(), name, &shown, expect),
            None => Err(TargetFileError::Open { path: shown.into(), source: io::ErrorKind::NotFound.into() }),
        }
    }

    /// Whether anything stands under this name in `/tmp`.
    pub fn tmp_has(&self, name: &str) -> bool {
        self.tmp.as_ref().is_some_and(|tmp| statat(tmp, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// Removes a regular file of `owner`, and nobody else's, from `/tmp`.
    pub fn remove_tmp_file(&self, name: &str, owner: u32) -> Result<(), TargetFileError> {
        let path = format!("/tmp/{name}");
        let Some(tmp) = &self.tmp else { return Ok(()) };
        let failed =
            |source: rustix::io::Errno| TargetFileError::Open { path: path.as_str().into(), source: source.into() };
        let stat = statat(tmp, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        let expect = Expect { links: Links::Refuse, owner: Owner::User(owner), max_bytes: u64::MAX };
        check(&stat, &path, &expect)?;
        unlinkat(tmp, name, AtFlags::empty()).map_err(failed)
    }
}

/// Opens a mapped file even if its name is gone or now means another file. It works while the
/// process lives.
pub fn open_mapped(proc_root: &Path, pid: Pid, mapping: &Mapping, max_bytes: u64) -> Result<File, TargetFileError> {
    let link = format!("{:x}-{:x}", mapping.start.0, mapping.end.0);
    let path = proc_root.join(pid.to_string()).join("map_files").join(link);
    let shown = path.display().to_string();
    let located = open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .map_err(|source| TargetFileError::Open { path: shown.as_str().into(), source: source.into() })?;
    check_and_reopen(&located, &shown, &Expect { links: Links::WithinRoot, owner: Owner::Anyone, max_bytes })
}

fn open_checked(directory: BorrowedFd<'_>, path: &str, shown: &str, expect: &Expect) -> Result<File, TargetFileError> {
    let located = locate(directory, Path::new(path), expect.links).map_err(|error| {
        if error == rustix::io::Errno::LOOP {
            TargetFileError::Link { path: shown.into() }
        } else {
            TargetFileError::Open { path: shown.into(), source: error.into() }
        }
    })?;
    check_and_reopen(&located, shown, expect)
}

fn check_and_reopen(located: &OwnedFd, shown: &str, expect: &Expect) -> Result<File, TargetFileError> {
    let failed = |source: rustix::io::Errno| TargetFileError::Open { path: shown.into(), source: source.into() };
    check(&fstat(located).map_err(failed)?, shown, expect)?;
    // This /proc is ours, whatever root the target has: it leads to the very
    // file that was checked.
    let own = format!("/proc/self/fd/{}", located.as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    openat(CWD, own, flags, Mode::empty()).map(File::from).map_err(failed)
}

fn check(stat: &Stat, path: &str, expect: &Expect) -> Result<(), TargetFileError> {
    let path = TargetText::from(path);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(TargetFileError::Link { path }),
        _ => return Err(TargetFileError::NotRegular { path }),
    }
    if let Some(expected) = expect.owner.refuses(stat.st_uid) {
        return Err(TargetFileError::WrongOwner { path, owner: stat.st_uid, expected });
    }
    let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
    if size > expect.max_bytes {
        return Err(TargetFileError::TooLarge { path, size, limit: expect.max_bytes });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Read as _, os::unix::fs::symlink};

    use rustix::process::{geteuid, getuid};

    use super::*;

    /// A fake /proc with process 7, whose root is a directory of ours.
    fn target() -> (tempfile::TempDir, TargetRoot) {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("7/root/tmp")).unwrap();
        fs::create_dir_all(directory.path().join("7/root/lib")).unwrap();
        let root = TargetRoot::open(directory.path(), Pid(7)).unwrap();
        (directory, root)
    }

    const STRICT: Expect = Expect { links: Links::Refuse, owner: Owner::Anyone, max_bytes: 1 << 20 };
    const ELF: Expect = Expect { links: Links::WithinRoot, owner: Owner::Anyone, max_bytes: 1 << 20 };

    #[test]
    fn a_plain_file_is_read() {
        let (directory, root) = target();
        fs::write(directory.path().join("7/root/tmp/perf-1.map"), "text").unwrap();
        for mut file in [
            root.open_file("/tmp/perf-1.map", &Expect { owner: Owner::User(getuid().as_raw()), ..STRICT }).unwrap(),
            root.open_tmp_file("perf-1.map", &STRICT).unwrap(),
        ] {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
        assert!(root.open_tmp_file("none", &STRICT).unwrap_err().is_not_found());
    }

    #[test]
    fn links_are_refused_or_kept_within_the_root() {
        let (directory, root) = target();
        let inside = directory.path().join("7/root");
        fs::write(directory.path().join("secret"), "no").unwrap();
        fs::write(inside.join("lib/libc.so.6"), "elf").unwrap();
        symlink(directory.path().join("secret"), inside.join("tmp/absolute")).unwrap();
        symlink("../../../secret", inside.join("tmp/relative")).unwrap();
        symlink("/lib/libc.so.6", inside.join("tmp/library")).unwrap();
        for name in ["absolute", "relative", "library"] {
            let error = root.open_tmp_file(name, &STRICT).unwrap_err();
            assert!(matches!(error, TargetFileError::Link { .. }), "{name}: {error}");
        }
        assert!(root.open_file("/tmp/absolute", &ELF).unwrap_err().is_not_found());
        assert!(root.open_file("/tmp/relative", &ELF).unwrap_err().is_not_found());
        root.open_file("/tmp/library", &ELF).unwrap();
        root.open_file("/../../../lib/libc.so.6", &ELF).unwrap();
    }

    #[test]
    fn a_fifo_does_not_hang_and_a_directory_is_no_file() {
        let (directory, root) = target();
        let fifo = directory.path().join("7/root/tmp/fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for name in ["/tmp/fifo", "/lib"] {
            let error = root.open_file(name, &STRICT).unwrap_err();
            assert!(matches!(error, TargetFileError::NotRegular { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn a_huge_file_is_refused() {
        let (directory, root) = target();
        fs::File::create(directory.path().join("7/root/tmp/huge")).unwrap().set_len(1 << 30).unwrap();
        let error = root.open_tmp_file("huge", &STRICT).unwrap_err();
        assert!(matches!(error, TargetFileError::TooLarge { size: 0x4000_0000, .. }), "{error}");
    }

    #[test]
    fn a_file_of_someone_else_is_refused() {
        if !geteuid().is_root() {
            joular_tests::notes::skipped("giving files away needs root");
            return;
        }
        let (directory, root) = target();
        let path = directory.path().join("7/root/tmp/theirs");
        fs::write(&path, "").unwrap();
        std::os::unix::fs::chown(&path, Some(1234), None).unwrap();
        let expect = |owner| Expect { owner: Owner::UserOrRoot(owner), ..STRICT };
        let error = root.open_tmp_file("theirs", &expect(4321)).unwrap_err();
        assert!(matches!(error, TargetFileError::WrongOwner { owner: 1234, expected: 4321, .. }), "{error}");
        assert!(root.remove_tmp_file("theirs", 4321).is_err());
        root.open_tmp_file("theirs", &expect(1234)).unwrap();
        root.remove_tmp_file("theirs", 1234).unwrap();
        assert!(!root.tmp_has("theirs"));
    }

    #[test]
    fn a_file_of_root_is_trusted_unless_the_owner_is_strict() {
        for (owner, uid, refused) in [
            (Owner::Anyone, 9, None),
            (Owner::UserOrRoot(5), 5, None),
            (Owner::UserOrRoot(5), 0, None),
            (Owner::UserOrRoot(5), 9, Some(5)),
            (Owner::User(5), 5, None),
            (Owner::User(5), 0, Some(5)),
        ] {
            assert_eq!(owner.refuses(uid), refused, "{owner:?} {uid}");
        }
    }

    #[test]
    fn a_file_stays_reachable_when_the_process_has_gone() {
        let (directory, root) = target();
        fs::write(directory.path().join("7/root/tmp/perf-1.map"), "text").unwrap();
        fs::rename(directory.path().join("7"), directory.path().join("gone")).unwrap();
        root.open_tmp_file("perf-1.map", &STRICT).unwrap();
        assert!(TargetRoot::open(directory.path(), Pid(7)).is_err());
    }
}
