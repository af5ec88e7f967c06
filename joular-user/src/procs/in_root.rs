//! Finds what stands at a path within a directory that counts as the root: links and `..` do not lead out of it.
//!
//! The kernel can do that (`openat2` with `RESOLVE_IN_ROOT`). A filter of system calls may refuse it, because it cannot look
//! at its arguments, which are in memory: systemd's `RestrictSUIDSGID=` answers that there is no such call. There the path
//! is walked component by component. Each directory on it is held open, and `..` goes back to the one before, so it does not
//! matter what the owner of the files moves meanwhile.

use std::{
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use rustix::{
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat},
    io::{Errno, Result},
};

/// As many links as the kernel follows in one path.
const MAX_LINKS: usize = 40;
/// Directories that are held at once: as many components as fit in a path of the kernel have.
const MAX_HELD: usize = 2048;

/// Whether a path may lead through symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Refuse,
    /// Followed, but `/` and `..` stay inside the root.
    WithinRoot,
}

/// A mere location (`O_PATH`): nothing was opened that could act. With [`Links::Refuse`], a link is the error `LOOP`.
pub fn locate(root: BorrowedFd<'_>, path: &Path, links: Links) -> Result<OwnedFd> {
    let mut resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    if links == Links::Refuse {
        resolve |= ResolveFlags::NO_SYMLINKS;
    }
    match openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Err(Errno::NOSYS) => walk(root, path, links),
        located => located,
    }
}

fn walk(root: BorrowedFd<'_>, path: &Path, links: Links) -> Result<OwnedFd> {
    let open = |directory: BorrowedFd<'_>, name: &[u8]| {
        openat(directory, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    };
    let kind = |found: &OwnedFd| Ok::<_, Errno>(FileType::from_raw_mode(fstat(found)?.st_mode));
    let mut held: Vec<OwnedFd> = Vec::new();
    // The next step is the last one.
    let mut rest = steps(path.as_os_str().as_bytes());
    let mut followed = 0;
    while let Some(step) = rest.pop() {
        if step != ROOT && held.last().map(kind).transpose()?.is_some_and(|kind| kind != FileType::Directory) {
            return Err(Errno::NOTDIR);
        }
        match step.as_slice() {
            ROOT => held.clear(),
            b"." => {}
            b".." => drop(held.pop()),
            name => {
                let found = open(held.last().map_or(root, |directory| directory.as_fd()), name)?;
                if kind(&found)? != FileType::Symlink {
                    held.push(found);
                } else if links == Links::Refuse || followed == MAX_LINKS {
                    return Err(Errno::LOOP);
                } else {
                    followed += 1;
                    rest.extend(steps(readlinkat(&found, "", Vec::new())?.as_bytes()));
                }
            }
        }
        if held.len() + rest.len() > MAX_HELD {
            return Err(Errno::NAMETOOLONG);
        }
    }
    held.pop().map_or_else(|| open(root, b"."), Ok)
}

const ROOT: &[u8] = b"/";

/// The steps of a path, the last one first. A slash at the end demands a directory, as a dot does.
fn steps(path: &[u8]) -> Vec<Vec<u8>> {
    let mut steps: Vec<Vec<u8>> = Vec::new();
    steps.extend(path.ends_with(b"/").then(|| b".".to_vec()));
    let names = path.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty());
    steps.extend(names.map(<[u8]>::to_vec));
    steps.extend(path.starts_with(b"/").then(|| ROOT.to_vec()));
    steps
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::{fd::AsFd as _, unix::fs::symlink},
    };

    use proptest::prelude::*;

    use super::*;

    /// Device and inode of what is found, or the error.
    fn found(located: Result<OwnedFd>) -> std::result::Result<(u64, u64), Errno> {
        located.and_then(fstat).map(|stat| (stat.st_dev, stat.st_ino))
    }

    /// A root with directories, files, and links that lead in, out, up and round, in a directory that has more.
    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        fs::write(directory.path().join("f"), "outside").unwrap();
        for file in ["f", "a/f", "a/b/f", "a/b/c/f"] {
            fs::write(root.join(file), file).unwrap();
        }
        for (target, link) in [
            ("/a/b", "down"),
            ("a/../../..", "up"),
            ("../../../../f", "a/b/out"),
            ("/", "a/b/c/top"),
            (".", "a/here"),
            ("round", "round"),
            ("none", "a/none"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        directory
    }

    #[test]
    fn a_link_that_leads_out_of_the_root_leads_to_what_is_within() {
        let directory = tree();
        let root = fs::File::open(directory.path().join("root")).unwrap();
        let own = found(openat(&root, "f", OFlags::PATH, Mode::empty()));
        for path in ["a/b/out", "/../../f", "up/f", "down/c/top/up/../f"] {
            assert_eq!(found(walk(root.as_fd(), Path::new(path), Links::WithinRoot)), own, "{path}");
        }
        assert_eq!(found(walk(root.as_fd(), Path::new("a/b/out"), Links::Refuse)), Err(Errno::LOOP));
        assert_eq!(found(walk(root.as_fd(), Path::new("round"), Links::WithinRoot)), Err(Errno::LOOP));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn a_walk_finds_what_the_kernel_finds(
            steps in prop::collection::vec(
                prop::sample::select(vec!["a", "b", "c", "f", "..", ".", "down", "up", "out", "top", "here", "round", "none"]),
                0..8,
            ),
            begins: bool,
            ends: bool,
            is_refused: bool,
        ) {
            thread_local!(static TREE: tempfile::TempDir = tree());
            let root = TREE.with(|tree| fs::File::open(tree.path().join("root"))).unwrap();
            let [begin, end] = [begins, ends].map(|has_slash| if has_slash { "/" } else { "" });
            let path = format!("{begin}{}{end}", steps.join("/"));
            let links = if is_refused { Links::Refuse } else { Links::WithinRoot };
            let path = Path::new(if path.is_empty() { "." } else { &path });
            let (own, kernels) = (found(walk(root.as_fd(), path, links)), found(locate(root.as_fd(), path, links)));
            prop_assert_eq!(own, kernels, "{}", path.display());
        }
    }
}
