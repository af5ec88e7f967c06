//! Tests the packages that are handed out. `cargo xtask test --slow` makes them, and runs these tests.

mod image;
mod install_script;
mod rpm;
mod supply_chain;
mod wheel;

use std::{fs, path::Path, process::Command};

use joular_tests::{helm, notes, packages::Packages, paths};

use crate::packaging::printed;

const MISSING: &str = "there are no packages to test: `cargo xtask test --slow` makes them";

/// Those for this machine.
fn packages() -> Option<Packages> {
    let packages = Packages::find();
    if packages.is_none() {
        notes::skipped(MISSING);
    }
    packages
}

/// Those for each processor.
fn for_each_processor() -> Vec<Packages> {
    let packages = Packages::all();
    if packages.is_empty() {
        notes::skipped(MISSING);
    }
    packages
}

/// The processor of a program, as `readelf` calls it.
fn processor_of(program: &Path) -> String {
    let header = printed(Command::new("readelf").args(["--file-header", "--wide"]).arg(program));
    let machine = header.lines().find_map(|line| line.trim().strip_prefix("Machine:"));
    machine.expect("a machine").trim().to_owned()
}

/// How `readelf` calls a processor of packages.
fn as_readelf_calls(processor: &str) -> &'static str {
    match processor {
        "amd64" => "Advanced Micro Devices X86-64",
        "arm64" => "AArch64",
        other => panic!("no package is for {other}"),
    }
}

#[test]
fn lintian_finds_nothing_in_the_debian_packages() {
    if Command::new("lintian").arg("--version").output().is_err() {
        return notes::skipped("there is no lintian (`cargo xtask setup` installs it on Debian)");
    }
    for packages in for_each_processor() {
        let deb = packages.deb().unwrap();
        assert_eq!(printed(Command::new("lintian").args(["--allow-root", "--pedantic"]).arg(deb)), "");
    }
}

#[test]
fn the_debian_packages_have_what_such_a_package_has() {
    for packages in for_each_processor() {
        let (deb, processor) = (packages.deb().unwrap(), packages.machine().debian);
        let control = printed(Command::new("dpkg-deb").arg("--info").arg(&deb));
        assert!(control.contains("Depends: libc6 (>= 2."), "{control}");
        assert!(control.contains(&format!("\n Architecture: {processor}\n")), "{control}");
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
        let folder = tempfile::tempdir().unwrap();
        printed(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(folder.path()));
        assert_eq!(processor_of(&folder.path().join("usr/bin/joular-bpf")), as_readelf_calls(processor));
    }
}

#[test]
fn the_archives_have_a_program_that_needs_no_library_and_names_no_directory_of_its_builder() {
    for packages in for_each_processor() {
        let folder = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--strip-components=1", "--directory"]).arg(folder.path()).arg("--file");
        printed(tar.arg(packages.archive().unwrap()));
        let program = folder.path().join("joular-bpf");
        let headers = printed(Command::new("readelf").args(["--program-headers", "--wide"]).arg(&program));
        assert!(!headers.contains("INTERP"), "{headers}");
        assert_eq!(processor_of(&program), as_readelf_calls(packages.machine().debian));
        if packages.machine().is_this() {
            assert!(printed(Command::new(&program).arg("--version")).starts_with("joular-bpf "));
        }
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
