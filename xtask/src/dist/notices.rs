//! Collects the licences of the libraries that are part of the program: most ask that their text goes with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell;

/// How files with licences are named.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// Names, versions and licences of all libraries, and each text once.
pub fn all() -> Result<String> {
    let metadata = shell::capture(shell::cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("reading what cargo metadata says")?;
    let packages: BTreeMap<&str, &Value> = list(&metadata["packages"]).map(|one| (text(&one["id"]), one)).collect();
    let mut libraries = String::new();
    let mut texts: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    let mut used: Vec<&Value> = used(&metadata).iter().filter_map(|id| packages.get(id).copied()).collect();
    used.sort_by_key(|package| (text(&package["name"]), text(&package["version"])));
    for package in used.into_iter().filter(|package| !package["source"].is_null()) {
        let [name, version, licence] = ["name", "version", "license"].map(|key| text(&package[key]));
        writeln!(libraries, "{name} {version}: {licence}")?;
        let folder = Path::new(text(&package["manifest_path"])).parent().context("a manifest has a directory")?;
        for licence in texts_in(folder)? {
            texts.entry(licence).or_default().insert(name);
        }
    }
    let mut texts: Vec<(String, String)> =
        texts.into_iter().map(|(text, names)| (names.into_iter().collect::<Vec<_>>().join(", "), text)).collect();
    texts.sort();
    let mut notices = format!("joular-bpf contains these libraries, with these licences.\n\n{libraries}");
    for (names, text) in texts {
        write!(notices, "\n{}\n{names}\n\n{}\n", "-".repeat(80), text.trim_end())?;
    }
    Ok(notices)
}

/// Packages that the program is made of, not those that only build or test it.
fn used(metadata: &Value) -> BTreeSet<&str> {
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let program = list(&metadata["packages"]).find(|package| package["name"] == "joular-user");
    let mut left: Vec<&str> = program.map(|package| text(&package["id"])).into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = left.pop() {
        let Some(node) = nodes.get(id).filter(|_| seen.insert(id)) else { continue };
        let is_part = |one: &&Value| list(&one["dep_kinds"]).any(|kind| kind["kind"].is_null());
        left.extend(list(&node["deps"]).filter(is_part).map(|one| text(&one["pkg"])));
    }
    seen
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let files = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name().to_string_lossy().to_uppercase();
        NAMES.iter().any(|start| name.starts_with(start)) && entry.path().is_file()
    });
    files.map(|entry| Ok(String::from_utf8_lossy(&super::tree::read(&entry.path())?).into_owned())).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
