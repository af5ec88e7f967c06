//! Keeps the files open that processes have mapped, and finds those that are copies of each other.
//!
//! A file of a container image has another device in each container. All copies of a file are known by
//! the first one's key, so names and unwind rows are there once. Files of the same size and name are
//! compared byte by byte: many JDKs have no build id, and a target may claim any.
//!
//! What reads a file says so: the process chose the file system that it is on, which may take as long as it
//! likes ([`deadline`]).
//!
//! A file that is open keeps its file system busy. It is closed soon after the last process that used it
//! has ended; until then there may be questions about samples of that process.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::procs::{deadline, quota::Owner};

/// How long a file stays open that no process uses.
const KEEP_OPEN: Duration = Duration::from_secs(5);
/// Larger files are not compared.
const MAX_COMPARED_BYTES: u64 = 128 << 20;
const STEP_BYTES: usize = 256 << 10;
/// Files of one size and name that a new one is compared with.
const MAX_ALIKE: usize = 4;

/// Identity of a file's contents: of the file itself, or of the one that it is a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    device: u64,
    inode: u64,
    size: u64,
    changed_ns: i64,
    changed: i64,
}

impl FileKey {
    /// Asks the file system.
    pub fn of(file: &File) -> io::Result<Self> {
        let data = file.metadata()?;
        Ok(Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.len(),
            changed: data.ctime(),
            changed_ns: data.ctime_nsec(),
        })
    }

    pub const fn bytes(&self) -> u64 {
        self.size
    }

    /// Of the file system that it is on.
    pub const fn device(&self) -> u64 {
        self.device
    }

    #[cfg(test)]
    pub const fn of_test(device: u64) -> Self {
        Self { device, inode: 1, size: 1, changed_ns: 0, changed: 0 }
    }
}

/// A file that was just opened.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    own: FileKey,
    /// Who uses it, if that is not this program.
    owner: Option<Owner>,
}

impl NewFile {
    /// Asks the file system.
    pub fn of(file: File) -> io::Result<Self> {
        Ok(Self { own: FileKey::of(&file)?, file, owner: None })
    }

    /// Found in a process of this owner.
    pub fn used_by(self, owner: Owner) -> Self {
        Self { owner: Some(owner), ..self }
    }

    pub const fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }
}

/// A file and its copies, any of which will do.
#[derive(Clone, Debug)]
pub struct Copies(Vec<(FileKey, Arc<File>)>);

impl Copies {
    /// One to read. If there are several, one that was not changed since they were compared: a target may
    /// change its own. If there is one, whatever became of it: an upgrade that puts another in its
    /// place counts as a change. Asks the file system.
    pub fn readable(&self) -> Option<&File> {
        match self.0.as_slice() {
            [(_, only)] => Some(only),
            _ => self.unchanged(),
        }
    }

    /// One that is as it was when it was opened.
    fn unchanged(&self) -> Option<&File> {
        let is_unchanged = |(own, file): &&(FileKey, Arc<File>)| FileKey::of(file).is_ok_and(|now| now == *own);
        self.0.iter().find(is_unchanged).map(|(_, file)| &**file)
    }
}

/// A file without copies.
impl From<File> for Copies {
    fn from(file: File) -> Self {
        let own = FileKey { device: 0, inode: 0, size: 0, changed_ns: 0, changed: 0 };
        Self(vec![(own, Arc::new(file))])
    }
}

/// A process's use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// By which the file and its copies are known.
    pub key: FileKey,
    /// Of this file alone.
    pub own: FileKey,
}

#[derive(Debug)]
struct OpenFile {
    file: Arc<File>,
    key: FileKey,
    /// Who uses it; `None`: not one owner alone.
    owner: Option<Owner>,
    users: usize,
    unused_since: Option<Instant>,
}

/// What copies have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Looks {
    size: u64,
    module: Arc<str>,
}

/// Files that are open.
#[derive(Debug, Default)]
pub struct OpenFiles {
    /// By their own identity.
    files: HashMap<FileKey, OpenFile>,
    /// Keys of files that look alike and differ.
    alike: HashMap<Looks, Vec<FileKey>>,
}

