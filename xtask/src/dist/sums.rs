//! Writes the checksums of all files, and signs them with a key that the user brings.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::Release;
use crate::shell;

const SUMS: &str = "SHA256SUMS";

/// Writes SHA256SUMS; its text.
pub fn write(release: &Release, files: &[PathBuf]) -> Result<String> {
    let sums = shell::capture(Command::new("sha256sum").args(files).args(["--tag"]))?;
    let sums = sums.replace(&format!("{}/", release.output.display()), "");
    fs::write(release.output.join(SUMS), &sums).context("writing SHA256SUMS")?;
    Ok(sums)
}

/// Writes SHA256SUMS.minisig. minisign asks for the key's password, if it has one.
pub fn sign(directory: &Path, version: &str, key: &Path) -> Result<()> {
    if !shell::exists("minisign") {
        bail!("minisign is missing, which signs SHA256SUMS: install minisign");
    }
    let (sums, signature) = (directory.join(SUMS), directory.join("SHA256SUMS.minisig"));
    let mut minisign = Command::new("minisign");
    minisign.arg("-S").arg("-s").arg(key).arg("-m").arg(sums).arg("-x").arg(signature);
    // Without the time that minisign would put there: the same files have the same signature.
    shell::run(minisign.arg("-t").arg(format!("joular-bpf {version}")))
}
