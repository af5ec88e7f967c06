//! Real Parquet readers from PyPI, in a virtual environment of our own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};

use crate::paths;

/// The environment's interpreter; made on demand, again when its list changes.
pub fn interpreter() -> Result<PathBuf> {
    static INTERPRETER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    INTERPRETER.get_or_init(|| make().map_err(|e| format!("{e:#}"))).clone().map_err(anyhow::Error::msg)
}

/// Whether [`interpreter`] has nothing left to do.
pub fn is_ready() -> bool {
    let wanted = fs::read_to_string(requirements());
    let installed = fs::read_to_string(stamp());
    matches!((wanted, installed), (Ok(wanted), Ok(installed)) if wanted == installed)
}

fn environment() -> PathBuf {
    paths::target().join("venv")
}

fn requirements() -> PathBuf {
    paths::fixtures().join("python/requirements.txt")
}

fn stamp() -> PathBuf {
    environment().join("installed.txt")
}

fn make() -> Result<PathBuf> {
    let python = environment().join("bin/python");
    if is_ready() {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment()))
        .context("making a virtual environment (Debian and Ubuntu have it in the package python3-venv)")?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements()))?;
    // Last, so that an interrupted installation is done again.
    fs::copy(requirements(), stamp()).context("writing the environment's stamp")?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Runs a script of `tests/fixtures/python`; returns what it printed.
pub fn script(name: &str, dataset: &Path, arguments: &[&str]) -> Result<String> {
    let path = paths::fixtures().join("python").join(name);
    let mut command = Command::new(interpreter()?);
    // Nothing may appear in the source tree, least of all files of root.
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(path).arg(dataset).args(arguments);
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).with_context(|| format!("{name} did not print UTF-8"))
}
