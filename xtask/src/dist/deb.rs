//! Makes the Debian package: program, unit, configuration, manual pages and completions.
//!
//! Its program uses the system's C library: it is the one that can load NVIDIA's library for the energy of GPUs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use joular_tests::paths;

use super::{
    MAINTAINER, Program, Release,
    changelog::Changelog,
    system,
    tree::{Tree, gzip, read},
};
use crate::shell;

pub fn make(release: &Release, program: &Program) -> Result<PathBuf> {
    if !shell::exists("dpkg-deb") {
        bail!("dpkg-deb is missing, which makes Debian packages: install dpkg");
    }
    let tree = Tree::new()?;
    files(&tree, release, program)?;
    let architecture = program.target.processor.debian();
    tree.write("DEBIAN/control", control(&tree, release, architecture, &program.file)?)?;
    tree.write("DEBIAN/conffiles", "/etc/joular-bpf/agent.toml\n")?;
    for script in ["postinst", "prerm", "postrm"] {
        let text = read(&paths::root().join("packaging/debian").join(script))?;
        tree.write_executable(&format!("DEBIAN/{script}"), text)?;
    }
    tree.write("DEBIAN/md5sums", sums(&tree)?)?;
    let package = release.output.join(format!("joular-bpf_{}_{architecture}.deb", release.version));
    let mut dpkg = Command::new("dpkg-deb");
    // One thread: with several, the compressed bytes depend on their number.
    dpkg.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]).arg(tree.root()).arg(&package);
    shell::run(dpkg.env("SOURCE_DATE_EPOCH", release.epoch.to_string()).stdout(std::process::Stdio::null()))?;
    Ok(package)
}

fn files(tree: &Tree, release: &Release, program: &Program) -> Result<()> {
    system::install(tree, program)?;
    let changelog = Changelog::read()?;
    let newest = changelog.newest()?;
    ensure!(newest == release.version, "CHANGELOG.md has {newest}, but the program is {}", release.version);
    tree.write("usr/share/doc/joular-bpf/changelog.gz", gzip(changelog.of_debian(MAINTAINER)?.as_bytes())?)?;
    tree.copy("packaging/debian/copyright", "usr/share/doc/joular-bpf/copyright")
}

fn control(tree: &Tree, release: &Release, architecture: &str, program: &Path) -> Result<String> {
    let template = fs::read_to_string(paths::root().join("packaging/debian/control")).context("reading control")?;
    let bytes = shell::capture(
        Command::new("du").args(["--apparent-size", "--summarize", "--block-size=1024"]).arg(tree.root()),
    )?;
    let size = bytes.split_whitespace().next().context("du says nothing")?;
    let glibc = oldest_glibc(program)?;
    let values = [
        ("@MAINTAINER@", MAINTAINER),
        ("@VERSION@", release.version.as_str()),
        ("@ARCHITECTURE@", architecture),
        ("@INSTALLED_SIZE@", size),
        ("@GLIBC@", &glibc),
    ];
    Ok(values.iter().fold(template, |text, (name, value)| text.replace(name, value)))
}

/// The oldest version of the C library that has all functions which the program uses.
fn oldest_glibc(program: &Path) -> Result<String> {
    let versions = shell::capture(Command::new("readelf").args(["--version-info", "--wide"]).arg(program))?;
    let versions = versions.split("GLIBC_").skip(1).filter_map(|rest| rest.split_whitespace().next());
    let numbers = |version: &str| version.split('.').filter_map(|part| part.parse().ok()).collect::<Vec<u32>>();
    let newest = versions.max_by_key(|version| numbers(version)).map(str::to_owned);
    newest.with_context(|| {
        format!("{} is a static program: a Debian package is made of one that is not", program.display())
    })
}

/// MD5 of each file, by which `dpkg --verify` finds changed ones.
fn sums(tree: &Tree) -> Result<String> {
    let script = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum";
    shell::capture(Command::new("env").arg("-C").arg(tree.root()).args(["sh", "-c", script]))
}
