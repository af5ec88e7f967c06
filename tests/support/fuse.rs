//! Mounts a directory through this process, which can stop answering: a mount whose server is dead, or
//! one that means to hang whoever touches it.

use std::{
    any::Any,
    collections::HashMap,
    ffi::OsStr,
    fs::{self, File, Metadata},
    io,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{FileExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, LockOwner,
    MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEntry, Request, SessionACL,
};
use tempfile::TempDir;

/// How long the kernel may reuse what it was told of a file. It asks again after that, as it would of a
/// server far away.
const VALID: Duration = Duration::from_secs(1);

/// A mounted directory; unmounted when dropped.
pub struct Mirror {
    gate: Arc<Mutex<Gate>>,
    dir: TempDir,
    session: Option<BackgroundSession>,
}

/// Whether requests are answered.
#[derive(Default)]
struct Gate {
    is_shut: bool,
    /// Requests that wait for ever: what would answer them is only kept.
    held: Vec<Box<dyn Any + Send>>,
}

fn locked(gate: &Mutex<Gate>) -> MutexGuard<'_, Gate> {
    gate.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mirror {
    /// Shows a directory, read only.
    pub fn mount(source: &Path) -> Result<Self> {
        let (gate, dir) = (Arc::<Mutex<Gate>>::default(), tempfile::tempdir()?);
        let files = Files { gate: Arc::clone(&gate), paths: Mutex::new(Paths::new(source)) };
        let mut config = Config::default();
        config.mount_options = vec![MountOption::RO, MountOption::Exec, MountOption::FSName("mirror".into())];
        config.acl = SessionACL::All;
        let session = fuser::spawn_mount(files, dir.path(), &config);
        let session = session.with_context(|| format!("mounting {} by FUSE", source.display()))?;
        Ok(Self { gate, dir, session: Some(session) })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Nothing is answered from now on.
    pub fn die(&self) {
        locked(&self.gate).is_shut = true;
    }

    /// Whether someone waits for an answer.
    pub fn has_waiting(&self) -> bool {
        !locked(&self.gate).held.is_empty()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // Lazily, since processes have files of it open; and first, so that nobody comes any more.
        let _status = Command::new("umount").arg("--lazy").arg(self.dir.path()).status();
        let mut gate = locked(&self.gate);
        gate.is_shut = false;
        // Those who wait get an error.
        gate.held.clear();
        drop(gate);
        drop(self.session.take());
    }
}

/// Files by the numbers that the kernel knows them by.
struct Paths {
    by_number: Vec<PathBuf>,
    numbers: HashMap<PathBuf, u64>,
}

impl Paths {
    fn new(root: &Path) -> Self {
        let mut paths = Self { by_number: Vec::new(), numbers: HashMap::new() };
        paths.number(root.to_owned());
        paths
    }

    /// The root is 1.
    fn number(&mut self, path: PathBuf) -> u64 {
        if let Some(known) = self.numbers.get(&path) {
            return *known;
        }
        self.by_number.push(path.clone());
        let number = self.by_number.len() as u64;
        self.numbers.insert(path, number);
        number
    }
}

struct Files {
    gate: Arc<Mutex<Gate>>,
    paths: Mutex<Paths>,
}

impl Files {
    /// The way to answer, unless nothing is answered any more.
    fn passes<R: Send + 'static>(&self, reply: R) -> Option<R> {
        let mut gate = locked(&self.gate);
        if gate.is_shut {
            gate.held.push(Box::new(reply));
            return None;
        }
        Some(reply)
    }

    fn path(&self, number: INodeNo) -> io::Result<PathBuf> {
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let index = usize::try_from(u64::from(number) - 1).map_err(io::Error::other)?;
        paths.by_number.get(index).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn attributes(&self, path: PathBuf) -> io::Result<FileAttr> {
        let data = fs::symlink_metadata(&path)?;
        let number = self.paths.lock().unwrap_or_else(PoisonError::into_inner).number(path);
        Ok(attributes(&data, number))
    }
}

fn attributes(data: &Metadata, number: u64) -> FileAttr {
    let kind = match data.file_type() {
        kind if kind.is_dir() => FileType::Directory,
        kind if kind.is_symlink() => FileType::Symlink,
        _ => FileType::RegularFile,
    };
    FileAttr {
        ino: INodeNo(number),
        size: data.len(),
        blocks: data.blocks(),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: (data.permissions().mode() & 0o7777) as u16,
        nlink: data.nlink() as u32,
        uid: data.uid(),
        gid: data.gid(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}

fn number_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
}

impl Filesystem for Files {
    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let Some(reply) = self.passes(reply) else { return };
        match self.path(parent).and_then(|parent| self.attributes(parent.join(name))) {
            Ok(found) => reply.entry(&VALID, &found, Generation(0)),
            Err(error) => reply.error(number_of(&error)),
        }
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        let Some(reply) = self.passes(reply) else { return };
        match self.path(number).and_then(|path| self.attributes(path)) {
            Ok(found) => reply.attr(&VALID, &found),
            Err(error) => reply.error(number_of(&error)),
        }
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        let Some(reply) = self.passes(reply) else { return };
        match self.path(number).and_then(fs::read_link) {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(error) => reply.error(number_of(&error)),
        }
    }

    fn read(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(reply) = self.passes(reply) else { return };
        let mut bytes = vec![0; size as usize];
        let read = self.path(number).and_then(File::open).and_then(|file| file.read_at(&mut bytes, offset));
        match read {
            Ok(length) => reply.data(&bytes[..length]),
            Err(error) => reply.error(number_of(&error)),
        }
    }
}
