//! Mounts a small tmpfs, for disks that fill up.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// A tmpfs on a temporary directory; unmounted and removed when dropped.
pub struct Tmpfs {
    dir: TempDir,
}

impl Tmpfs {
    /// `options` as in mount(8), such as `size=256k` or `size=256k,ro`.
    pub fn mount(options: &str) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir.path()).status();
        ensure!(status.context("starting mount")?.success(), "mounting a tmpfs with {options} failed");
        Ok(Self { dir })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily, since a process that is being killed may still hold it.
        let _status = Command::new("umount").arg("--lazy").arg(self.dir.path()).status();
    }
}
