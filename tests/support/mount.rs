//! Mounts file systems: a small tmpfs, for disks that fill up, and overlays, as containers have them.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

/// A tmpfs on a temporary directory; unmounted and removed when dropped.
pub struct Tmpfs {
    dir: TempDir,
    /// Empty files that it was filled with.
    files: AtomicU64,
}

impl Tmpfs {
    /// `options` as in mount(8), such as `size=256k` or `size=256k,ro`.
    pub fn mount(options: &str) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let status = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(dir.path()).status();
        ensure!(status.context("starting mount")?.success(), "mounting a tmpfs with {options} failed");
        Ok(Self { dir, files: AtomicU64::new(0) })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes until nothing more fits.
    pub fn fill(&self) -> Result<()> {
        let mut file = File::create(self.filler()).context("creating the filler")?;
        for size in [65536, 4096, 1] {
            while file.write(&[0; 65536][..size]).is_ok_and(|written| written > 0) {}
        }
        Ok(())
    }

    /// Makes empty files until there can be no more.
    pub fn fill_with_files(&self) -> Result<()> {
        fs::create_dir(self.filler()).context("creating the filler")?;
        while File::create(self.filler().join(self.files.fetch_add(1, Ordering::Relaxed).to_string())).is_ok() {}
        Ok(())
    }

    /// Removes what [`Self::fill`] or [`Self::fill_with_files`] wrote.
    pub fn make_room(&self) -> Result<()> {
        let filler = self.filler();
        let removed = if filler.is_dir() { fs::remove_dir_all(filler) } else { fs::remove_file(filler) };
        removed.context("removing the filler")
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily, since a process that is being killed may still hold it.
        let _status = Command::new("umount").arg("--lazy").arg(self.dir.path()).status();
    }
}

/// A directory as a container of its image has it: an overlay with a device number of its own; unmounted
/// when dropped.
pub struct Overlay {
    /// Of the upper layer, and the mount point.
    layers: Tmpfs,
    is_mounted: bool,
}

impl Overlay {
    pub fn mount(image: &Path) -> Result<Self> {
        let layers = Tmpfs::mount("size=1m")?;
        let [upper, work, merged] = ["upper", "work", "merged"].map(|name| layers.path().join(name));
        for directory in [&upper, &work, &merged] {
            fs::create_dir(directory).with_context(|| format!("creating {}", directory.display()))?;
        }
        let options = format!("lowerdir={},upperdir={},workdir={}", image.display(), upper.display(), work.display());
        let status = Command::new("mount").args(["-t", "overlay", "-o", &options, "overlay"]).arg(&merged).status();
        ensure!(status.context("starting mount")?.success(), "mounting an overlay with {options} failed");
        Ok(Self { layers, is_mounted: true })
    }

    pub fn path(&self) -> PathBuf {
        self.layers.path().join("merged")
    }

    /// Whether nobody uses it any more, and it is unmounted.
    pub fn try_unmount(&mut self) -> Result<bool> {
        if self.is_mounted {
            let output = Command::new("umount").arg(self.path()).output().context("starting umount")?;
            self.is_mounted = !output.status.success();
        }
        Ok(!self.is_mounted)
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        if self.is_mounted {
            let _status = Command::new("umount").arg("--lazy").arg(self.path()).status();
        }
    }
}
