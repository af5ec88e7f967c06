//! Reads a file in which someone else reports energy or power. So a virtual machine learns from its host what
//! it draws.
//!
//! - `microjoules`: one number, a running total in µJ, as `--guest-power` writes it. Sums are exact. Where the lines before
//!   it say at which times the total was what ([`totals`]), a window gets the energy that is from it.
//! - `watts`: one number, replaced with each report, as JoularJX reads it.
//! - `powerjoular`: CSV lines `timestamp, utilisation, watts`, as PowerJoular
//!   writes them and JoularJX reads them; the last line counts.
//!
//! The file belongs to another machine, so nothing in it is trusted. At most its last 4 KiB are
//! read, and a power must be a number between 0 and 100 kW. A file that is no longer written is a
//! failed read, not a constant power.

mod totals;

use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use joular_data::model::{
    domain::{Domain, FaultCause, Label, Meter, Reading},
    units::MonotonicNs,
};
use thiserror::Error;

use self::totals::Arrived;
pub use self::totals::{MOST_BYTES, Totals};
use super::{
    Adds, EnergyChoice, EnergyOptions, EnergySource, Opened, SourceKind, Unusable, UnusableKind,
    watts::{MOST_WATTS, WattsError, parse_microwatts},
};
use crate::{clock, privileges::lent::as_the_user};

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
const TAIL_BYTES: u64 = MOST_BYTES;

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
    #[error(
        "reading {path}: it does not say what was used until {seconds} s ago: is whatever writes it still running?"
    )]
    NotYet { path: String, seconds: u64 },
    #[error("reading {path} as {format}: {cause}")]
    Malformed { path: String, format: &'static str, cause: LineError },
}

impl SharedFileError {
    fn cause(&self) -> FaultCause {
        match self {
            Self::Io { cause, .. } => FaultCause::of(cause),
            Self::NotAFile { .. } => FaultCause::Unreadable,
            Self::Stale { .. } | Self::NotYet { .. } => FaultCause::Stale,
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
    arrived: Arrived,
    /// When it was last read.
    read_at: Option<MonotonicNs>,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Report {
    Power { microwatts: u64 },
    Energy(Totals),
}

impl Report {
    const fn reading(&self) -> Reading {
        match self {
            Self::Power { microwatts } => Reading::PowerUw(*microwatts),
            Self::Energy(totals) => Reading::CounterUj(totals.now_uj),
        }
    }
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
        Ok(Self { path: path.to_owned(), format, domains: [domain], arrived: Arrived::default(), read_at: None })
    }

    fn learn(&mut self, totals: Totals) {
        let now = clock::monotonic_now();
        let before_us = self.read_at.replace(now).map(|before| clock::unix_micros_at(before).0);
        self.arrived.learn(totals, clock::unix_micros_at(now).0, before_us);
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
        let report = read_report(&self.path, self.format);
        let reading = match &report {
            Ok(report) => report.reading(),
            Err(failure) => Reading::failed(failure.cause(), failure.to_string()),
        };
        if let Ok(Report::Energy(totals)) = report {
            self.learn(totals);
        }
        vec![reading]
    }

    /// A failed reading is made good, too, by totals that come later.
    fn complete(&mut self, read_at: MonotonicNs, readings: &mut [Reading]) -> bool {
        let [reading] = readings else { return true };
        if !self.arrived.is_timed() {
            if let Reading::CounterUj(total_uj) = reading {
                *total_uj = self.arrived.not_less(*total_uj);
            }
            return true;
        }
        if let Some(total_uj) = self.arrived.total_at(clock::unix_micros_at(read_at).0) {
            *reading = Reading::CounterUj(total_uj);
            return true;
        }
        let age = Duration::from_nanos(clock::monotonic_now().since(read_at));
        let is_over = age > STALE_AFTER;
        if is_over && !matches!(reading, Reading::Failed(_)) {
            let failure = SharedFileError::NotYet { path: self.path.display().to_string(), seconds: age.as_secs() };
            *reading = Reading::failed(failure.cause(), failure.to_string());
        }
        is_over
    }

    fn boundary_near(&self, wanted: MonotonicNs, within_ns: u64) -> MonotonicNs {
        let end_us = self.arrived.end_near(clock::unix_micros_at(wanted).0);
        let ahead_us = end_us.map_or(0, |end_us| end_us.saturating_sub(clock::unix_micros_at(wanted).0));
        let ahead_ns = ahead_us.saturating_mul(1000);
        if ahead_ns.unsigned_abs() > within_ns {
            return wanted;
        }
        MonotonicNs(wanted.0.saturating_add_signed(ahead_ns))
    }
}

/// What was reported last.
fn read_report(path: &Path, format: FileFormat) -> Result<Report, SharedFileError> {
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

/// What the last line of `text` says, and of a total the lines before it.
fn parse_report(text: &str, format: FileFormat) -> Result<Report, LineError> {
    let line = whole_lines(text).next_back().ok_or(LineError::Empty)?;
    // Where fields are separated by semicolons, commas are decimal.
    let has_semicolons = line.contains(';');
    let microwatts = match format {
        FileFormat::MicroJoules => return Ok(Report::Energy(text.parse()?)),
        FileFormat::Watts => parse_microwatts(&line.trim_end_matches([';', ',']).replacen(',', ".", 1))?,
        FileFormat::PowerJoular => {
            let mut fields = line.split(if has_semicolons { ';' } else { ',' });
            let field = fields.nth(2).ok_or_else(|| LineError::TooFewFields(line.split([';', ',']).count()))?;
            parse_microwatts(&if has_semicolons { field.replacen(',', ".", 1) } else { field.to_owned() })?
        }
    };
    Ok(Report::Power { microwatts })
}

/// The lines that are whole. A line without an end may still be being written, so it counts only if there is no other.
fn whole_lines(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let lines = |text| str::lines(text).map(str::trim).filter(|line| !line.is_empty());
    let whole = text.rfind('\n').and_then(|end| text.get(..end)).filter(|whole| lines(whole).next().is_some());
    lines(whole.unwrap_or(text))
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