impl OpenFiles {
    /// One more process uses the file, which has this name.
    pub fn acquire(&mut self, new: NewFile, module: &str) -> Option<FileUse> {
        let (own, owner) = (new.own, new.owner.clone());
        if !self.files.contains_key(&own) {
            let file = Arc::new(new.file);
            let key = self.original_of(own, &file, module, new.owner.as_ref());
            self.files.insert(own, OpenFile { file, key, owner: new.owner, users: 0, unused_since: None });
        }
        let known = self.files.get_mut(&own)?;
        if known.owner != owner {
            known.owner = None;
        }
        known.users += 1;
        known.unused_since = None;
        Some(FileUse { key: known.key, own })
    }

    /// One process less uses it.
    pub fn release(&mut self, file: FileUse, now: Instant) {
        if let Some(known) = self.files.get_mut(&file.own) {
            known.users = known.users.saturating_sub(1);
            if known.users == 0 {
                known.unused_since = Some(now);
            }
        }
    }

    /// Closes files that were not used for long. Their keys are no longer given to copies.
    pub fn close_unused(&mut self, now: Instant) {
        // The file system is told, and may hang. What has no thread to wait for that stays open.
        let is_kept = |file: &OpenFile| {
            file.unused_since.is_none_or(|since| now.duration_since(since) < KEEP_OPEN)
                || !deadline::has_room(file.owner.as_ref())
        };
        if self.files.values().all(is_kept) {
            return;
        }
        let mut closed: Vec<OpenFile> = self.files.extract_if(|_, file| !is_kept(file)).map(|(_, file)| file).collect();
        closed.sort_by(|a, b| a.owner.cmp(&b.owner));
        while let Some(owner) = closed.last().map(|file| file.owner.clone()) {
            let of_one = closed.split_off(closed.partition_point(|file| file.owner < owner));
            let _closing = deadline::begin(owner.as_ref(), move || drop(of_one));
        }
        let files = &self.files;
        self.alike.retain(|_, keys| {
            keys.retain(|key| files.values().any(|file| file.key == *key));
            !keys.is_empty()
        });
    }

    /// Of all open files.
    pub fn keys(&self) -> HashSet<FileKey> {
        self.files.values().map(|file| file.key).collect()
    }

    /// The file with this key and its copies, if any is open.
    pub fn get(&self, key: FileKey) -> Option<Copies> {
        let known = self.files.iter().filter(|(_, open)| open.key == key);
        let copies: Vec<_> = known.map(|(own, open)| (*own, Arc::clone(&open.file))).collect();
        (!copies.is_empty()).then_some(Copies(copies))
    }

    /// The key of the file that this one is a copy of; its own if there is none, or if it is not known
    /// in time.
    fn original_of(&mut self, own: FileKey, file: &Arc<File>, module: &str, owner: Option<&Owner>) -> FileKey {
        if own.size > MAX_COMPARED_BYTES {
            return own;
        }
        let looks = Looks { size: own.size, module: module.into() };
        let keys = self.alike.get(&looks).into_iter().flatten();
        let known: Vec<(FileKey, Copies)> = keys.filter_map(|key| Some((*key, self.get(*key)?))).collect();
        if !known.is_empty() {
            let file = Arc::clone(file);
            let is_copy = move |copies: &Copies| {
                copies.unchanged().is_some_and(|known| are_equal(known, &file, own.size).unwrap_or(false))
            };
            let find = move || known.iter().find(|(_, copies)| is_copy(copies)).map(|(key, _)| *key);
            if let Ok(Some(original)) = deadline::within_deadline(owner, find) {
                return original;
            }
        }
        let alike = self.alike.entry(looks).or_default();
        if alike.len() < MAX_ALIKE {
            alike.push(own);
        }
        own
    }
}

