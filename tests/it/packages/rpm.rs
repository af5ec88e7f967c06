//! Tests the RPM package: its files, and that it can be installed and removed.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use joular_tests::{notes, packages::Packages};

use super::{for_each_processor, packages};
use crate::packaging::printed;

fn has_rpm() -> bool {
    let found = Command::new("rpm").arg("--version").output().is_ok();
    if !found {
        notes::skipped("there is no rpm (`cargo xtask setup` installs it on Debian)");
    }
    found
}

/// What rpm says of a package.
fn query(options: &[&str], package: &Path) -> String {
    printed(Command::new("rpm").arg("--query").args(options).arg("--package").arg(package))
}

#[test]
fn the_rpm_packages_have_the_files_of_the_debian_packages() {
    if has_rpm() {
        for_each_processor().iter().for_each(check_files);
    }
}

fn check_files(packages: &Packages) {
    let rpm = packages.rpm().unwrap();
    assert_eq!(query(&["--qf", "%{ARCH}"], &rpm), packages.machine().processor);
    let of_rpm: BTreeSet<String> = query(&["--qf", "[%{FILEMODES:perms} %{FILENAMES}\n]"], &rpm)
        .lines()
        .filter(|line| !line.starts_with('d') && !line.contains("/licenses/"))
        .map(|line| line.replace("/site-functions/", "/vendor-completions/"))
        .collect();
    let of_deb = printed(Command::new("dpkg-deb").arg("--contents").arg(packages.deb().unwrap()));
    let of_deb: BTreeSet<String> = of_deb
        .lines()
        .filter(|line| !line.starts_with('d') && !line.ends_with("/changelog.gz") && !line.ends_with("/copyright"))
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            format!("{} {}", words[0], words[5].trim_start_matches('.'))
        })
        .collect();
    assert_eq!(of_rpm, of_deb);
}

#[test]
fn the_rpm_packages_treat_configuration_and_service_as_the_debian_packages_do() {
    if has_rpm() {
        for_each_processor().iter().for_each(check_service);
    }
}

fn check_service(packages: &Packages) {
    let package = packages.rpm().unwrap();
    assert_eq!(query(&["--configfiles"], &package), "/etc/joular-bpf/agent.toml\n");
    let scripts = query(&["--scripts"], &package);
    for command in ["daemon-reload", "try-restart joular-bpf.service", "stop joular-bpf.service"] {
        assert!(scripts.contains(command), "{scripts}");
    }
    assert!(!scripts.contains("enable") && !scripts.contains(" start "), "{scripts}");
    let requires = query(&["--requires"], &package);
    assert!(requires.contains("libc.so.6(GLIBC_2."), "{requires}");
}

#[test]
fn the_rpm_package_can_be_installed_and_removed_and_keeps_changed_configuration() {
    let Some(packages) = packages() else { return };
    if !has_rpm() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    // Without scripts: there is no shell in the directory. A user may own a database there.
    let rpm = |arguments: &[&str]| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--root").arg(root.path()).args(["--nodeps", "--noscripts"]).args(arguments);
        printed(&mut rpm)
    };
    if !rustix::process::geteuid().is_root() {
        return notes::skipped("needs root: rpm changes its root directory");
    }
    rpm(&["--install", packages.rpm().unwrap().to_str().unwrap()]);
    let program = root.path().join("usr/bin/joular-bpf");
    assert!(printed(Command::new(&program).arg("--version")).starts_with("joular-bpf "));
    let configuration = root.path().join("etc/joular-bpf/agent.toml");
    fs::write(&configuration, "# mine\n").unwrap();
    rpm(&["--erase", "joular-bpf"]);
    assert!(!program.exists() && !configuration.exists());
    assert_eq!(fs::read_to_string(configuration.with_extension("toml.rpmsave")).unwrap(), "# mine\n");
}
