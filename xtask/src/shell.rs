//! Runs other programs, and becomes root for them.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::paths;

/// Says what happens.
pub fn step(what: &str) {
    println!("== {what}");
}

/// Runs it with its output passed through, in the workspace's root.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.current_dir(paths::root()).status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// Runs it in the workspace's root; returns its standard output.
pub fn capture(command: &mut Command) -> Result<String> {
    let command = command.current_dir(paths::root()).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The cargo that runs this task.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// cargo that lints our own crates when it compiles them. Whoever builds for development uses it, so that no dependency
/// is compiled once for clippy and once more for what runs.
pub fn linting_cargo() -> Command {
    let mut cargo = cargo();
    cargo.env("RUSTC_WORKSPACE_WRAPPER", paths::root().join("xtask/compile-and-lint"));
    cargo
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether `PATH` has such a program.
pub fn exists(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir: PathBuf| dir.join(program).is_file())
}

/// A command that runs as root, by sudo where needed. `sudo_flags` go to sudo.
/// Of the environment only `PATH` and what tests read are passed on.
pub fn as_root(program: impl AsRef<OsStr>, sudo_flags: &[&str]) -> Command {
    if is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.args(sudo_flags).arg("env");
    for name in ["PATH", "JAVA_HOME", "JOULAR_BPF", "CARGO_TARGET_DIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.arg([OsStr::new(name), OsStr::new("="), &value].into_iter().collect::<OsString>());
        }
    }
    command.arg(program);
    command
}
