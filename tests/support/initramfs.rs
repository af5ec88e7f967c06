//! Makes a file system for a virtual machine to start with: a cpio archive ("newc").

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

#[derive(Default)]
pub struct Initramfs {
    bytes: Vec<u8>,
    /// Paths that are in it already.
    paths: BTreeSet<PathBuf>,
}

impl Initramfs {
    pub fn directory(&mut self, path: &str) {
        self.add(Path::new(path), DIRECTORY, &[]);
    }

    pub fn file(&mut self, path: &str, bytes: &[u8]) {
        self.add(Path::new(path), PROGRAM, bytes);
    }

    /// A program of this machine, with the libraries that it is linked with.
    pub fn program(&mut self, path: &str, program: &Path) -> Result<()> {
        self.copy(Path::new(path), program)?;
        self.libraries(program)
    }

    /// Everything below a directory of this machine.
    pub fn tree(&mut self, path: &Path, dir: &Path) -> Result<()> {
        for entry in fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
            let (from, to) =
                (entry.as_ref().map(fs::DirEntry::path), entry.as_ref().map(|entry| path.join(entry.file_name())));
            let (Ok(from), Ok(to)) = (from, to) else { continue };
            if from.is_dir() { self.tree(&to, &from)? } else { self.copy(&to, &from)? }
        }
        Ok(())
    }

    /// All of a root directory of this machine, with its links and modes.
    pub fn whole(&mut self, root: &Path) -> Result<()> {
        self.whole_at("/", root)
    }

    /// All of a directory of this machine at a path, with its links and modes.
    pub fn whole_at(&mut self, path: &str, directory: &Path) -> Result<()> {
        self.whole_below(Path::new(path), directory, directory)
    }

    /// A symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.add(Path::new(path), LINK, target.as_bytes());
    }

    fn whole_below(&mut self, at: &Path, root: &Path, directory: &Path) -> Result<()> {
        for entry in fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))? {
            let path = entry.with_context(|| format!("listing {}", directory.display()))?.path();
            let context = || format!("reading {}", path.display());
            let metadata = fs::symlink_metadata(&path).with_context(context)?;
            let (to, kind) = (at.join(path.strip_prefix(root)?), metadata.file_type());
            if kind.is_symlink() {
                let target = fs::read_link(&path).with_context(context)?;
                self.add(&to, LINK, target.as_os_str().as_encoded_bytes());
            } else if kind.is_dir() {
                self.add(&to, metadata.mode(), &[]);
                self.whole_below(at, root, &path)?;
            } else if kind.is_file() {
                self.add(&to, metadata.mode(), &fs::read(&path).with_context(context)?);
            }
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The libraries that the dynamic linker finds for a program, where it finds them.
    pub fn libraries(&mut self, program: &Path) -> Result<()> {
        let output = Command::new("ldd").arg(program).output().context("starting ldd")?;
        ensure!(output.status.success(), "ldd {}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
        // `libm.so.6 => /lib/…/libm.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let place = line.split_once("=> ").map_or(line, |(_, place)| place).trim();
            if let Some(path) = place.split(' ').next().map(Path::new).filter(|path| path.is_absolute()) {
                self.copy(path, path)?;
            }
        }
        Ok(())
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn copy(&mut self, to: &Path, from: &Path) -> Result<()> {
        let bytes = fs::read(from).with_context(|| format!("reading {}", from.display()))?;
        self.add(to, PROGRAM, &bytes);
        Ok(())
    }

    /// Adds it with the directories above it, unless it is there.
    fn add(&mut self, path: &Path, mode: u32, bytes: &[u8]) {
        let path = path.strip_prefix("/").unwrap_or(path);
        let mut above: Vec<&Path> = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()).collect();
        above.reverse();
        for dir in above {
            if self.paths.insert(dir.to_owned()) {
                self.entry(&dir.to_string_lossy(), DIRECTORY, &[]);
            }
        }
        if self.paths.insert(path.to_owned()) {
            self.entry(&path.to_string_lossy(), mode, bytes);
        }
    }

    /// Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) {
        let inode = self.paths.len();
        let mut header = String::from("070701");
        let fields = [inode, mode as usize, 0, 0, 1, 0, bytes.len(), 0, 0, 0, 0, name.len() + 1, 0];
        header.extend(fields.map(|field| format!("{field:08x}")));
        self.bytes.extend(header.as_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(bytes);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_each_path_is_there_once() {
        let mut root = Initramfs::default();
        root.file("/bin/a", b"abc");
        root.file("/bin/a", b"other");
        root.file("/bin/b", b"");
        let bytes = root.finish();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(bytes.len() % 4, 0);
        // bin, bin/a, bin/b and the trailer.
        assert_eq!(text.matches("070701").count(), 4, "{text}");
        assert!(text.contains("abc") && !text.contains("other"));
    }
}
