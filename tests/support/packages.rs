//! Finds the packages under test, which `cargo xtask test --slow` makes.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

/// Environment variable with their directory.
pub const DIRECTORY: &str = "JOULAR_PACKAGES";

/// The worst that `systemd-analyze security` may rate the unit: 0 is nothing that a service could do.
pub const MOST_EXPOSURE: f64 = 3.4;

/// Keys of the unit that systemd has since version 254. Older ones go on without them, and say so.
const NEW_KEYS: [&str; 2] = ["RestartMaxDelaySec", "RestartSteps"];

/// Whether a line of systemd says only that it is too old for a key of the unit.
pub fn is_of_an_older_systemd(line: &str) -> bool {
    NEW_KEYS.iter().any(|key| line.contains(&format!("Unknown key '{key}'")))
}

pub struct Packages(PathBuf);

impl Packages {
    /// None: there are none.
    pub fn find() -> Option<Self> {
        env::var_os(DIRECTORY).map(|directory| Self(directory.into()))
    }

    pub fn directory(&self) -> &Path {
        &self.0
    }

    pub fn deb(&self) -> Result<PathBuf> {
        self.one_that_ends(".deb")
    }

    pub fn rpm(&self) -> Result<PathBuf> {
        self.one_that_ends(".rpm")
    }

    pub fn image(&self) -> Result<PathBuf> {
        self.one_that_ends(".oci.tar")
    }

    pub fn archive(&self) -> Result<PathBuf> {
        self.one_that_ends(".tar.gz")
    }

    /// The bill of materials of the program that uses the system's C library, or of the static one.
    pub fn bill(&self, library: &str) -> Result<PathBuf> {
        self.one_that_ends(&format!("-{library}.cdx.json"))
    }

    pub fn provenance(&self) -> Result<PathBuf> {
        self.one_that_ends(".provenance.json")
    }

    pub fn chart(&self) -> Result<PathBuf> {
        self.one_that_ends(".tgz")
    }

    pub fn wheel(&self) -> Result<PathBuf> {
        self.one_that_ends(".whl")
    }

    fn one_that_ends(&self, end: &str) -> Result<PathBuf> {
        let entries = fs::read_dir(&self.0).with_context(|| format!("listing {}", self.0.display()))?;
        let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        let found = paths.find(|path| path.to_string_lossy().ends_with(end));
        found.with_context(|| format!("no *{end} in {}", self.0.display()))
    }
}
