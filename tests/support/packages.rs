//! Finds the packages under test, which `cargo xtask test --slow` makes.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::machine::{AARCH64, Machine, X86_64};

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

/// The packages for a processor, and those that are for all.
pub struct Packages {
    directory: PathBuf,
    machine: &'static Machine,
}

impl Packages {
    /// Those for this machine's processor. None: there are none.
    pub fn find() -> Option<Self> {
        Self::of(Machine::this().ok()?)
    }

    /// Those for each processor that packages were made for.
    pub fn all() -> Vec<Self> {
        let made = [&X86_64, &AARCH64].into_iter().filter_map(Self::of);
        made.filter(|packages| packages.deb().is_ok()).collect()
    }

    fn of(machine: &'static Machine) -> Option<Self> {
        env::var_os(DIRECTORY).map(|directory| Self { directory: directory.into(), machine })
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The processor that they are for.
    pub const fn machine(&self) -> &'static Machine {
        self.machine
    }

    pub fn deb(&self) -> Result<PathBuf> {
        self.one_that_ends(&format!("_{}.deb", self.machine.debian))
    }

    pub fn rpm(&self) -> Result<PathBuf> {
        self.one_that_ends(&format!(".{}.rpm", self.machine.processor))
    }

    /// The image, which has the programs for all processors.
    pub fn image(&self) -> Result<PathBuf> {
        self.one_that_ends(".oci.tar")
    }

    pub fn archive(&self) -> Result<PathBuf> {
        self.one_that_ends(&format!("-{}-linux.tar.gz", self.machine.processor))
    }

    /// The bill of materials of the program that uses the system's C library, or of the static one.
    pub fn bill(&self, library: &str) -> Result<PathBuf> {
        self.one_that_ends(&format!("-{}-unknown-linux-{library}.cdx.json", self.machine.processor))
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
        let directory = &self.directory;
        let entries = fs::read_dir(directory).with_context(|| format!("listing {}", directory.display()))?;
        let mut paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        let found = paths.find(|path| path.to_string_lossy().ends_with(end));
        found.with_context(|| format!("no *{end} in {}", directory.display()))
    }
}
