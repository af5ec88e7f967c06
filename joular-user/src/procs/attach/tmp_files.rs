//! Handles the three names in a JVM's `/tmp` that matter: its socket, the file that makes it open
//! the socket, and the perf map it will write. Others may write there too, so a file is used only
//! if it is what it should be.

use std::os::fd::BorrowedFd;

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, statat, unlinkat},
    io::Errno,
};

use super::{helper::because, protocol::Reply};

const CREATE: OFlags =
    OFlags::CREATE.union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::WRONLY).union(OFlags::CLOEXEC);

/// The file whose presence makes SIGQUIT mean "open the socket". Removed on drop.
pub(super) struct Trigger<'a> {
    directory: BorrowedFd<'a>,
    name: String,
}

impl<'a> Trigger<'a> {
    /// Creates the file. HotSpot looks in its working directory first, and takes only a file of its
    /// own user: with another one there, SIGQUIT would print a thread dump.
    pub(super) fn create(
        cwd: Option<BorrowedFd<'a>>,
        tmp: BorrowedFd<'a>,
        name: String,
        uid: u32,
    ) -> Result<Self, Reply> {
        let mut last = Errno::NOENT;
        for directory in cwd.into_iter().chain([tmp]) {
            let is_ours = match openat(directory, &name, CREATE, Mode::RUSR | Mode::WUSR) {
                Ok(_) => true,
                Err(Errno::EXIST) => false,
                Err(error) => {
                    last = error;
                    continue;
                }
            };
            // One that another caller left or is using serves as well, but is
            // not ours to remove.
            let trigger = Self { directory, name: if is_ours { name.clone() } else { String::new() } };
            let stat = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(|error| because("looking at its attach file", error))?;
            if stat.st_uid == uid {
                return Ok(trigger);
            }
            return Err(Reply::Failed {
                what: format!("its attach file {name} belongs to user {}, not {uid}", stat.st_uid),
            });
        }
        Err(because("creating its attach file", last))
    }
}

impl Drop for Trigger<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // HotSpot may have removed it itself; nothing else can be done.
            let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}

/// Whether the JVM's socket stands there.
pub(super) fn socket_is_there(tmp: BorrowedFd<'_>, name: &str, uid: u32) -> Result<bool, Reply> {
    match statat(tmp, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Socket && stat.st_uid == uid => Ok(true),
        Ok(_) => Err(Reply::UntrustedSocket),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(because("looking for its socket", error)),
    }
}

/// The place where the JVM will write its perf map. HotSpot opens the file by its name, follows
/// links and waits at a FIFO. So a plain file of its own has to be there before it is asked. A file
/// that was made for it is removed if nothing comes of it.
pub(super) struct MapPlace<'a> {
    directory: BorrowedFd<'a>,
    /// Name of the file that was made here.
    made: Option<String>,
}

impl<'a> MapPlace<'a> {
    /// Must be called as the JVM's user.
    pub(super) fn prepare(tmp: BorrowedFd<'a>, name: String, uid: u32) -> Result<Self, Reply> {
        let readable = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        match openat(tmp, &name, CREATE, readable) {
            Ok(_) => return Ok(Self { directory: tmp, made: Some(name) }),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(because("making the file for its perf map", error)),
        }
        let stat =
            statat(tmp, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| because("looking at its perf map", error))?;
        match obstacle(&stat, uid) {
            Some(what) => Err(Reply::UntrustedMap { what }),
            None => Ok(Self { directory: tmp, made: None }),
        }
    }

    /// The JVM has written it.
    pub(super) fn keep(&mut self) {
        self.made = None;
    }
}

impl Drop for MapPlace<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.made {
            // Whoever removed it before has done what was to be done.
            let _ = unlinkat(self.directory, name, AtFlags::empty());
        }
    }
}

/// Why the JVM must not be made to write to the file that is there.
fn obstacle(stat: &Stat, uid: u32) -> Option<String> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_uid != uid => Some(format!("a file of user {}", stat.st_uid)),
        FileType::RegularFile if stat.st_nlink != 1 => Some(format!("a file with {} hard links", stat.st_nlink)),
        FileType::RegularFile => None,
        FileType::Symlink => Some("a symbolic link".into()),
        FileType::Fifo => Some("a FIFO".into()),
        FileType::Directory => Some("a directory".into()),
        _ => Some("no regular file".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::fd::AsFd as _, path::Path};

    use rustix::{
        fs::{CWD, mknodat},
        process::geteuid,
    };

    use super::*;

    const NAME: &str = "perf-1.map";

    fn prepare(directory: &Path) -> Result<bool, Reply> {
        let tmp = fs::File::open(directory).unwrap();
        MapPlace::prepare(tmp.as_fd(), NAME.into(), geteuid().as_raw()).map(|mut place| {
            let made = place.made.is_some();
            place.keep();
            made
        })
    }

    #[test]
    fn a_jvm_only_ever_writes_to_a_plain_file_of_its_own() {
        type Setup = fn(&Path);
        let cases: [(Setup, Result<bool, &str>); 6] = [
            (|_| {}, Ok(true)),
            (|path| fs::write(path, "old").unwrap(), Ok(false)),
            (|path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(), Err("a symbolic link")),
            (|path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap(), Err("a FIFO")),
            (|path| fs::create_dir(path).unwrap(), Err("a directory")),
            (
                |path| {
                    fs::write(path.with_extension("other"), "").unwrap();
                    fs::hard_link(path.with_extension("other"), path).unwrap();
                },
                Err("a file with 2 hard links"),
            ),
        ];
        for (setup, expected) in cases {
            let directory = tempfile::tempdir().unwrap();
            setup(&directory.path().join(NAME));
            let expected = expected.map_err(|what| Reply::UntrustedMap { what: what.into() });
            assert_eq!(prepare(directory.path()), expected);
        }
    }

    #[test]
    fn a_file_of_someone_else_is_an_obstacle() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(NAME), "").unwrap();
        let tmp = fs::File::open(directory.path()).unwrap();
        let other = geteuid().as_raw() + 1;
        let refused = MapPlace::prepare(tmp.as_fd(), NAME.into(), other).map(|_| ());
        assert!(matches!(refused, Err(Reply::UntrustedMap { what }) if what.starts_with("a file of user")));
        assert!(directory.path().join(NAME).exists());
    }

    #[test]
    fn a_file_made_in_vain_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let tmp = fs::File::open(directory.path()).unwrap();
        let place = MapPlace::prepare(tmp.as_fd(), NAME.into(), geteuid().as_raw()).unwrap();
        assert!(directory.path().join(NAME).exists());
        drop(place);
        assert!(!directory.path().join(NAME).exists());
    }
}
