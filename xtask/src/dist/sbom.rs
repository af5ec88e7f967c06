//! Writes the software bill of materials of a program: its crates, in the form of CycloneDX 1.6.
//!
//! `cargo cyclonedx` would name directories of this machine, list crates that only features of other members of the
//! workspace need, and write beside every manifest.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{MAINTAINER, Program, Release, crates, crates::Crate, tree::sha256};

/// Libraries in C that crates bring along.
const C_CODE: [(&str, &str); 3] =
    [("libmimalloc-sys", "mimalloc"), ("ring", "BoringSSL (parts)"), ("zstd-sys", "zstd")];

pub fn make(release: &Release, program: &Program) -> Result<PathBuf> {
    let file = release.output.join(format!("joular-bpf-{}-{}.cdx.json", release.version, program.target));
    let bill = serde_json::to_string_pretty(&bill(release, program)?)?;
    fs::write(&file, bill + "\n").with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

fn bill(release: &Release, program: &Program) -> Result<Value> {
    let version = release.version.as_str();
    let (own, libraries): (Vec<&Crate>, Vec<&Crate>) =
        program.crates.iter().partition(|one| one.name == crates::PROGRAM);
    let own = own.first().context("the program's own crate is not among its crates")?;
    let components = libraries.into_iter().map(component).collect::<Result<Vec<Value>>>()?;
    let dependencies = program.crates.iter().map(|one| json!({ "ref": one.reference(), "dependsOn": one.uses }));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": release.time()?,
            "lifecycles": [{ "phase": "build" }],
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist", "version": version }] },
            "component": {
                "type": "application",
                "bom-ref": own.reference(),
                "name": "joular-bpf",
                "version": version,
                "licenses": [{ "expression": own.licence }],
                "hashes": [{ "alg": "SHA-256", "content": sha256(&program.stripped)? }],
            },
            "supplier": { "name": MAINTAINER.split(" <").next() },
            "properties": [{ "name": "cdx:rustc:sbom:target:triple", "value": program.target.to_string() }],
        },
        "components": components,
        "dependencies": dependencies.collect::<Vec<Value>>(),
    }))
}

fn component(one: &Crate) -> Result<Value> {
    let mut component = json!({
        "type": "library",
        "bom-ref": one.reference(),
        "name": one.name,
        "version": one.version,
        "licenses": [{ "expression": one.licence }],
    });
    // A crate of the workspace is in no registry.
    if let Some(checksum) = &one.checksum {
        component["purl"] = format!("pkg:cargo/{}@{}", one.name, one.version.replace('+', "%2B")).into();
        component["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    if one.has_c_code {
        let Some((_, library)) = C_CODE.iter().find(|(name, _)| *name == one.name) else {
            bail!("crate {} has C code: add it to C_CODE in xtask/src/dist/sbom.rs", one.name);
        };
        let mut library = json!({ "type": "library", "name": library });
        // Some crates say the version behind their own: 2.1.2+zstd.1.5.7.
        if let Some((_, version)) =
            one.version.split_once(&format!("+{}.", library["name"].as_str().unwrap_or_default()))
        {
            library["version"] = version.into();
        }
        component["components"] = json!([library]);
    }
    Ok(component)
}
