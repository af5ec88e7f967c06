//! Packs the Python package as a wheel, by <https://packaging.python.org/specifications/binary-distribution-format>.
//!
//! What it says of itself is what python/pyproject.toml has. A wheel's times begin in 1980, and all of its files have that
//! one: they mean nothing for files that pip writes anew.

use std::{
    fs,
    io::{Cursor, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, Result, ensure};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use joular_tests::paths;
use toml::{Table, Value};
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use super::{
    Release,
    tree::{files_below, read, sha256},
};

/// The package's folder within the sources, and its manifest.
const SOURCES: &str = "python/src/joular";
const MANIFEST: &str = "python/pyproject.toml";
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// What says how the files are installed. A wheel for all: no file depends on the machine.
const WHEEL: &str = "Wheel-Version: 1.0\nGenerator: joular-bpf xtask\nRoot-Is-Purelib: true\nTag: py3-none-any\n";

pub fn make(release: &Release) -> Result<PathBuf> {
    let file = release.output.join(format!("joular-{}-py3-none-any.whl", release.version));
    fs::write(&file, content(&release.version)?).with_context(|| format!("writing {}", file.display()))?;
    Ok(file)
}

/// The wheel of a version.
fn content(version: &str) -> Result<Vec<u8>> {
    let info = format!("joular-{version}.dist-info");
    let mut files = Vec::new();
    for (file, name) in files_below(&paths::root().join(SOURCES))? {
        // What Python has compiled is of one machine.
        let is_source = [".py", ".typed"].iter().any(|end| name.ends_with(end));
        if is_source {
            files.push((format!("joular/{name}"), read(&file)?));
        }
    }
    ensure!(!files.is_empty(), "{SOURCES} has no files");
    files.push((format!("{info}/METADATA"), metadata(version)?.into_bytes()));
    files.push((format!("{info}/WHEEL"), WHEEL.as_bytes().to_vec()));
    for licence in LICENCES {
        files.push((format!("{info}/licenses/{licence}"), read(&paths::root().join(licence))?));
    }
    let record = record(&files, &format!("{info}/RECORD"))?;
    files.push((format!("{info}/RECORD"), record.into_bytes()));
    pack(&files)
}

/// Files that are installed, with their sums and sizes.
fn record(files: &[(String, Vec<u8>)], itself: &str) -> Result<String> {
    let mut record = String::new();
    for (name, content) in files {
        record += &format!("{name},sha256={},{}\n", URL_SAFE_NO_PAD.encode(bytes(&sha256(content)?)?), content.len());
    }
    Ok(record + itself + ",,\n")
}

/// Bytes of hexadecimal digits.
fn bytes(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| Ok(u8::from_str_radix(str::from_utf8(pair)?, 16)?));
    pairs.collect::<Result<_>>().with_context(|| format!("reading the sum {digits}"))
}

fn pack(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut wheel = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let options = options.last_modified_time(DateTime::default()).unix_permissions(0o644);
    for (name, content) in files {
        wheel.start_file(name.as_str(), options).with_context(|| format!("packing {name}"))?;
        wheel.write_all(content).with_context(|| format!("packing {name}"))?;
    }
    Ok(wheel.finish().context("packing the wheel")?.into_inner())
}

/// The manifest's fields as METADATA has them, and the README.
fn metadata(version: &str) -> Result<String> {
    let file = paths::root().join(MANIFEST);
    let manifest = String::from_utf8(read(&file)?).with_context(|| format!("reading {MANIFEST}"))?;
    let manifest: Table = manifest.parse().with_context(|| format!("reading {MANIFEST}"))?;
    let project = manifest.get("project").with_context(|| format!("{MANIFEST} has no project"))?;
    let of_manifest = text(project, "version")?;
    ensure!(of_manifest == version, "{MANIFEST} has version {of_manifest}, but the program is {version}");
    let mut lines = vec!["Metadata-Version: 2.4".to_owned()];
    for (field, key) in [
        ("Name", "name"),
        ("Version", "version"),
        ("Summary", "description"),
        ("License-Expression", "license"),
        ("Requires-Python", "requires-python"),
    ] {
        lines.push(format!("{field}: {}", text(project, key)?));
    }
    lines.extend(LICENCES.map(|licence| format!("License-File: {licence}")));
    lines.push(format!("Keywords: {}", texts(project, "keywords")?.join(",")));
    lines.extend(texts(project, "classifiers")?.iter().map(|classifier| format!("Classifier: {classifier}")));
    lines.extend(texts(project, "dependencies")?.iter().map(|needed| format!("Requires-Dist: {needed}")));
    let extras = project.get("optional-dependencies").and_then(Value::as_table).context("the project has no extras")?;
    let extras_value = Value::Table(extras.clone());
    for extra in extras.keys() {
        lines.push(format!("Provides-Extra: {extra}"));
        let needed = texts(&extras_value, extra)?;
        lines.extend(needed.iter().map(|needed| format!("Requires-Dist: {needed}; extra == \"{extra}\"")));
    }
    let readme = file.with_file_name(text(project, "readme")?);
    let readme = String::from_utf8(read(&readme)?).with_context(|| format!("reading {}", readme.display()))?;
    lines.push("Description-Content-Type: text/markdown".to_owned());
    Ok(lines.join("\n") + "\n\n" + &readme)
}

fn text<'a>(table: &'a Value, key: &str) -> Result<&'a str> {
    table.get(key).and_then(Value::as_str).with_context(|| format!("{MANIFEST}: {key} is not a text"))
}

fn texts<'a>(table: &'a Value, key: &str) -> Result<Vec<&'a str>> {
    let list = table.get(key).and_then(Value::as_array).with_context(|| format!("{MANIFEST}: {key} is not a list"))?;
    let texts = list.iter().map(|one| one.as_str().with_context(|| format!("{MANIFEST}: {key} has more than texts")));
    texts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wheel_is_twice_the_same_and_records_all_of_its_files() {
        let version = env!("CARGO_PKG_VERSION");
        let wheel = content(version).unwrap();
        assert!(wheel == content(version).unwrap(), "the wheel differs the second time");
        let mut archive = zip::ZipArchive::new(Cursor::new(wheel)).unwrap();
        let names: Vec<String> = archive.file_names().map(str::to_owned).collect();
        let record = format!("joular-{version}.dist-info/RECORD");
        let record = std::io::read_to_string(archive.by_name(&record).unwrap()).unwrap();
        let recorded: Vec<&str> = record.lines().filter_map(|line| line.split(',').next()).collect();
        assert_eq!(recorded, names);
        assert!(names.iter().any(|name| name == "joular/py.typed"), "{names:?}");
        assert!(names.iter().all(|name| !name.contains("__pycache__")), "{names:?}");
    }

    #[test]
    fn sums_are_written_as_wheels_have_them() {
        let files = [("a.py".to_owned(), b"abc".to_vec())];
        let expected = "a.py,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\nR,,\n";
        assert_eq!(record(&files, "R").unwrap(), expected);
    }

    #[test]
    fn another_version_than_the_programs_is_refused() {
        let error = content("9.9.9").unwrap_err().to_string();
        assert!(error.contains("but the program is 9.9.9"), "{error}");
    }
}
