//! Tests the container image: what its index, manifests and configurations say is what it has, for each processor.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use joular_tests::packages::Packages;
use serde_json::Value;

use super::{as_readelf_calls, for_each_processor, packages, processor_of};
use crate::packaging::printed;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn sha256(file: &Path) -> String {
    let sum = printed(Command::new("sha256sum").arg(file));
    format!("sha256:{}", sum.split(' ').next().unwrap())
}

/// The blob that a descriptor names, whose size and digest are as it says.
fn blob(layout: &Path, descriptor: &Value) -> std::path::PathBuf {
    let digest = descriptor["digest"].as_str().unwrap();
    let file = layout.join("blobs").join(digest.replace(':', "/"));
    assert_eq!(fs::metadata(&file).unwrap().len(), descriptor["size"].as_u64().unwrap(), "{descriptor}");
    assert_eq!(sha256(&file), digest);
    file
}

/// Descriptors of the images of an archive: those in its index, or the only one. All blobs of the archive belong to these.
fn images(layout: &Path) -> Vec<Value> {
    assert_eq!(json(&layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let index = json(&layout.join("index.json"));
    let [named] = index["manifests"].as_array().unwrap().as_slice() else { panic!("{index} names one image") };
    assert!(named["annotations"]["org.opencontainers.image.ref.name"].is_string(), "{named}");
    match named["mediaType"].as_str() {
        Some(MANIFEST) => vec![named.clone()],
        Some(INDEX) => json(&blob(layout, named))["manifests"].as_array().unwrap().clone(),
        other => panic!("{other:?} is not a kind of image"),
    }
}

/// An image has one layer, whose program is for the processor that the index and the configuration name.
fn check_image(layout: &Path, image: &Value) -> String {
    let processor = image["platform"]["architecture"].as_str().unwrap();
    assert_eq!((&image["mediaType"], &image["platform"]["os"]), (&MANIFEST.into(), &"linux".into()));
    let manifest = json(&blob(layout, image));
    let config = json(&blob(layout, &manifest["config"]));
    assert_eq!((&config["architecture"], &config["os"]), (&processor.into(), &"linux".into()));
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/joular-bpf");
    let [layer] = manifest["layers"].as_array().unwrap().as_slice() else { panic!("{manifest} has one layer") };
    let folder = tempfile::tempdir().unwrap();
    let unpacked = folder.path().join("layer.tar.gz");
    fs::copy(blob(layout, layer), &unpacked).unwrap();
    printed(Command::new("gunzip").arg(&unpacked));
    let unpacked = unpacked.with_extension("");
    assert_eq!(config["rootfs"]["diff_ids"][0], sha256(&unpacked).as_str());
    let mut tar = Command::new("tar");
    printed(tar.arg("--extract").arg("--directory").arg(folder.path()).arg("--file").arg(&unpacked));
    let program = folder.path().join("usr/bin/joular-bpf");
    assert_eq!(processor_of(&program), as_readelf_calls(processor));
    let headers = printed(Command::new("readelf").args(["--program-headers", "--wide"]).arg(&program));
    assert!(!headers.contains("INTERP"), "{headers}");
    processor.to_owned()
}

#[test]
fn the_image_has_for_each_processor_what_its_manifests_say() {
    let Some(one) = packages() else { return };
    let layout = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    printed(tar.arg("--extract").arg("--directory").arg(layout.path()).arg("--file").arg(one.image().unwrap()));
    let images = images(layout.path());
    let found: BTreeSet<String> = images.iter().map(|image| check_image(layout.path(), image)).collect();
    let made: Vec<Packages> = for_each_processor();
    assert_eq!(found, made.iter().map(|packages| packages.machine().debian.to_owned()).collect());
    assert_eq!(images.len(), found.len(), "a processor is there twice");
    // Its manifest, configuration and layer; and the index, if there are several images.
    let blobs = fs::read_dir(layout.path().join("blobs/sha256")).unwrap().count();
    assert_eq!(blobs, 3 * images.len() + usize::from(images.len() > 1));
}
