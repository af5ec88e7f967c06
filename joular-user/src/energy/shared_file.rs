//! Reads a file in which someone else reports energy or power. So a virtual machine learns from its host what
//! it draws.
//!
//! - `microjoules`: one number, a running total in µJ, as `--guest-power` writes it. Sums are exact.
//! - `watts`: one number, replaced with each report, as JoularJX reads it.
//! - `powerjoular`: CSV lines `timestamp, utilisation, watts`, as PowerJoular
//!   writes them and JoularJX reads them; the last line counts.
//!
//! The file belongs to another machine, so nothing in it is trusted. At most its last 4 KiB are
//! read, and a power must be a number between 0 and 100 kW. A file that is no longer written is a
//! failed read, not a constant power.

use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use joular_data::model::domain::{Domain, FaultCause, Label, Meter, Reading};
use thiserror::Error;

use super::{
    Adds, EnergyChoice, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind,
    watts::{MOST_WATTS, WattsError, parse_microwatts},
};
use crate::privileges::lent::as_the_user;

/// What [`super::SOURCES`] has of the formats.
pub const MICROJOULES: SourceKind = SourceKind {
    name: FileFormat::MicroJoules.name(),
    measures: "the machine's energy, a running total in µJ in the file that --energy-file names",
    permission: PERMISSION,
    adds: Adds::Never,
    // A number that is small yet could be either.
    open: |options| match options.choice {
        EnergyChoice::Auto => Err(Unusable::new(
            UnusableKind::NotAsked,
            "auto takes a number in a file for watts: name this source with --energy microjoules",
        )),
        EnergyChoice::These(_) => open(options, FileFormat::MicroJoules),
    },
};
pub const WATTS: SourceKind = SourceKind {
    name: FileFormat::Watts.name(),
    measures: "the machine's power, one number in the file that --energy-file names",
    permission: PERMISSION,
    adds: Adds::Never,
    open: |options| open(options, FileFormat::Watts),
};
pub const POWERJOULAR: SourceKind = SourceKind {
    name: FileFormat::PowerJoular.name(),
    measures: "the machine's power, PowerJoular's CSV in the file that --energy-file names",
    permission: PERMISSION,
    adds: Adds::Never,
    open: |options| open(options, FileFormat::PowerJoular),
};

const PERMISSION: &str = "to read the file";

fn open(options: &EnergyOptions, format: FileFormat) -> Result<Opened, Unusable> {
    let path = options
        .file
        .as_ref()
        .ok_or_else(|| Unusable::new(UnusableKind::NotAsked, "no file to read: name it with --energy-file PATH"))?;
    let source = SharedFile::open(path, format).map_err(|error| {
        // A file that is not there was named all the same: no matter of the machine's.
        let is_denied = error.cause() == FaultCause::Denied;
        let kind = if is_denied { UnusableKind::Denied } else { UnusableKind::Broken };
        Unusable::new(kind, error.to_string())
    })?;
    let what = if format == FileFormat::MicroJoules { "energy" } else { "power" };
    Ok(Opened::new(source, format!("{what} reported in {}", path.display()), "as often as the file is written"))
}

/// How much of the file's end is read.
const TAIL_BYTES: u64 = 4096;

/// Age from which a report no longer describes the present. All writers report about once a second.
pub const STALE_AFTER: Duration = Duration::from_secs(10);

/// How the file is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    MicroJoules,
    Watts,
    PowerJoular,
}

impl FileFormat {
    pub const ALL: [Self; 3] = [Self::MicroJoules, Self::Watts, Self::PowerJoular];

    pub const fn name(self) -> &'static str {
        match self {
            Self::MicroJoules => "microjoules",
            Self::Watts => "watts",
            Self::PowerJoular => "powerjoular",
        }
    }
}

