//! Installs tools from npm in a folder of our own, to open what is exported.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};

use crate::paths;

/// Folder of the packages' `node_modules`; made on demand, again when the list changes.
pub fn packages() -> Result<PathBuf> {
    static PACKAGES: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    PACKAGES.get_or_init(|| make().map_err(|e| format!("{e:#}"))).clone().map_err(anyhow::Error::msg)
}

/// Whether [`packages`] has nothing left to do.
pub fn is_ready() -> bool {
    let wanted = fs::read_to_string(fixtures().join(LOCK));
    let installed = fs::read_to_string(stamp());
    matches!((wanted, installed), (Ok(wanted), Ok(installed)) if wanted == installed)
}

/// Whether there is Node.js, and npm with it.
pub fn exists() -> bool {
    let answers = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    answers("node") && answers("npm")
}

const LOCK: &str = "package-lock.json";

fn fixtures() -> PathBuf {
    paths::fixtures().join("node")
}

fn folder() -> PathBuf {
    paths::target().join("node")
}

fn stamp() -> PathBuf {
    folder().join("installed.json")
}

fn make() -> Result<PathBuf> {
    if is_ready() {
        return Ok(folder());
    }
    fs::create_dir_all(folder()).with_context(|| format!("creating {}", folder().display()))?;
    for name in ["package.json", LOCK] {
        fs::copy(fixtures().join(name), folder().join(name)).with_context(|| format!("copying {name}"))?;
    }
    // Scripts of packages have no business here.
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder());
    run(&mut npm).context("installing packages (Debian and Ubuntu have Node.js in the packages nodejs and npm)")?;
    // Last, so that an interrupted installation is done again.
    fs::copy(fixtures().join(LOCK), stamp()).context("writing the stamp")?;
    Ok(folder())
}

fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} did not print UTF-8"))
}

/// Runs a script of `tests/fixtures/node` on a file; returns what it printed.
pub fn script(name: &str, kind: &str, file: &Path) -> Result<String> {
    run(Command::new("node").arg(fixtures().join(name)).arg(packages()?).arg(kind).arg(file))
}
