//! Runs programs on a terminal of tmux, types keys there, and reads what is on the screen.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::clock::wait_for;

const LIMIT: Duration = Duration::from_secs(30);

pub fn is_installed() -> bool {
    Command::new("tmux").arg("-V").output().is_ok()
}

/// A terminal with a shell; it ends when dropped.
pub struct Terminal {
    folder: TempDir,
}

impl Terminal {
    /// A terminal of this size, which says that it is a `term`, or what tmux is.
    pub fn open(width: u16, height: u16, term: Option<&str>) -> Result<Self> {
        let terminal = Self { folder: tempfile::tempdir()? };
        let size = ["-x", &width.to_string(), "-y", &height.to_string()].map(str::to_owned);
        let shell = term.map_or_else(|| "exec sh".to_owned(), |term| format!("TERM={term} exec sh"));
        let start = ["-f", "/dev/null", "new-session", "-d"].map(str::to_owned).into_iter().chain(size).chain([shell]);
        terminal.tmux(&start.collect::<Vec<_>>())?;
        Ok(terminal)
    }

    /// Types a text, and Enter.
    pub fn run(&self, line: &str) -> Result<()> {
        self.tmux(&["send-keys", "-l", line].map(str::to_owned))?;
        self.keys(&["Enter"])
    }

    /// Types keys by tmux's names: `a`, `Enter`, `Escape`, `C-c`.
    pub fn keys(&self, keys: &[&str]) -> Result<()> {
        let arguments = ["send-keys"].iter().chain(keys).map(|&key| key.to_owned());
        self.tmux(&arguments.collect::<Vec<_>>()).map(drop)
    }

    pub fn resize(&self, width: u16, height: u16) -> Result<()> {
        let size = ["resize-window", "-x", &width.to_string(), "-y", &height.to_string()].map(str::to_owned);
        self.tmux(&size).map(drop)
    }

    /// What is on the screen.
    pub fn screen(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"].map(str::to_owned))
    }

    /// What was scrolled away, as far as it is kept, and what is on the screen.
    pub fn history(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p", "-S", "-1000"].map(str::to_owned))
    }

    /// Whether a program has the alternate screen.
    pub fn is_alternate(&self) -> Result<bool> {
        Ok(self.tmux(&["display-message", "-p", "#{alternate_on}"].map(str::to_owned))?.trim() == "1")
    }

    /// Waits until the screen is as wanted; returns it.
    pub fn wait(&self, what: &str, is_wanted: impl Fn(&str) -> bool) -> Result<String> {
        let found = wait_for(what, LIMIT, || Ok(Some(self.screen()?).filter(|screen| is_wanted(screen))));
        found.with_context(|| format!("the screen is\n{}", self.screen().unwrap_or_default()))
    }

    /// Waits until this text is on the screen.
    pub fn wait_text(&self, text: &str) -> Result<String> {
        self.wait(text, |screen| screen.contains(text))
    }

    fn tmux(&self, arguments: &[String]) -> Result<String> {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.socket())
            .args(arguments)
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .context("starting tmux")?;
        ensure!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn socket(&self) -> std::path::PathBuf {
        Path::join(self.folder.path(), "socket")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server".to_owned()]);
    }
}
