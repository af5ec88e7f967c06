//! Runs workloads in real containers: of [`podman`], and in the pods of [`containerd`]. Both run the same
//! images, which are made here ([`image`]).

pub mod containerd;
pub mod image;
pub mod podman;

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};

use crate::clock::wait_for;

/// Programs that containers need; Debian's packages have the same names.
pub const PROGRAMS: [&str; 3] = ["podman", "runc", "containerd"];

/// A cold JVM on a loaded machine needs seconds; two minutes mean that it hangs.
const READY: Duration = Duration::from_secs(120);

/// Whether everything is installed that runs containers and pods here.
pub fn are_installed() -> bool {
    PROGRAMS
        .iter()
        .all(|program| Command::new(program).arg("--version").output().is_ok_and(|said| said.status.success()))
}

/// Runs a command to its end; what it printed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Waits until a container has printed `ready`. `said` is what it has printed by now.
fn wait_ready(pid: u32, said: impl Fn() -> Result<String>) -> Result<()> {
    wait_for("a container to be ready", READY, || {
        let said = said()?;
        ensure!(Path::new("/proc").join(pid.to_string()).exists(), "the container ended: {said}");
        Ok(said.lines().any(|line| line == "ready").then_some(()))
    })
}

/// A directory's files as an archive, with paths as they are in an image.
fn pack(directory: &Path, archive: &Path) -> Result<()> {
    run(Command::new("tar").arg("--directory").arg(directory).arg("--create").arg("--file").arg(archive).arg("."))
        .map(drop)
}
