//! Building joular-bpf, and running what was built as root: cargo itself never
//! runs as another user, so that nothing in `target` changes its owner.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use joular_tests::paths;

use crate::{setup, shell};

/// Builds the profiler; returns where it is.
pub fn build(release: bool) -> Result<PathBuf> {
    setup::toolchain()?;
    let profile = if release { "release" } else { "debug" };
    shell::step(&format!("building joular-bpf ({profile})"));
    let mut cargo = shell::cargo();
    cargo.args(["build", "--package", "joular-user", "--bin", "joular-bpf"]);
    if release {
        cargo.arg("--release");
    }
    shell::run(&mut cargo)?;
    Ok(paths::target().join(profile).join("joular-bpf"))
}

/// Builds and runs with these arguments; its exit code becomes ours.
pub fn run(arguments: &[String]) -> Result<()> {
    let program = build(true)?;
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
