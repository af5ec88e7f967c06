//! Starts programs that look like JVMs and are hostile: what their tables are made of does not come, or has no end.

use std::{
    fs,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::{fuse::Mirror, native, process::Running};

const STARTED: Duration = Duration::from_secs(20);
/// The user whose processes need not be trusted.
pub const NOBODY: u32 = 65_534;
/// A file of one page in the directory.
pub const PAGE: &str = "page";

/// The compiled program and its library, removed when dropped.
pub struct Fakes {
    directory: TempDir,
    name: String,
}

impl Fakes {
    pub fn new() -> Result<Self> {
        Self::named("program")
    }

    /// Programs of this name.
    pub fn named(name: &str) -> Result<Self> {
        let fakes = Self { directory: tempfile::tempdir()?, name: name.to_owned() };
        native::compile("hostile_jvm.c", &fakes.path(name))?;
        native::compile_library("hostile_jvm.c", "LIBJVM", &fakes.path("libjvm.so"))?;
        fs::write(fakes.path(PAGE), [0; 4096]).context("writing a page")?;
        // Any user may start them.
        fs::set_permissions(fakes.directory.path(), fs::Permissions::from_mode(0o755))
            .context("opening a directory")?;
        Ok(fakes)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory, by way of a file system that can stop to answer.
    pub fn mirror(&self) -> Result<Mirror> {
        Mirror::mount(self.directory.path())
    }

    /// Starts one that shows a file's contents, which may not come, or what never ends (`-`).
    pub fn start(&self, shown: &Path) -> Result<Running> {
        self.run(&mut Command::new(self.path(&self.name)), shown, &[])
    }

    /// The same as another user.
    pub fn start_as(&self, user: u32, shown: &Path) -> Result<Running> {
        self.run(Command::new(self.path(&self.name)).uid(user).gid(user), shown, &[])
    }

    /// The same, of one that rests nearly all the time, so that a machine has room for hundreds.
    pub fn start_resting_as(&self, user: u32, shown: &Path) -> Result<Running> {
        self.run(Command::new(self.path(&self.name)).uid(user).gid(user), shown, &["rests"])
    }

    fn run(&self, command: &mut Command, shown: &Path, more: &[&str]) -> Result<Running> {
        command.arg(shown).arg(self.path("libjvm.so")).arg("x".repeat(20_000)).args(more);
        let mut fake = Running::spawn("a hostile program", command)?;
        fake.wait_stdout("ready", STARTED)?;
        Ok(fake)
    }
}
