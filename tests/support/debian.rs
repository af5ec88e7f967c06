//! A small Debian with systemd, in a directory: what packages are installed on.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::paths;

/// Makes such directories from Debian's packages; its package has the same name.
pub const PROGRAM: &str = "mmdebstrap";
const PACKAGES: &str = "--include=systemd,systemd-sysv,dbus";
/// Half of it is documentation.
const NOT_WANTED: [&str; 3] = ["doc", "man", "locale"];

/// The root directory, once it was made.
pub fn root() -> Option<PathBuf> {
    Some(directory()).filter(|directory| directory.exists())
}

fn directory() -> PathBuf {
    paths::target().join("debian")
}

/// Makes it, as root, of the release that this machine has.
pub fn make() -> Result<()> {
    let target = directory();
    // Aside first: what an interrupted download left is not taken for whole.
    let partial = target.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("removing {}", partial.display()))?;
    }
    let release = fs::read_to_string("/etc/os-release").context("reading /etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let mut command = Command::new(PROGRAM);
    command.args(["--mode=root", "--variant=apt", PACKAGES]);
    command.args(NOT_WANTED.map(|name| format!("--dpkgopt=path-exclude=/usr/share/{name}/*")));
    command.arg(suite.context("/etc/os-release has no VERSION_CODENAME")?).arg(&partial);
    let output = command.output().with_context(|| format!("starting {PROGRAM}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    fs::rename(&partial, &target).with_context(|| format!("moving a Debian to {}", target.display()))
}
