//! Tests what is said about packages: bills of materials, provenance, checksums and their signature.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use joular_tests::{notes, packages::Packages, python};
use serde_json::Value;

use super::{for_each_processor, packages};
use crate::packaging::printed;

fn json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn texts<'a>(list: &'a Value, key: &str) -> BTreeSet<&'a str> {
    list.as_array().unwrap().iter().map(|one| one[key].as_str().unwrap()).collect()
}

#[test]
fn bills_of_materials_and_provenance_are_of_the_official_schemas() {
    let Some(packages) = packages() else { return };
    if !python::SUPPLY_CHAIN.is_ready() {
        return notes::skipped("the schemas are missing (`cargo xtask test --slow` installs them)");
    }
    let bills = for_each_processor().into_iter().flat_map(|packages| [packages.bill("gnu"), packages.bill("musl")]);
    let files: Vec<PathBuf> = bills.chain([packages.provenance()]).map(Result::unwrap).collect();
    let said = printed(python::SUPPLY_CHAIN.script("supply_chain.py").unwrap().args(&files));
    assert_eq!(said.lines().count(), files.len(), "{said}");
}

#[test]
fn a_bill_of_materials_lists_the_libraries_whose_licences_the_archive_has() {
    for_each_processor().iter().for_each(check_libraries);
}

fn check_libraries(packages: &Packages) {
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--to-stdout", "--wildcards", "*/LICENSES-OF-LIBRARIES.txt", "--file"]);
    let licences = printed(tar.arg(packages.archive().unwrap()));
    let listed = licences.split("\n\n").nth(1).unwrap();
    let listed: BTreeSet<&str> = listed.lines().map(|line| line.split(": ").next().unwrap()).collect();
    let bill = json(&packages.bill("musl").unwrap());
    let components = bill["components"].as_array().unwrap();
    let libraries = components.iter().filter(|one| one["purl"].is_string());
    let libraries: Vec<String> = libraries
        .map(|one| format!("{} {}", one["name"].as_str().unwrap(), one["version"].as_str().unwrap()))
        .collect();
    assert_eq!(libraries.iter().map(String::as_str).collect::<BTreeSet<_>>(), listed);
    // They are in the eBPF programs, which the program contains.
    assert!(["aya-ebpf", "aya-log-ebpf"].iter().all(|name| texts(&bill["components"], "name").contains(name)));
    let c_code = components.iter().filter(|one| !one["components"].is_null()).map(|one| &one["components"]);
    let c_code: BTreeSet<&str> = c_code.flat_map(|inner| texts(inner, "name")).collect();
    assert_eq!(c_code, BTreeSet::from(["BoringSSL (parts)", "mimalloc", "zstd"]));
}

#[test]
fn a_bill_of_materials_names_each_crate_that_another_depends_on_and_no_directory_of_its_builder() {
    let bills = |packages: Packages| ["gnu", "musl"].map(|library| packages.bill(library).unwrap());
    for file in for_each_processor().into_iter().flat_map(bills) {
        let bill = json(&file);
        let mut known = texts(&bill["components"], "bom-ref");
        known.insert(bill["metadata"]["component"]["bom-ref"].as_str().unwrap());
        assert_eq!(texts(&bill["dependencies"], "ref"), known);
        for dependency in bill["dependencies"].as_array().unwrap() {
            let on = dependency["dependsOn"].as_array().unwrap().iter().map(|one| one.as_str().unwrap());
            assert!(on.clone().all(|one| known.contains(one)), "{dependency}");
        }
        assert!(!fs::read_to_string(&file).unwrap().contains("file://"));
    }
}

#[test]
fn checksums_are_of_all_files_and_provenance_has_the_same() {
    let Some(packages) = packages() else { return };
    let sums = fs::read_to_string(packages.directory().join("SHA256SUMS")).unwrap();
    let sums: BTreeSet<(&str, &str)> =
        sums.lines().map(|line| line.strip_prefix("SHA256 (").unwrap().split_once(") = ").unwrap()).collect();
    printed(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(packages.directory()));
    let provenance = json(&packages.provenance().unwrap());
    let subjects = provenance["subject"].as_array().unwrap().iter();
    let mut expected: BTreeSet<(&str, &str)> =
        subjects.map(|one| (one["name"].as_str().unwrap(), one["digest"]["sha256"].as_str().unwrap())).collect();
    let itself = sums.iter().find(|(name, _)| name.ends_with(".provenance.json")).expect("a sum of the provenance");
    expected.insert(*itself);
    assert_eq!(sums, expected);
    let names: BTreeSet<String> = sums.iter().map(|(name, _)| (*name).to_owned()).collect();
    let files = fs::read_dir(packages.directory()).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
    let without = ["SHA256SUMS", "SHA256SUMS.minisig", "minisign.pub"];
    assert_eq!(names, files.into_iter().filter(|name| !without.contains(&name.as_str())).collect());
}

#[test]
fn minisign_accepts_the_signature_and_refuses_changed_checksums() {
    let Some(packages) = packages() else { return };
    if Command::new("minisign").arg("-v").output().is_err() {
        return notes::skipped("there is no minisign (`cargo xtask setup` installs it on Debian)");
    }
    let verify = |sums: &Path, packages: &Packages| {
        let mut minisign = Command::new("minisign");
        minisign.arg("-V").arg("-p").arg(packages.directory().join("minisign.pub"));
        let signature = packages.directory().join("SHA256SUMS.minisig");
        minisign.arg("-x").arg(signature).arg("-m").arg(sums).output().unwrap()
    };
    let sums = packages.directory().join("SHA256SUMS");
    let verified = verify(&sums, &packages);
    assert!(verified.status.success(), "{verified:?}");
    assert!(String::from_utf8_lossy(&verified.stdout).contains("Trusted comment: joular-bpf "), "{verified:?}");
    let changed = tempfile::NamedTempFile::new().unwrap();
    fs::write(changed.path(), fs::read_to_string(&sums).unwrap().replacen('0', "1", 1)).unwrap();
    assert!(!verify(changed.path(), &packages).status.success());
}
