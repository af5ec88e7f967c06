//! Writes where the files come from: a statement of in-toto with SLSA's provenance, without a signature of its own.
//!
//! The forms are those of <https://slsa.dev/spec/v1.0/provenance>. SHA256SUMS has the statement's sum, and is signed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use joular_tests::paths;
use serde_json::{Value, json};

use super::{
    Release,
    tree::{read, sha256},
};
use crate::shell;

/// What the parameters mean. It is the name of a procedure, not an address.
const BUILD_TYPE: &str = "urn:joular-bpf:cargo-xtask-dist:1";

/// Programs that compile, and what asks them for their versions.
const COMPILERS: [(&str, &str); 4] =
    [("rustc", "--version"), ("cargo", "--version"), ("bpf-linker", "--version"), ("cc", "-dumpfullversion")];

/// Who builds, and from what.
pub struct Build {
    /// Address that names the machine or service; `local` if it has none.
    pub builder: String,
    /// Whether the programs were compiled now, or given.
    pub is_compiled: bool,
}

pub fn make(release: &Release, build: &Build, files: &[PathBuf]) -> Result<PathBuf> {
    let file = release.output.join(format!("joular-bpf-{}.provenance.json", release.version));
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": files.iter().map(|file| subject(file)).collect::<Result<Vec<Value>>>()?,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "version": release.version,
                    "programs": if build.is_compiled { "compiled" } else { "given" },
                },
                "internalParameters": { "SOURCE_DATE_EPOCH": release.epoch },
                "resolvedDependencies": materials()?,
            },
            "runDetails": { "builder": { "id": build.builder } },
        },
    });
    let text = serde_json::to_string_pretty(&statement)? + "\n";
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

fn subject(file: &Path) -> Result<Value> {
    let name = file.file_name().context("a file has a name")?.to_string_lossy();
    Ok(json!({ "name": name, "digest": { "sha256": sha256(&read(file)?)? } }))
}

/// The commit, with its changed files if there are any; the list of crates; compilers.
fn materials() -> Result<Vec<Value>> {
    let lock = sha256(&read(&paths::root().join("Cargo.lock"))?)?;
    let mut materials = vec![json!({ "name": "Cargo.lock", "digest": { "sha256": lock } })];
    // An unpacked archive of the sources has no commit.
    if paths::root().join(".git").exists() {
        let commit = shell::capture(Command::new("git").args(["rev-parse", "HEAD"]))?;
        let changed = shell::capture(Command::new("git").args(["status", "--porcelain"]))?;
        let changed: Vec<&str> = changed.lines().map(str::trim).collect();
        let mut source = json!({ "name": "joular-bpf", "digest": { "gitCommit": commit.trim() } });
        if !changed.is_empty() {
            source["annotations"] = json!({ "changed": changed });
        }
        materials.insert(0, source);
    }
    for (name, option) in COMPILERS {
        let said = shell::capture(Command::new(name).arg(option))?;
        let version = said.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
        let version = version.with_context(|| format!("{name} {option} says no version: {}", said.trim()))?;
        materials.push(json!({ "name": name, "uri": format!("pkg:generic/{name}@{version}") }));
    }
    Ok(materials)
}
