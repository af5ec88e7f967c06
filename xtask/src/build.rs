//! Builds joular-bpf, and runs what was built as root. cargo itself never runs as another user, so
//! that nothing in `target` changes its owner.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use joular_tests::paths;

use crate::{setup, shell};

/// How the profiler is built: see `[profile]` in Cargo.toml.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Quick to build: for tests and the demo.
    Dev,
    /// For benchmarks, and for those who install from source.
    Release,
    /// For archives that are handed out.
    Archive,
}

impl From<bool> for Profile {
    /// Whether a release is wanted.
    fn from(is_release: bool) -> Self {
        if is_release { Self::Release } else { Self::Dev }
    }
}

impl Profile {
    /// As cargo calls it, and its folder below `target`.
    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Dev => ("dev", "debug"),
            Self::Release => ("release", "release"),
            Self::Archive => ("archive", "archive"),
        }
    }
}

/// Builds the profiler; returns where it is.
pub fn build(profile: Profile) -> Result<PathBuf> {
    setup::toolchain()?;
    let (name, folder) = profile.names();
    shell::step(&format!("building joular-bpf ({name})"));
    // Of the whole workspace, as tests are: for a part of it dependencies may have fewer
    // features, and would be built again.
    let mut cargo = shell::cargo();
    cargo.args(["build", "--workspace", "--bin", "joular-bpf", "--profile", name]);
    shell::run(&mut cargo)?;
    Ok(paths::target().join(folder).join("joular-bpf"))
}

/// Builds and runs with these arguments; its exit code becomes ours.
pub fn run(arguments: &[String]) -> Result<()> {
    let program = build(Profile::Dev)?;
    let status = shell::as_root(&program, &[]).args(arguments).status()?;
    match status.code() {
        Some(0) => Ok(()),
        code => std::process::exit(code.unwrap_or(1)),
    }
}

/// A command of the profiler as root, in the developer's directory.
pub fn profiler(program: &PathBuf) -> Command {
    shell::as_root(program, &[])
}