/// Why a report could not be read.
#[derive(Debug, Error)]
pub enum SharedFileError {
    #[error("reading {path}: {cause}: check --energy-file")]
    Io { path: String, cause: io::Error },
    #[error("reading {path}: not a regular file: check --energy-file")]
    NotAFile { path: String },
    #[error("reading {path}: not updated for {seconds} s: is whatever writes it still running?")]
    Stale { path: String, seconds: u64 },
    #[error("reading {path} as {format}: {cause}")]
    Malformed { path: String, format: &'static str, cause: LineError },
}

impl SharedFileError {
    fn cause(&self) -> FaultCause {
        match self {
            Self::Io { cause, .. } => FaultCause::of(cause),
            Self::NotAFile { .. } => FaultCause::Unreadable,
            Self::Stale { .. } => FaultCause::Stale,
            Self::Malformed { .. } => FaultCause::Malformed,
        }
    }
}

/// What is wrong with the text of a report.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    #[error("the file is empty")]
    Empty,
    #[error("the last line has {0} fields, not the 3 of \"timestamp, utilisation, watts\"")]
    TooFewFields(usize),
    #[error("\"{}\" is not a whole number of microjoules", .0.chars().take(40).flat_map(char::escape_debug).collect::<String>())]
    MicroJoules(String),
    #[error(transparent)]
    Watts(#[from] WattsError),
}

/// Such a file, read anew for each window.
#[derive(Debug)]
pub struct SharedFile {
    path: PathBuf,
    format: FileFormat,
    domains: [Domain; 1],
}

impl SharedFile {
    /// Reads the file once to see that it can be used.
    ///
    /// # Errors
    /// If there is no current report in this format.
    pub fn open(path: &Path, format: FileFormat) -> Result<Self, SharedFileError> {
        read_report(path, format)?;
        let meter = match format {
            FileFormat::MicroJoules => Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: MOST_WATTS },
            FileFormat::Watts | FileFormat::PowerJoular => Meter::Power,
        };
        let domain = Domain::new("machine", None, format.name(), Label::Reported, meter);
        Ok(Self { path: path.to_owned(), format, domains: [domain] })
    }
}

impl EnergySource for SharedFile {
    fn name(&self) -> &'static str {
        self.format.name()
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        vec![match read_report(&self.path, self.format) {
            Ok(reading) => reading,
            Err(failure) => Reading::failed(failure.cause(), failure.to_string()),
        }]
    }
}

/// What was reported last.
fn read_report(path: &Path, format: FileFormat) -> Result<Reading, SharedFileError> {
    let shown = || path.display().to_string();
    let io = |cause| SharedFileError::Io { path: shown(), cause };
    // Opening a pipe would wait for its writer.
    let open = || OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
    // What is wrong with it is shown to the user who named it.
    let file = as_the_user(open).and_then(|opened| opened).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(SharedFileError::NotAFile { path: shown() });
    }
    if let Some(age) = age(&metadata).filter(|age| *age > STALE_AFTER) {
        return Err(SharedFileError::Stale { path: shown(), seconds: age.as_secs() });
    }
    let tail = read_tail(&file, metadata.len()).map_err(io)?;
    parse_report(&String::from_utf8_lossy(&tail), format).map_err(|cause| SharedFileError::Malformed {
        path: shown(),
        format: format.name(),
        cause,
    })
}

/// Time since the last write; `None` if the clocks disagree, as they may
/// between a host and its guest.
fn age(metadata: &Metadata) -> Option<Duration> {
    SystemTime::now().duration_since(metadata.modified().ok()?).ok()
}

fn read_tail(file: &File, length: u64) -> io::Result<Vec<u8>> {
    let mut tail = vec![0; usize::try_from(length.min(TAIL_BYTES)).unwrap_or(0)];
    let mut filled = 0;
    let start = length.saturating_sub(TAIL_BYTES);
    while let Some(rest) = tail.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, start + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    tail.truncate(filled);
    Ok(tail)
}

/// What the last line of `text` says.
fn parse_report(text: &str, format: FileFormat) -> Result<Reading, LineError> {
    let line = last_line(text).ok_or(LineError::Empty)?;
    // Where fields are separated by semicolons, commas are decimal.
    let has_semicolons = line.contains(';');
    let microwatts = match format {
        FileFormat::MicroJoules => {
            let total = line.trim().parse().map_err(|_| LineError::MicroJoules(line.to_owned()))?;
            return Ok(Reading::CounterUj(total));
        }
        FileFormat::Watts => parse_microwatts(&line.trim_end_matches([';', ',']).replacen(',', ".", 1))?,
        FileFormat::PowerJoular => {
            let mut fields = line.split(if has_semicolons { ';' } else { ',' });
            let field = fields.nth(2).ok_or_else(|| LineError::TooFewFields(line.split([';', ',']).count()))?;
            parse_microwatts(&if has_semicolons { field.replacen(',', ".", 1) } else { field.to_owned() })?
        }
    };
    Ok(Reading::PowerUw(microwatts))
}

