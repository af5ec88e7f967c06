//! Lays out the files of a package, with modes that do not depend on this machine.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use joular_tests::paths;
use tempfile::TempDir;

use crate::{shell, target::Processor};

/// Shells, and where packages keep their completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/joular-bpf"),
    ("zsh", "usr/share/zsh/vendor-completions/_joular-bpf"),
    ("fish", "usr/share/fish/vendor_completions.d/joular-bpf.fish"),
];

/// Files of a package, in a directory that goes when this is dropped.
pub struct Tree(TempDir);

impl Tree {
    pub fn new() -> Result<Self> {
        let directory = tempfile::tempdir().context("making a temporary directory")?;
        set_mode(directory.path(), 0o755)?;
        Ok(Self(directory))
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Makes a directory.
    pub fn directory(&self, path: &str, mode: u32) -> Result<()> {
        self.parents(Path::new(path))?;
        let path = self.root().join(path);
        fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        set_mode(&path, mode)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        self.write_as(path, content, 0o644)
    }

    /// For programs.
    pub fn write_executable(&self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        self.write_as(path, content, 0o755)
    }

    /// Copies a file of the source tree.
    pub fn copy(&self, source: &str, path: &str) -> Result<()> {
        self.write(path, read(&paths::root().join(source))?)
    }

    /// Copies a directory of the source tree, with all that is in it.
    pub fn copy_all(&self, source: &str, path: &str) -> Result<()> {
        for (file, name) in files_below(&paths::root().join(source))? {
            self.write(&format!("{path}/{name}"), read(&file)?)?;
        }
        Ok(())
    }

    /// Completions for shells, which the program makes, where the system looks for them, below `prefix`.
    pub fn completions(&self, program: &Path, prefix: &str) -> Result<()> {
        COMPLETIONS.iter().try_for_each(|(shell, path)| {
            self.write(&format!("{prefix}{path}"), shell::capture(Command::new(program).args(["completions", shell]))?)
        })
    }

    /// Manual pages, which the program makes.
    pub fn manual(
        &self,
        program: &Path,
        path: &str,
        store: impl Fn(Vec<u8>) -> Result<Vec<u8>>,
        end: &str,
    ) -> Result<()> {
        let made = tempfile::tempdir().context("making a temporary directory")?;
        shell::run(Command::new(program).args(["man", "--output"]).arg(made.path()))?;
        for (file, name) in files_below(made.path())? {
            self.write(&format!("{path}/{name}{end}"), store(read(&file)?)?)?;
        }
        Ok(())
    }

    /// Packs one of its directories, compressed.
    pub fn pack(&self, name: &str, archive: &Path, epoch: u64) -> Result<()> {
        let packed = self.root().join("packed.tar");
        pack(self.root(), name, &packed, epoch)?;
        fs::write(archive, gzip(&read(&packed)?)?).with_context(|| format!("writing {}", archive.display()))
    }

    fn write_as(&self, path: &str, content: impl AsRef<[u8]>, mode: u32) -> Result<()> {
        self.parents(Path::new(path))?;
        let path = self.root().join(path);
        fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        set_mode(&path, mode)
    }

    /// Directories above a path: whatever this process's umask is, all may read them.
    fn parents(&self, path: &Path) -> Result<()> {
        let mut parents: Vec<&Path> =
            path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()).collect();
        parents.reverse();
        for parent in parents {
            let parent = self.root().join(parent);
            if !parent.exists() {
                fs::create_dir(&parent).with_context(|| format!("creating {}", parent.display()))?;
                set_mode(&parent, 0o755)?;
            }
        }
        Ok(())
    }
}

/// Packs a directory: entries in order, owned by root, all of one time.
pub fn pack(directory: &Path, name: &str, archive: &Path, epoch: u64) -> Result<()> {
    let ownership = ["--owner=0", "--group=0", "--numeric-owner"];
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name"]).args(ownership).arg(format!("--mtime=@{epoch}"));
    shell::run(tar.arg("--file").arg(archive).arg("--directory").arg(directory).arg(name))
}

/// What gzip makes of it, without a name and a time.
pub fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let file = directory.path().join("content");
    fs::write(&file, content).with_context(|| format!("writing {}", file.display()))?;
    shell::run(Command::new("gzip").args(["--best", "--no-name"]).arg(&file))?;
    read(&directory.path().join("content.gz"))
}

/// A program without its symbols: what is handed out is small, whatever it was made of.
pub fn stripped(program: &Path, processor: Processor) -> Result<Vec<u8>> {
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let file = directory.path().join("program");
    shell::run(
        Command::new(processor.tool("strip")).args(["--remove-section=.comment", "-o"]).arg(&file).arg(program),
    )?;
    read(&file)
}

/// SHA-256 in hexadecimal digits.
pub fn sha256(content: &[u8]) -> Result<String> {
    let directory = tempfile::tempdir().context("making a temporary directory")?;
    let file = directory.path().join("content");
    fs::write(&file, content).with_context(|| format!("writing {}", file.display()))?;
    let sum = shell::capture(Command::new("sha256sum").arg(&file))?;
    Ok(sum.split_whitespace().next().context("sha256sum says nothing")?.to_owned())
}

pub fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("reading {}", file.display()))
}

/// Files in a directory and all below it, with their names from there.
pub fn files_below(directory: &Path) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("listing {}", next.display()))? {
            let path = entry.with_context(|| format!("listing {}", next.display()))?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(directory).context("a file is in its directory")?;
                let name = name.to_string_lossy().into_owned();
                found.push((path, name));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .with_context(|| format!("setting mode of {}", path.display()))
}