fn are_equal(one: &File, other: &File, size: u64) -> io::Result<bool> {
    let [mut left, mut right] = [vec![0; STEP_BYTES], vec![0; STEP_BYTES]];
    let mut at = 0;
    while at < size {
        let step = usize::try_from(size - at).unwrap_or(usize::MAX).min(STEP_BYTES);
        let (left, right) = (&mut left[..step], &mut right[..step]);
        one.read_exact_at(left, at)?;
        other.read_exact_at(right, at)?;
        if left != right {
            return Ok(false);
        }
        at += step as u64;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn copy(change: impl FnOnce(&mut Vec<u8>)) -> File {
        // Any program will do, of a size that is compared: this one may be too large.
        let mut bytes = std::fs::read("/bin/sh").unwrap();
        change(&mut bytes);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    fn same(_: &mut Vec<u8>) {}

    fn acquire(files: &mut OpenFiles, file: File, module: &str) -> FileUse {
        files.acquire(NewFile::of(file).unwrap(), module).unwrap()
    }

    fn last_byte(bytes: &mut Vec<u8>) {
        let last = bytes.pop().unwrap();
        bytes.push(last ^ 1);
    }

    #[test]
    fn copies_have_the_key_of_the_first() {
        let mut files = OpenFiles::default();
        let first = acquire(&mut files, copy(same), "x");
        let second = acquire(&mut files, copy(same), "x");
        assert_eq!(first.key, second.key);
        assert_ne!(first, second);
        let others = [(copy(last_byte), "x"), (copy(|bytes| bytes.push(0)), "x"), (copy(same), "another name")];
        for (file, module) in others {
            assert_ne!(acquire(&mut files, file, module).key, first.key, "{module}");
        }
        let changed = acquire(&mut files, copy(last_byte), "x");
        assert_eq!(acquire(&mut files, copy(last_byte), "x").key, changed.key);
    }

    /// A target may change its own copy, and not what others have.
    #[test]
    fn a_copy_that_was_changed_stands_for_no_other() {
        let mut files = OpenFiles::default();
        let hostile = copy(same);
        let (changing, honest) = (hostile.try_clone().unwrap(), copy(same));
        let honest_own = FileKey::of(&honest).unwrap();
        let first = acquire(&mut files, hostile, "x");
        assert_eq!(acquire(&mut files, honest, "x").key, first.key);
        changing.write_all_at(b"changed", 0x1000).unwrap();
        assert_eq!(FileKey::of(files.get(first.key).unwrap().readable().unwrap()).unwrap(), honest_own);
    }

    /// Or one could show bad rows first, and then become a copy of what others have.
    #[test]
    fn a_file_that_became_equal_is_no_original() {
        let mut files = OpenFiles::default();
        let hostile = copy(last_byte);
        let changing = hostile.try_clone().unwrap();
        let first = acquire(&mut files, hostile, "x");
        let honest = copy(same);
        let mut last = [0];
        honest.read_exact_at(&mut last, first.own.size - 1).unwrap();
        changing.write_all_at(&last, first.own.size - 1).unwrap();
        assert_ne!(acquire(&mut files, honest, "x").key, first.key);
    }

    #[test]
    fn a_file_that_was_replaced_under_its_process_keeps_its_names() {
        let mut files = OpenFiles::default();
        let mut named = tempfile::NamedTempFile::new().unwrap();
        named.write_all(b"of the old version").unwrap();
        let used = acquire(&mut files, File::open(named.path()).unwrap(), "x");
        // It has one name less.
        std::fs::remove_file(named.path()).unwrap();
        assert!(files.get(used.key).is_some());
    }

    #[test]
    fn a_file_is_closed_when_the_last_process_has_been_gone_for_long() {
        let mut files = OpenFiles::default();
        let start = Instant::now();
        let [first, second] = [(); 2].map(|()| acquire(&mut files, copy(same), "x"));
        let reopened = files.files[&first.own].file.try_clone().unwrap();
        let again = acquire(&mut files, reopened, "x");
        assert_eq!(again, first);
        files.release(first, start);
        files.close_unused(start + 2 * KEEP_OPEN);
        assert_eq!(files.files.len(), 2, "another process uses it");
        files.release(again, start);
        files.close_unused(start + KEEP_OPEN / 2);
        assert_eq!(files.files.len(), 2, "there may be questions");
        files.close_unused(start + KEEP_OPEN);
        assert_eq!(files.files.keys().collect::<Vec<_>>(), [&second.own]);
        assert!(files.get(first.key).is_some(), "the copy is still open");
        assert_eq!(acquire(&mut files, copy(same), "x").key, first.key);
        files.release(second, start);
        let keys: Vec<FileKey> = files.files.keys().copied().collect();
        assert_eq!(keys.len(), 2);
    }

    #[test]
    fn a_file_is_compared_with_few_others() {
        let mut files = OpenFiles::default();
        let made = |number: u8| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&[number]).unwrap();
            file
        };
        let count = u8::try_from(MAX_ALIKE).unwrap() + 1;
        let keys: Vec<FileKey> = (0..count).map(|number| acquire(&mut files, made(number), "x").key).collect();
        assert_eq!(acquire(&mut files, made(0), "x").key, keys[0]);
        assert_ne!(acquire(&mut files, made(count - 1), "x").key, keys[MAX_ALIKE]);
    }
}
