//! Starts programs of which the kernel has much to tell: they fork, or take new names, as often as they are told to.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::{native, process::Running};

const STARTED: Duration = Duration::from_secs(20);

/// A program that does nothing and needs no library, so that as many start as a machine can start.
const NOTHING: &str = "nothing";

/// The compiled program, removed when dropped.
pub struct Strangers {
    directory: TempDir,
}

impl Strangers {
    pub fn new() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        native::compile("stranger.c", &directory.path().join("stranger"))?;
        native::compile_static("nothing.c", &directory.path().join(NOTHING))?;
        Ok(Self { directory })
    }

    pub fn program(&self) -> PathBuf {
        self.directory.path().join("stranger")
    }

    /// A program that does such things for some seconds.
    pub fn start(&self, what: &str, per_second: u32, seconds: u64) -> Result<Running> {
        start(Command::new(self.program()), (what, per_second, seconds), Some(&self.directory.path().join(NOTHING)))
    }

    /// The same program by another name.
    pub fn named(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        fs::copy(self.program(), &path).with_context(|| format!("copying to {}", path.display()))?;
        Ok(path)
    }
}

/// Starts the program, which may have another name; `executed` is what it executes.
pub fn start(
    mut stranger: Command,
    (what, per_second, seconds): (&str, u32, u64),
    executed: Option<&Path>,
) -> Result<Running> {
    stranger.args([what.to_owned(), per_second.to_string(), seconds.to_string()]).args(executed);
    let mut stranger = Running::spawn("strangers", &mut stranger)?;
    stranger.wait_stdout("ready", STARTED)?;
    Ok(stranger)
}
