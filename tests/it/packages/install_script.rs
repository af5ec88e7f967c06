//! Tests the script that installs the archive: what it installs, and what it refuses.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use joular_tests::{notes, packages::Packages, process::Running};
use tempfile::TempDir;

use super::{as_readelf_calls, for_each_processor, packages, processor_of};
use crate::packaging::printed;

/// A server of files starts at once; this only bounds a hang.
const LIMIT: Duration = Duration::from_secs(20);

/// What the script needs, in a directory of its own, which a test may change.
fn copied(packages: &Packages) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = ["SHA256SUMS", "SHA256SUMS.minisig", "minisign.pub", "install.sh"];
    let files = files.map(|name| packages.directory().join(name));
    for file in files.into_iter().chain([packages.archive().unwrap()]).filter(|file| file.exists()) {
        fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
    }
    folder
}

fn has_minisign() -> bool {
    let found = Command::new("minisign").arg("-v").output().is_ok();
    if !found {
        notes::skipped("there is no minisign (`cargo xtask setup` installs it on Debian)");
    }
    found
}

fn script(folder: &Path, prefix: &Path, arguments: &[&str]) -> Output {
    let mut script = Command::new("sh");
    script.arg(folder.join("install.sh")).arg("--prefix").arg(prefix);
    script.args(arguments).output().unwrap()
}

/// Expects that the script refuses what is in the folder with this message, and installs nothing.
fn expect_refusal(folder: &Path, arguments: &[&str], message: &str) {
    let prefix = tempfile::tempdir().unwrap();
    let output = script(folder, prefix.path(), arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(message), "{output:?}");
    assert_eq!(fs::read_dir(prefix.path()).unwrap().count(), 0);
}

/// Files below a directory.
fn files(folder: &Path) -> BTreeSet<String> {
    let found = printed(Command::new("find").args([".", "-type", "f"]).current_dir(folder));
    found.lines().map(|line| line.trim_start_matches("./").to_owned()).collect()
}

#[test]
fn the_script_installs_the_archive_and_removes_all_that_it_installed() {
    let Some(packages) = packages() else { return };
    let (folder, prefix) = (copied(&packages), tempfile::tempdir().unwrap());
    let from = folder.path().to_str().unwrap();
    // The second time it replaces what is there.
    for from in [from.to_owned(), format!("file://{from}/")] {
        let installed = script(folder.path(), prefix.path(), &[&from]);
        assert!(installed.status.success(), "{installed:?}");
    }
    let program = prefix.path().join("bin/joular-bpf");
    assert!(printed(Command::new(&program).arg("--version")).starts_with("joular-bpf "));
    let found = files(prefix.path());
    for file in ["share/man/man1/joular-bpf.1", "share/bash-completion/completions/joular-bpf"] {
        assert!(found.contains(file), "{file} is missing: {found:?}");
    }
    let others = prefix.path().join("bin/other");
    fs::write(&others, "").unwrap();
    let removed = script(folder.path(), prefix.path(), &["--uninstall"]);
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(files(prefix.path()), BTreeSet::from(["bin/other".to_owned()]));
    let again = script(folder.path(), prefix.path(), &["--uninstall"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("was not installed there"), "{again:?}");
}

#[test]
fn the_script_downloads_and_verifies_the_signature() {
    let Some(packages) = packages() else { return };
    if !has_minisign() {
        return;
    }
    let (folder, prefix) = (copied(&packages), tempfile::tempdir().unwrap());
    let mut python = Command::new("python3");
    python.args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory"]).arg(folder.path()).arg("0");
    let mut server = Running::spawn("server of files", &mut python).unwrap();
    let line = server.wait_stdout("Serving HTTP", LIMIT).unwrap();
    let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1).unwrap();
    let from = format!("http://127.0.0.1:{port}");
    let key = folder.path().join("minisign.pub");
    let installed = script(folder.path(), prefix.path(), &["--key", key.to_str().unwrap(), &from]);
    assert!(installed.status.success(), "{installed:?}");
    assert!(String::from_utf8_lossy(&installed.stdout).contains("SHA256SUMS is signed by "), "{installed:?}");
    assert!(prefix.path().join("bin/joular-bpf").exists());
    expect_refusal(folder.path(), &[&format!("{from}/missing")], "getting SHA256SUMS");
}

