//! Reads name and version of what a JVM runs by `-jar`: from the jar's manifest, else from its file
//! name.
//!
//! The manifest is the first file of a jar, or the second after its folder: the jar tool, Maven and Gradle
//! write it there, and Java's own `JarInputStream` wants it there. So the beginning of the file is
//! all that is read, which is bounded whatever the jar claims. Reading the directory at a jar's end
//! would take memory of the jar's choice.

use std::io::{self, BufRead, Read};

use flate2::bufread::DeflateDecoder;
use joular_data::model::target_text::TargetText;

use super::usable;

use crate::bounds::Bound;

/// What a jar is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JarIdentity {
    pub name: Option<TargetText>,
    pub version: Option<TargetText>,
}

/// Of a jar no more is read.
pub const MAX_READ: u64 = 256 * 1024;
/// Longest manifest. Signed jars have a section for each file; the main one comes first.
const MAX_MANIFEST: u64 = 64 * 1024;
/// Files that are looked at.
const MAX_FILES: usize = 8;
pub static BYTES: Bound = Bound::new(
    "jar_not_read",
    MAX_READ,
    "bytes of a jar before the end of its manifest",
    "the name of its file names the service",
);
pub static FILES: Bound = Bound::new(
    "jar_files_not_read",
    MAX_FILES as u64,
    "files in a jar up to its manifest",
    "the name of its file names the service",
);
const MANIFEST: &str = "META-INF/MANIFEST.MF";

/// What the manifest says; what it does not say, the file name tells.
pub fn identity(file_name: &str, manifest: Option<&str>) -> JarIdentity {
    let by_name = of_file_name(file_name);
    let attribute = |name: &str| manifest.and_then(|manifest| attribute(manifest, name)).as_deref().and_then(usable);
    JarIdentity {
        name: attribute("Implementation-Title").or(by_name.name),
        version: attribute("Implementation-Version").or(by_name.version),
    }
}

/// `petclinic-3.2.0.jar` is version 3.2.0 of `petclinic`. The version begins at the first dash before a
/// digit behind which each part is a number or a word of versions; what tells apart jars of one version
/// (`-exec`, `-all`) is left out.
pub fn of_file_name(file_name: &str) -> JarIdentity {
    let name = [".jar", ".war"].iter().find_map(|suffix| file_name.strip_suffix(suffix)).unwrap_or(file_name);
    let dashes = name.match_indices('-').map(|(at, _)| at);
    let split = dashes.filter_map(|at| Some((name.get(..at)?, name.get(at + 1..)?))).find(|(before, version)| {
        let starts_with_digit = version.starts_with(|first: char| first.is_ascii_digit());
        !before.is_empty() && starts_with_digit && version.split('-').all(is_of_version)
    });
    match split {
        Some((name, version)) => {
            let parts: Vec<&str> = version.split('-').take_while(|part| !CLASSIFIERS.contains(part)).collect();
            JarIdentity { name: usable(name), version: usable(&parts.join("-")) }
        }
        None => JarIdentity { name: usable(name), version: None },
    }
}

/// Kinds of jars of one version.
const CLASSIFIERS: [&str; 9] = ["exec", "all", "runner", "boot", "fat", "shaded", "standalone", "uber", "jar"];

fn is_of_version(part: &str) -> bool {
    const WORDS: [&str; 12] =
        ["snapshot", "release", "final", "ga", "alpha", "beta", "rc", "m", "jre", "sp", "with", "dependencies"];
    let word = part.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.').to_ascii_lowercase();
    part.starts_with(|first: char| first.is_ascii_digit()) || WORDS.contains(&&*word) || CLASSIFIERS.contains(&part)
}

/// An attribute of a manifest's main section, which ends at the first empty line. A line that starts
/// with a space goes on with the one before.
fn attribute(manifest: &str, name: &str) -> Option<String> {
    let mut lines = manifest.lines().take_while(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = line.split_once(':') else { continue };
        if key.eq_ignore_ascii_case(name) {
            let mut value = value.trim_start().to_owned();
            while let Some(more) = lines.next_if(|line| line.starts_with(' ')) {
                value.push_str(more.get(1..).unwrap_or_default());
            }
            return Some(value);
        }
    }
    None
}

/// The manifest of a jar, if it is one of the first files there.
pub fn manifest(jar: &mut impl BufRead) -> Option<String> {
    for _ in 0..MAX_FILES {
        let header = LocalHeader::read(jar).ok()??;
        if header.name == MANIFEST.as_bytes() {
            return header.text(jar);
        }
        header.skip_contents(jar)?;
    }
    FILES.cut(1);
    None
}

/// What stands before a file's contents (APPNOTE.TXT of the ZIP format, 4.3.7).
struct LocalHeader {
    has_length_behind: bool,
    method: u16,
    compressed_bytes: u32,
    name: Vec<u8>,
}

impl LocalHeader {
    /// `None`: something else.
    fn read(jar: &mut impl Read) -> io::Result<Option<Self>> {
        let mut fixed = [0; 30];
        jar.read_exact(&mut fixed)?;
        if !fixed.starts_with(b"PK\x03\x04") {
            return Ok(None);
        }
        let short = |at: usize| u16::from_le_bytes([fixed[at], fixed[at + 1]]);
        let compressed_bytes = u32::from(short(18)) | u32::from(short(20)) << 16;
        let mut name = vec![0; short(26).into()];
        jar.read_exact(&mut name)?;
        skip(jar, short(28).into())?;
        Ok(Some(Self { has_length_behind: short(6) & 8 != 0, method: short(8), compressed_bytes, name }))
    }

    /// Contents whose length stands behind them end where they unpack to an end, as the folder that the
    /// jar tool writes first.
    fn skip_contents(&self, jar: &mut impl BufRead) -> Option<()> {
        if !self.has_length_behind {
            return skip(jar, self.compressed_bytes.into()).ok();
        }
        let unpacked = match self.method {
            8 => io::copy(&mut DeflateDecoder::new(&mut *jar).take(MAX_MANIFEST), &mut io::sink()).ok()?,
            _ => return None,
        };
        let mut lengths = [0; 16];
        jar.read_exact(&mut lengths).ok()?;
        (unpacked < MAX_MANIFEST && lengths.starts_with(b"PK\x07\x08")).then_some(())
    }

    /// The contents, as far as they may be long.
    fn text(&self, jar: &mut impl BufRead) -> Option<String> {
        let mut bytes = Vec::new();
        match self.method {
            0 => jar.take(u64::from(self.compressed_bytes).min(MAX_MANIFEST)).read_to_end(&mut bytes).ok()?,
            8 => DeflateDecoder::new(jar).take(MAX_MANIFEST).read_to_end(&mut bytes).ok()?,
            _ => return None,
        };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn skip(jar: &mut impl Read, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut jar.take(bytes), &mut io::sink())?;
    if skipped == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests;
