//! Keeps a calibration on disk: JSON, whole or not there at all.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, fchown},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use thiserror::Error;

use super::{Calibration, fingerprint::domain_name};

/// The place of calibrations, unless another is given.
pub const DEFAULT_PATH: &str = "/var/lib/joular-bpf/calibration.json";

/// The version rises when a field changes its name, type or meaning.
pub const FORMAT_VERSION: u32 = 3;

/// No calibration is larger: 100 bytes for each of 1000 domains.
const MAX_BYTES: u64 = 256 * 1024;

const FILE_MODE: u32 = 0o640;
const DIRECTORY_MODE: u32 = 0o755;

#[derive(Debug, Error)]
pub enum FileError {
    #[error("reading calibration {path}: {source}: check --calibration, or make one with `joular-bpf calibrate`")]
    Read { path: PathBuf, source: io::Error },
    #[error("reading calibration {path}: {cause}: make a new one with `joular-bpf calibrate`")]
    Refused { path: PathBuf, cause: String },
    #[error("writing calibration {path}: {source}: choose another file with --output")]
    Write { path: PathBuf, source: io::Error },
}

impl FileError {
    /// There is no such file.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a calibration.
///
/// # Errors
/// If it cannot be read, or is not one that this version wrote.
pub fn read(path: &Path) -> Result<Calibration, FileError> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    let refused = |cause: String| FileError::Refused { path: path.into(), cause };
    match read {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(refused("it is not text".into())),
        Err(source) => Err(FileError::Read { path: path.into(), source }),
        Ok(length) if length as u64 > MAX_BYTES => Err(refused(format!("it is larger than {MAX_BYTES} bytes"))),
        Ok(_) => parse(&text).map_err(refused),
    }
}

/// Of every version.
#[derive(Deserialize)]
struct Versioned {
    format_version: u32,
}

/// A calibration, or what is wrong with the text.
pub fn parse(text: &str) -> Result<Calibration, String> {
    let not_one = |error: serde_json::Error| format!("it is not a calibration: {error}");
    let Versioned { format_version } = serde_json::from_str(text).map_err(not_one)?;
    if format_version != FORMAT_VERSION {
        return Err(format!("its format is version {format_version}, this joular-bpf reads version {FORMAT_VERSION}"));
    }
    let calibration: Calibration = serde_json::from_str(text).map_err(not_one)?;
    let domains = calibration.fingerprint.energy.as_ref().map_or(&[][..], |energy| &energy.domains);
    for power in &calibration.baselines {
        let name = domain_name(&power.domain, power.socket, power.core);
        if !domains.contains(&name) || calibration.baselines.len() > domains.len() {
            return Err(format!("it has an idle power of {}, a domain that it does not name", name.escape_debug()));
        }
    }
    let cores = calibration.core_powers.iter().map(|power| &power.microwatts);
    let cores = cores.chain(calibration.smt.iter().map(|smt| &smt.permille));
    let figures = calibration.baselines.iter().map(|power| &power.microwatts).chain(cores);
    match figures.chain(calibration.costs.iter().map(|cost| &cost.nanoseconds)).all(|figure| figure.is_consistent()) {
        true => Ok(calibration),
        false => Err("it has a typical figure below the least one".into()),
    }
}

/// Writes a calibration for `owner` (user, group): aside, to disk, and only
/// then to its place.
///
/// # Errors
/// If it cannot be written; what was there before stays.
pub fn write(path: &Path, calibration: &Calibration, owner: Option<(u32, u32)>) -> Result<(), FileError> {
    let failed = |source| FileError::Write { path: path.into(), source };
    let mut text = serde_json::to_vec_pretty(calibration).map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::IsADirectory.into()))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory).map_err(failed)?;
    let aside = directory.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    // Of a calibration that was killed at this very place under the same id.
    let _ = fs::remove_file(&aside);
    let written = write_aside(&aside, &text, owner).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        // It may not exist; the error that counts is the first one.
        let _ = fs::remove_file(&aside);
    }
    written.and_then(|()| File::open(directory)?.sync_all()).map_err(failed)
}

fn write_aside(path: &Path, bytes: &[u8], owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
    if let Some((uid, gid)) = owner {
        fchown(&file, Some(uid), Some(gid))?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::calibration::fixture;

    fn text() -> String {
        serde_json::to_string_pretty(&fixture::calibration()).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/calibration.json");
        // The second time, there is something to replace.
        for _ in 0..2 {
            write(&path, &fixture::calibration(), None).unwrap();
            assert_eq!(read(&path).unwrap(), fixture::calibration());
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, FILE_MODE);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left aside");
    }

    #[test]
    fn a_file_that_is_none_is_refused_with_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("calibration.json");
        let whole = text();
        let huge = " ".repeat(usize::try_from(MAX_BYTES).unwrap()) + &whole;
        for (bytes, cause) in [
            (&whole.as_bytes()[..whole.len() / 2], "EOF"),
            (b"".as_slice(), "EOF"),
            (b"garbage".as_slice(), "it is not a calibration"),
            (b"\xff\xfe".as_slice(), "it is not text"),
            (b"[]".as_slice(), "it is not a calibration"),
            (
                br#"{"format_version": 2, "old": 1}"#.as_slice(),
                "its format is version 2, this joular-bpf reads version 3",
            ),
            (br#"{"format_version": 3}"#.as_slice(), "missing field"),
            (huge.as_bytes(), "larger than 262144 bytes"),
        ] {
            fs::write(&path, bytes).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains(cause) && message.contains("`joular-bpf calibrate`"), "{cause}: {message}");
            assert!(message.contains("calibration.json"), "{message}");
        }
    }

    /// As they were before a machine's settings were noted.
    #[test]
    fn an_older_file_is_read_and_knows_no_settings() {
        let mut older = fixture::calibration();
        older.fingerprint.settings = None;
        let text = serde_json::to_string_pretty(&older).unwrap();
        assert!(!text.contains("settings"), "{text}");
        assert_eq!(parse(&text).unwrap(), older);
    }

    #[test]
    fn figures_that_nothing_can_have_measured_are_refused() {
        for (wrong, cause) in [
            (text().replace("\"least\": 20000000", "\"least\": 20000001"), "below the least"),
            (
                text().replace("\"domain\": \"dram\"", "\"domain\": \"d\\u001bam\""),
                r"d\u{1b}am of socket 0, a domain that it does not name",
            ),
            (text().replace("\"sockets\"", "\"pockets\""), "unknown field"),
        ] {
            assert_ne!(wrong, text());
            let refused = parse(&wrong).unwrap_err();
            assert!(refused.contains(cause), "{cause}: {refused}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_told_from_one_that_is_wrong() {
        let root = tempfile::tempdir().unwrap();
        let absent = read(&root.path().join("absent")).unwrap_err();
        assert!(absent.is_absent() && absent.to_string().contains("check --calibration"), "{absent}");
        assert!(!read(root.path()).unwrap_err().is_absent());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let message = write(&file.join("x.json"), &fixture::calibration(), None).unwrap_err().to_string();
        assert!(message.contains("file/x.json") && message.ends_with("with --output"), "{message}");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(at in 0usize..2000, byte in "[ -~]{0,3}") {
            let mut wrong = text();
            let at = at.min(wrong.len() - 1);
            wrong.replace_range(at..=at, &byte);
            let _ = parse(&wrong);
        }
    }
}