#[test]
fn the_script_installs_the_archive_for_the_processor_that_it_runs_on() {
    for packages in for_each_processor() {
        let (folder, prefix, tools) = (copied(&packages), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let machine = packages.machine();
        let uname = tools.path().join("uname");
        fs::write(&uname, format!("#!/bin/sh\necho {}\n", machine.processor)).unwrap();
        fs::set_permissions(&uname, fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut script = Command::new("sh");
        script.env("PATH", format!("{}:{path}", tools.path().display())).arg(folder.path().join("install.sh"));
        printed(script.arg("--prefix").arg(prefix.path()).arg(folder.path()));
        assert_eq!(processor_of(&prefix.path().join("bin/joular-bpf")), as_readelf_calls(machine.debian));
    }
}

#[test]
fn the_script_refuses_a_changed_archive() {
    let Some(packages) = packages() else { return };
    let folder = copied(&packages);
    let archive = folder.path().join(packages.archive().unwrap().file_name().unwrap());
    let mut bytes = fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&archive, bytes).unwrap();
    expect_refusal(folder.path(), &[folder.path().to_str().unwrap()], "but SHA256SUMS says");
}

#[test]
fn the_script_refuses_checksums_that_the_key_did_not_sign() {
    let Some(packages) = packages() else { return };
    if !has_minisign() {
        return;
    }
    let folder = copied(&packages);
    let from = folder.path().to_str().unwrap();
    let key = folder.path().join("minisign.pub");
    let other = folder.path().join("other.pub");
    let mut minisign = Command::new("minisign");
    printed(minisign.args(["-G", "-W", "-s"]).arg(folder.path().join("other.key")).arg("-p").arg(&other));
    expect_refusal(folder.path(), &["--key", other.to_str().unwrap(), from], "is not that of");
    let sums = folder.path().join("SHA256SUMS");
    fs::write(&sums, fs::read_to_string(&sums).unwrap().replacen('0', "1", 1)).unwrap();
    expect_refusal(folder.path(), &["--key", key.to_str().unwrap(), from], "is not that of");
    fs::remove_file(folder.path().join("SHA256SUMS.minisig")).unwrap();
    expect_refusal(folder.path(), &["--key", key.to_str().unwrap(), from], "getting SHA256SUMS.minisig");
}

#[test]
fn the_script_refuses_to_go_on_with_a_key_and_without_minisign() {
    let Some(packages) = packages() else { return };
    let (folder, prefix) = (copied(&packages), tempfile::tempdir().unwrap());
    let tools = tempfile::tempdir().unwrap();
    for tool in ["sh", "cp", "mktemp", "rm"] {
        let found = printed(Command::new("sh").args(["-c", "command -v \"$0\"", tool]));
        std::os::unix::fs::symlink(found.trim(), tools.path().join(tool)).unwrap();
    }
    let mut script = Command::new("sh");
    script.env("PATH", tools.path()).arg(folder.path().join("install.sh")).arg("--prefix").arg(prefix.path());
    let output = script.arg("--key").arg("minisign.pub").arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("install minisign"), "{output:?}");
}

#[test]
fn shellcheck_finds_nothing_in_the_script() {
    let Some(packages) = packages() else { return };
    if Command::new("shellcheck").arg("--version").output().is_err() {
        return notes::skipped("there is no shellcheck (`cargo xtask setup` installs it on Debian)");
    }
    printed(Command::new("shellcheck").arg(packages.directory().join("install.sh")));
}
