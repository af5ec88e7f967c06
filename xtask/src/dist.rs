//! Makes a release archive: binary, README, licences, the service's files, shell completions and man pages, and
//! its SHA-256.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::paths;

use crate::{build, shell};

/// Shells with the names that their completions go by.
const COMPLETIONS: &[(&str, &str)] =
    &[("bash", "joular-bpf.bash"), ("zsh", "_joular-bpf"), ("fish", "joular-bpf.fish"), ("elvish", "joular-bpf.elv")];

/// What goes beside the binary; the licences by their usual names.
const PAPERS: &[&str] = &[
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "packaging/agent.toml",
    "packaging/systemd/joular-bpf.service",
    "packaging/prometheus/joular-alerts.yml",
    "packaging/grafana/joular-bpf.json",
];

pub fn run() -> Result<()> {
    let program = build::build(build::Profile::Archive)?;
    let name = archive_name(&program)?;
    let dist = paths::target().join("dist");
    let stage = dist.join(&name);
    // What an earlier, interrupted run left must not get into the archive.
    if stage.exists() {
        fs::remove_dir_all(&stage).with_context(|| format!("removing {}", stage.display()))?;
    }
    fs::create_dir_all(&stage).with_context(|| format!("creating {}", stage.display()))?;
    copy(&program, &stage)?;
    for paper in PAPERS {
        copy(&paths::root().join(paper), &stage)?;
    }
    generated(&program, &stage)?;
    let archive = format!("{name}.tar.gz");
    // Same input, same archive: no names, owners or times of this machine.
    shell::run(
        Command::new("tar")
            .args(["--create", "--gzip", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"])
            .arg("--file")
            .arg(dist.join(&archive))
            .arg("--directory")
            .args([dist.as_os_str(), name.as_ref()]),
    )?;
    let sum = Command::new("sha256sum").arg(&archive).current_dir(&dist).output().context("starting sha256sum")?;
    ensure!(sum.status.success(), "sha256sum: {}", String::from_utf8_lossy(&sum.stderr));
    fs::write(dist.join(format!("{archive}.sha256")), &sum.stdout)?;
    fs::remove_dir_all(&stage)?;
    print!("target/dist/{archive}\n{}", String::from_utf8_lossy(&sum.stdout));
    Ok(())
}

/// Files that the binary generates for shells and for man.
fn generated(program: &Path, stage: &Path) -> Result<()> {
    let completions = stage.join("completions");
    fs::create_dir_all(&completions).with_context(|| format!("creating {}", completions.display()))?;
    for (name, file) in COMPLETIONS {
        let script = shell::capture(Command::new(program).args(["completions", name]))?;
        fs::write(completions.join(file), script).with_context(|| format!("writing {file}"))?;
    }
    shell::run(Command::new(program).args(["man", "--output"]).arg(stage.join("man/man1")))
}

/// `joular-bpf-VERSION-ARCHITECTURE-linux`, as the binary itself says.
fn archive_name(program: &Path) -> Result<String> {
    let version = shell::capture(Command::new(program).arg("--version"))?;
    let version = version.split_whitespace().last().context("joular-bpf --version is empty")?;
    Ok(format!("joular-bpf-{version}-{}-linux", std::env::consts::ARCH))
}

fn copy(file: &Path, dir: &Path) -> Result<PathBuf> {
    let name = file.file_name().with_context(|| format!("{} has no name", file.display()))?;
    let target = dir.join(name);
    fs::copy(file, &target).with_context(|| format!("copying {}", file.display()))?;
    Ok(target)
}