/// The last whole line. A line without an end may still be being written, so it counts only if
/// there is no other.
fn last_line(text: &str) -> Option<&str> {
    let whole = text.rfind('\n').and_then(|end| text.get(..end));
    let is_text = |line: &&str| !line.trim().is_empty();
    whole.and_then(|whole| whole.lines().rfind(is_text)).or_else(|| text.lines().rfind(is_text)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: FileFormat, text: &str, expected: Option<u64>) {
        let expected =
            expected.map(if format == FileFormat::MicroJoules { Reading::CounterUj } else { Reading::PowerUw });
        assert_eq!(parse_report(text, format).ok(), expected, "{text:?}");
    }

    #[test]
    fn microjoules_are_one_whole_number() {
        for (text, expected) in [
            ("12500000\n", Some(12_500_000)),
            ("0", Some(0)),
            ("18446744073709551615\n", Some(u64::MAX)),
            ("18446744073709551616\n", None),
            ("12.5\n", None),
            ("-1\n", None),
            ("", None),
        ] {
            check(FileFormat::MicroJoules, text, expected);
        }
        let (_directory, path) = written(b"7\n");
        let mut source = SharedFile::open(&path, FileFormat::MicroJoules).unwrap();
        assert_eq!(source.read(), [Reading::CounterUj(7)]);
        assert!(matches!(source.domains()[0].meter, Meter::Counter { range_uj: 0, unit_uj: 1, .. }));
    }

    #[test]
    fn watts_is_one_number() {
        for (text, expected) in [
            ("12.5\n", Some(12_500_000)),
            ("12.5", Some(12_500_000)),
            ("  7 \r\n\n", Some(7_000_000)),
            ("12,5\n", Some(12_500_000)),
            ("1\n2\n", Some(2_000_000)),
            ("", None),
            ("\n\n", None),
            ("NaN\n", None),
            ("-1\n", None),
            ("1e9\n", None),
            ("1 2\n", None),
        ] {
            check(FileFormat::Watts, text, expected);
        }
    }

    #[test]
    fn powerjoular_has_watts_in_the_third_field() {
        for (text, expected) in [
            ("2026-01-01 10:00:00,0.25,31.5\n", Some(31_500_000)),
            ("2026-01-01 10:00:00,0.25,31.5,20.1,11.4\n", Some(31_500_000)),
            ("2026-01-01 10:00:00; 0,25; 31,5\n", Some(31_500_000)),
            ("Date,CPU Utilization,Total Power\nnow,0.1,5\n", Some(5_000_000)),
            ("Date,CPU Utilization,Total Power\n", None),
            ("a,0.1,5\nb,0.1,6\n", Some(6_000_000)),
            ("a,0.1,5\nb,0.1,6", Some(5_000_000)),
            ("b,0.1,6", Some(6_000_000)),
            ("5\n", None),
            ("a,0.1,inf\n", None),
        ] {
            check(FileFormat::PowerJoular, text, expected);
        }
    }

    fn written(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("power");
        std::fs::write(&path, text).unwrap();
        (directory, path)
    }

    #[test]
    fn only_the_end_of_a_long_file_is_read() {
        let (_directory, path) = written("x,0.1,9.5\n".repeat(100_000).as_bytes());
        let mut source = SharedFile::open(&path, FileFormat::PowerJoular).unwrap();
        assert_eq!(source.read(), [Reading::PowerUw(9_500_000)]);
        assert_eq!(source.domains()[0].label, Label::Reported);
    }

    #[test]
    fn a_file_that_is_no_longer_written_is_a_failed_read() {
        let (_directory, path) = written(b"10\n");
        let mut source = SharedFile::open(&path, FileFormat::Watts).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
        let [Reading::Failed(fault)] = &source.read()[..] else { panic!("a stale file was read") };
        assert_eq!(fault.cause, FaultCause::Stale);
        assert!(fault.text.contains("not updated for 60 s"), "{}", fault.text);
        file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
        assert_eq!(source.read(), [Reading::PowerUw(10_000_000)]);
    }

    #[test]
    fn a_file_that_goes_away_and_comes_back() {
        let (_directory, path) = written(b"10\n");
        let mut source = SharedFile::open(&path, FileFormat::Watts).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(source.read()[..], [Reading::Failed(_)]));
        std::fs::write(&path, "11\n").unwrap();
        assert_eq!(source.read(), [Reading::PowerUw(11_000_000)]);
    }

    #[test]
    fn what_is_no_report_is_refused() {
        let (directory, path) = written(&[0xff; 10_000]);
        assert!(matches!(SharedFile::open(&path, FileFormat::Watts), Err(SharedFileError::Malformed { .. })));
        assert!(matches!(SharedFile::open(directory.path(), FileFormat::Watts), Err(SharedFileError::NotAFile { .. })));
        let absent = SharedFile::open(&directory.path().join("absent"), FileFormat::Watts).unwrap_err().to_string();
        assert!(absent.ends_with("check --energy-file"), "{absent}");
    }

    proptest::proptest! {
        #[test]
        fn no_report_panics_or_exceeds_the_limit(text in "[0-9a-z.,;\\n -]{0,60}|.{0,60}") {
            for format in FileFormat::ALL {
                let is_energy = format == FileFormat::MicroJoules;
                let is_sound = match parse_report(&text, format) {
                    Ok(Reading::PowerUw(microwatts)) => !is_energy && microwatts <= 100_000_000_000,
                    Ok(Reading::CounterUj(_)) => is_energy,
                    Ok(_) => false,
                    Err(_) => true,
                };
                proptest::prop_assert!(is_sound);
            }
        }
    }
}
