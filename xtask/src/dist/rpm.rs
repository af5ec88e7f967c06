//! Makes the package for distributions with RPM, with the files of the Debian package.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, bail};
use joular_tests::paths;

use super::{MAINTAINER, Program, Release, system, tree::Tree};
use crate::shell;

/// What makes the package the same on each machine, and leaves the files as they are.
const MACROS: [&str; 8] = [
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "source_date_epoch_from_changelog 0",
    "_buildhost localhost",
    "_build_id_links none",
    "debug_package %{nil}",
    "__os_install_post %{nil}",
    // All versions of rpm in use read xz. One thread, as in the Debian package.
    "_binary_payload w6.xzdio",
];

pub fn make(release: &Release, program: &Program) -> Result<PathBuf> {
    if !shell::exists("rpmbuild") {
        bail!("rpmbuild is missing, which makes RPM packages: install rpm (Debian) or rpm-build (Fedora)");
    }
    let tree = Tree::new()?;
    system::install(&tree, program)?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        tree.copy(licence, &format!("usr/share/licenses/joular-bpf/{licence}"))?;
    }
    let built = tempfile::tempdir().context("making a temporary directory")?;
    let variables = [
        format!("_topdir {}", built.path().display()),
        format!("_rpmdir {}", built.path().display()),
        format!("tree {}", tree.root().display()),
        format!("version {}", release.version),
        format!("packager {MAINTAINER}"),
    ];
    let processor = program.target.processor.name();
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--target", processor]);
    for value in MACROS.into_iter().chain(variables.iter().map(String::as_str)) {
        rpmbuild.args(["--define", value]);
    }
    rpmbuild.arg(paths::root().join("packaging/rpm/joular-bpf.spec"));
    shell::capture(rpmbuild.env("SOURCE_DATE_EPOCH", release.epoch.to_string()))?;
    let name = format!("joular-bpf-{}-1.{processor}.rpm", release.version);
    let (made, package) = (built.path().join(processor).join(&name), release.output.join(&name));
    fs::copy(&made, &package).with_context(|| format!("copying {} to {}", made.display(), package.display()))?;
    Ok(package)
}
