use std::io::Write as _;

use flate2::{Compression, write::DeflateEncoder};
use proptest::prelude::*;

use super::*;

const TEXT: &str = "Manifest-Version: 1.0\r\nImplementation-Title: Pet Clinic\r\nImplementation-Version: 3.2.0\r\n\r\n\
                    Name: a/B.class\r\nImplementation-Version: 9\r\n";

fn deflated(text: &str) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A file of a jar; `has_length_behind` as the jar tool writes it.
fn file(name: &str, method: u16, contents: &[u8], has_length_behind: bool) -> Vec<u8> {
    let length = if has_length_behind { 0 } else { u32::try_from(contents.len()).unwrap() };
    let mut bytes = b"PK\x03\x04\x14\0".to_vec();
    bytes.extend(if has_length_behind { 8_u16 } else { 0 }.to_le_bytes());
    bytes.extend(method.to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(length.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    // Four bytes that say nothing here, as the jar tool has them.
    bytes.extend(4_u16.to_le_bytes());
    bytes.extend(name.as_bytes());
    bytes.extend(b"\xfe\xca\0\0");
    bytes.extend(contents);
    if has_length_behind {
        bytes.extend(b"PK\x07\x08");
        bytes.extend([0; 12]);
    }
    bytes
}

fn found(parts: &[Vec<u8>]) -> Option<String> {
    manifest(&mut parts.concat().as_slice())
}

#[test]
fn a_file_name_is_split_at_its_version() {
    for (file, name, version) in [
        ("petclinic-3.2.0.jar", "petclinic", Some("3.2.0")),
        ("spring-petclinic-3.2.0-SNAPSHOT.jar", "spring-petclinic", Some("3.2.0-SNAPSHOT")),
        ("app-1.0-20240101.123456-1.jar", "app", Some("1.0-20240101.123456-1")),
        ("app-2.0.0-RC1.war", "app", Some("2.0.0-RC1")),
        ("app-1.4-exec.jar", "app", Some("1.4")),
        ("app-1.4-jar-with-dependencies.jar", "app", Some("1.4")),
        ("log4j-1.2-api-2.17.1.jar", "log4j-1.2-api", Some("2.17.1")),
        ("guava-33.0.0-jre.jar", "guava", Some("33.0.0-jre")),
        ("quarkus-run.jar", "quarkus-run", None),
        ("app-all.jar", "app-all", None),
        ("3-tier.jar", "3-tier", None),
        ("-1.0.jar", "-1.0", None),
        ("server", "server", None),
    ] {
        let found = of_file_name(file);
        assert_eq!((found.name, found.version), (Some(name.into()), version.map(Into::into)), "{file}");
    }
    assert_eq!(of_file_name(".jar"), JarIdentity::default());
}

#[test]
fn the_manifest_counts_before_the_file_name() {
    for (manifest, name, version) in [
        (None, "app", Some("1.0")),
        (Some(TEXT), "Pet Clinic", Some("3.2.0")),
        (Some("Implementation-Title: shop\n"), "shop", Some("1.0")),
        (Some("implementation-version: 2\n"), "app", Some("2")),
        (Some("Implementation-Title: a name over \n two lines\n"), "a name over two lines", Some("1.0")),
        (Some("Implementation-Title:  \n"), "app", Some("1.0")),
        (Some("\nImplementation-Title: shop\n"), "app", Some("1.0")),
    ] {
        let found = identity("app-1.0.jar", manifest);
        assert_eq!((found.name, found.version), (Some(name.into()), version.map(Into::into)), "{manifest:?}");
    }
    let long = format!("Implementation-Title: {}\n", "x".repeat(1000));
    assert_eq!(identity("app.jar", Some(&long)).name, Some("app".into()), "nobody reads such a name");
}

#[test]
fn a_manifest_is_found_where_jars_have_it() {
    let folder = || file("META-INF/", 0, b"", false);
    let packed = |behind| file(MANIFEST, 8, &deflated(TEXT), behind);
    for (what, parts) in [
        ("as the jar tool writes it", vec![file("META-INF/", 8, &deflated(""), true), packed(true)]),
        ("behind a folder that is stored", vec![folder(), packed(true)]),
        ("behind a file of unknown length", vec![file("x", 8, &deflated("x"), true), packed(false)]),
        ("alone", vec![packed(false)]),
        ("stored", vec![folder(), file(MANIFEST, 0, TEXT.as_bytes(), false)]),
        ("behind a file", vec![file("x", 0, b"contents", false), packed(false), folder()]),
    ] {
        assert_eq!(found(&parts).as_deref(), Some(TEXT), "{what}");
    }
    for (what, parts) in [
        ("no jar", vec![b"#!/bin/sh\n".repeat(10)]),
        ("nothing", vec![]),
        ("cut short", vec![folder(), packed(false)[..60].to_vec()]),
        ("behind a long file", vec![file("x", 8, &deflated(&"x".repeat(1 << 20)), true), packed(false)]),
        ("behind a stored file of unknown length", vec![file("x", 0, b"x", true), packed(false)]),
        ("behind many", [vec![folder(); MAX_FILES], vec![packed(false)]].concat()),
        ("packed in an unknown way", vec![file(MANIFEST, 12, TEXT.as_bytes(), false)]),
    ] {
        assert_eq!(found(&parts), None, "{what}");
    }
}

#[test]
fn a_manifest_that_unpacks_to_gigabytes_is_cut() {
    let text = "x".repeat(1 << 22);
    let found = found(&[file(MANIFEST, 8, &deflated(&text), true)]).unwrap();
    assert_eq!(found.len() as u64, MAX_MANIFEST);
}

proptest! {
    #[test]
    fn no_bytes_are_a_problem(bytes in proptest::collection::vec(any::<u8>(), 0..600), text in ".{0,80}") {
        let _ = manifest(&mut bytes.as_slice());
        let _ = manifest(&mut [b"PK\x03\x04".as_slice(), &bytes].concat().as_slice());
        let _ = identity(&text, Some(&String::from_utf8_lossy(&bytes)));
    }
}
