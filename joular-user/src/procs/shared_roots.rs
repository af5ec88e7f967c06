//! Holds the root of targets open once for all processes that have the same, because a machine may have more
//! processes than a process may have open files.

use std::{
    collections::BTreeMap,
    os::fd::{AsRawFd as _, BorrowedFd},
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use joular_data::model::units::Pid;
use rustix::{
    fs::{AtFlags, StatxFlags, statx},
    process::{Resource, getrlimit},
};

use super::namespaces::TargetRoot;

use crate::bounds::Bound;

/// Open files that are left for everything else: without them no program could be attached.
const RESERVED: u64 = 512;

pub static OPEN_ROOTS: Bound = Bound::new(
    "roots_not_kept_open",
    RESERVED,
    "open files must be left to this program (`prlimit --nofile`)",
    "the root of a process is not kept open beyond that: code is named while it is mapped, and no perf map is read",
);

/// A directory: its mount, device and inode. Mounts of all namespaces have different ids.
type Directory = (u64, u32, u32, u64);

/// A root and its `/tmp`.
type Place = (Directory, Option<Directory>);

static ROOTS: Mutex<BTreeMap<Place, Weak<TargetRoot>>> = Mutex::new(BTreeMap::new());

/// The root of a process. `None`: it has ended, may not be looked at, or too many files are open already.
pub fn open(proc_root: &Path, pid: Pid) -> Option<Arc<TargetRoot>> {
    let root = TargetRoot::open(proc_root, pid).ok()?;
    let Some(place) = place(&root) else { return kept(root) };
    let mut roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = roots.get(&place).and_then(Weak::upgrade) {
        return Some(known);
    }
    roots.retain(|_, root| root.strong_count() > 0);
    let root = kept(root)?;
    roots.insert(place, Arc::downgrade(&root));
    Some(root)
}

/// The lowest free number is what a file gets, so numbers tell how many are open.
fn kept(root: TargetRoot) -> Option<Arc<TargetRoot>> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let number = u64::try_from(root.directory().as_raw_fd()).unwrap_or(0);
    let has_room = number < limit.saturating_sub(RESERVED.min(limit / 2));
    OPEN_ROOTS.cut(u64::from(!has_room));
    has_room.then(|| Arc::new(root))
}

/// `None` if the kernel does not list mounts (before Linux 5.8).
fn place(root: &TargetRoot) -> Option<Place> {
    let tmp = root.tmp().map(directory);
    match tmp {
        Some(None) => None,
        tmp => Some((directory(root.directory())?, tmp.flatten())),
    }
}

fn directory(handle: BorrowedFd<'_>) -> Option<Directory> {
    let found = statx(handle, "", AtFlags::EMPTY_PATH, StatxFlags::INO | StatxFlags::MNT_ID).ok()?;
    let has_mount = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    has_mount.then_some((found.stx_mnt_id, found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn processes_with_the_same_root_and_tmp_share_a_handle_and_others_do_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for root in ["a", "b"] {
            fs::create_dir_all(path(root).join("tmp")).unwrap();
        }
        for (pid, root) in [("1", "a"), ("2", "a"), ("3", "b")] {
            fs::create_dir(path(pid)).unwrap();
            symlink(path(root), path(pid).join("root")).unwrap();
        }
        let of = |pid| open(directory.path(), Pid(pid)).unwrap();
        let (first, second, third) = (of(1), of(2), of(3));
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &third));
        fs::rename(path("a/tmp"), path("a/old")).unwrap();
        fs::create_dir(path("a/tmp")).unwrap();
        assert!(!Arc::ptr_eq(&first, &of(1)), "another /tmp has come");
        assert!(open(directory.path(), Pid(4)).is_none());
    }
}
