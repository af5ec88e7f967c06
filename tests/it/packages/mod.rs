//! Tests the packages that are handed out. `cargo xtask test --slow` makes them, and runs these tests.

mod install_script;
mod rpm;
mod supply_chain;
mod wheel;

use std::{fs, process::Command};

use joular_tests::{helm, notes, packages::Packages, paths};

use crate::packaging::printed;

fn packages() -> Option<Packages> {
    let packages = Packages::find();
    if packages.is_none() {
        notes::skipped("there are no packages to test: `cargo xtask test --slow` makes them");
    }
    packages
}

#[test]
fn lintian_finds_nothing_in_the_debian_package() {
    let Some(packages) = packages() else { return };
    if Command::new("lintian").arg("--version").output().is_err() {
        return notes::skipped("there is no lintian (`cargo xtask setup` installs it on Debian)");
    }
    assert_eq!(printed(Command::new("lintian").args(["--allow-root", "--pedantic"]).arg(packages.deb().unwrap())), "");
}

#[test]
fn the_debian_package_has_what_such_a_package_has() {
    let Some(packages) = packages() else { return };
    let deb = packages.deb().unwrap();
    let control = printed(Command::new("dpkg-deb").arg("--info").arg(&deb));
    assert!(control.contains("Depends: libc6 (>= 2."), "{control}");
    let files = printed(Command::new("dpkg-deb").arg("--contents").arg(&deb));
    for file in [
        "./usr/bin/joular-bpf",
        "./usr/lib/systemd/system/joular-bpf.service",
        "./etc/joular-bpf/agent.toml",
        "./usr/share/selinux/packages/joular-bpf.cil",
        "./usr/share/man/man1/joular-bpf-agent.1.gz",
        "./usr/share/bash-completion/completions/joular-bpf",
        "./usr/share/doc/joular-bpf/licenses-of-libraries.txt.gz",
    ] {
        assert!(files.lines().any(|line| line.ends_with(&format!(" {file}"))), "{file} is missing: {files}");
    }
    assert!(files.lines().all(|line| line.contains(" root/root ")), "{files}");
}

#[test]
fn the_archive_has_a_program_that_needs_no_library_and_names_no_directory_of_its_builder() {
    let Some(packages) = packages() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--strip-components=1", "--directory"]).arg(folder.path()).arg("--file");
    printed(tar.arg(packages.archive().unwrap()));
    let program = folder.path().join("joular-bpf");
    let headers = printed(Command::new("readelf").args(["--program-headers", "--wide"]).arg(&program));
    assert!(!headers.contains("INTERP"), "{headers}");
    assert!(printed(Command::new(&program).arg("--version")).starts_with("joular-bpf "));
    let (program, builder) = (fs::read(&program).unwrap(), paths::root().to_str().unwrap().as_bytes());
    assert!(!program.windows(builder.len()).any(|bytes| bytes == builder), "{}", paths::root().display());
    for file in [
        "agent.toml",
        "joular-bpf.service",
        "LICENSES-OF-LIBRARIES.txt",
        "kubernetes/daemon-set.yaml",
        "helm/joular-bpf/Chart.yaml",
        "selinux/joular-bpf.cil",
    ] {
        assert!(folder.path().join(file).exists(), "{file} is missing");
    }
}

#[test]
fn helm_makes_the_same_of_the_packed_chart() {
    let Some(packages) = packages() else { return };
    if !helm::is_installed() {
        return notes::skipped("there is no Helm (`cargo xtask setup` unpacks it)");
    }
    let [packed, unpacked] = [packages.chart().unwrap(), paths::root().join("packaging/helm/joular-bpf")];
    for program in helm::programs() {
        let made = |chart| {
            let mut command = Command::new(&program);
            printed(command.args(["template", "joular-bpf", "--set=metricsToken.existingSecret=token"]).arg(chart))
        };
        assert_eq!(made(&packed), made(&unpacked));
    }
}
