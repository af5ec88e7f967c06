//! Finds the crates that a program contains: not those that only build or test it, nor those of other targets.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::paths;
use serde_json::Value;

use super::tree::read;
use crate::shell;

/// The crate with the program.
pub const PROGRAM: &str = "joular-user";

/// The crate with the eBPF programs, which are compiled for a target of their own and are part of the program.
const EBPF: (&str, &str) = ("joular-ebpf", "bpfel-unknown-none");

pub struct Crate {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: String,
    /// Directory of its sources.
    pub folder: PathBuf,
    /// SHA-256 of the package in the registry; `None` for a crate of this workspace.
    pub checksum: Option<String>,
    /// Whether it has C code, which cargo wants to be in a program once: key `links` of its manifest.
    pub has_c_code: bool,
    /// References of crates that it uses.
    pub uses: Vec<String>,
}

impl Crate {
    /// What names it among all.
    pub fn reference(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// Crates in the program for a target, that of the program included, by name and version.
pub fn of(target: &str) -> Result<Vec<Crate>> {
    let mut parts = within(PROGRAM, target)?;
    parts.extend(within(EBPF.0, EBPF.1)?);
    let arguments = ["metadata", "--format-version", "1", "--locked"];
    let platforms = ["--filter-platform", target, "--filter-platform", EBPF.1];
    let metadata = shell::capture(shell::cargo().args(arguments).args(platforms))?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading what cargo metadata says")?;
    let checksums = checksums()?;
    let packages: BTreeMap<&str, &Value> = list(&metadata["packages"]).map(|one| (text(&one["id"]), one)).collect();
    let mut crates = Vec::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let package = packages.get(text(&node["id"])).context("cargo metadata resolves a package without naming it")?;
        if !parts.contains(&reference(package)) {
            continue;
        }
        let used = list(&node["deps"]).filter(|one| list(&one["dep_kinds"]).any(|kind| kind["kind"].is_null()));
        let used = used.filter_map(|one| packages.get(text(&one["pkg"]))).map(|package| reference(package));
        let folder = Path::new(text(&package["manifest_path"])).parent().context("a manifest has a directory")?;
        crates.push(Crate {
            name: text(&package["name"]).to_owned(),
            version: text(&package["version"]).to_owned(),
            // Old manifests have `MIT/Apache-2.0` or `MIT / Apache-2.0`.
            licence: text(&package["license"]).split('/').map(str::trim).collect::<Vec<_>>().join(" OR "),
            folder: folder.to_owned(),
            checksum: checksums.get(&reference(package)).cloned(),
            has_c_code: !package["links"].is_null(),
            uses: used.filter(|reference| parts.contains(reference)).collect(),
        });
    }
    ensure!(crates.len() == parts.len(), "cargo tree lists {} crates, cargo metadata {}", parts.len(), crates.len());
    crates.sort_by_key(Crate::reference);
    Ok(crates)
}

/// References of a crate and of those within it. `cargo tree` knows them: `cargo metadata` adds those that only features
/// of other members of the workspace need, and those of macros.
fn within(package: &str, target: &str) -> Result<BTreeSet<String>> {
    let mut tree = shell::cargo();
    tree.args(["tree", "--locked", "--package", package, "--target", target, "--edges", "normal,no-proc-macro"]);
    let lines = shell::capture(tree.args(["--prefix", "none", "--format", "{p}"]))?;
    let references = lines.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        Some(format!("{name}@{}", rest.split(' ').next()?))
    });
    Ok(references.collect())
}

/// Checksums of Cargo.lock, by the crates' references.
fn checksums() -> Result<BTreeMap<String, String>> {
    let file = paths::root().join("Cargo.lock");
    let lock = String::from_utf8(read(&file)?).with_context(|| format!("reading {}", file.display()))?;
    let lock: toml::Table = lock.parse().with_context(|| format!("reading {}", file.display()))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let checksums = packages.filter_map(|package| {
        let key = |name| package.get(name)?.as_str();
        Some((format!("{}@{}", key("name")?, key("version")?), key("checksum")?.to_owned()))
    });
    Ok(checksums.collect())
}

fn reference(package: &Value) -> String {
    format!("{}@{}", text(&package["name"]), text(&package["version"]))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
