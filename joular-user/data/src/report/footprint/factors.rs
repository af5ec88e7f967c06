//! Reads a file of emission factors: CSV with a header, and in every line a time, grams per kilowatt-hour
//! and, if wanted, a zone, a source and a year. docs/carbon.md describes the format for users.
//!
//! A line holds from its time until the next one of its zone. The last line holds for the usual time
//! between two lines (their median). Nothing is known of times outside of that.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use csv::{ReaderBuilder, StringRecord, Trim};
use jiff::Timestamp;
use thiserror::Error;

use crate::{
    model::units::UnixMicros,
    text::{Keep, cut, escape},
};

/// More than any power plant emits for a kilowatt-hour.
pub const MOST_G_PER_KWH: f64 = 10_000.0;

/// Names of the column with factors, in lower case.
const FACTOR_NAMES: [&str; 4] = ["g/kwh", "gco2e/kwh", "gco2eq/kwh", "gco2/kwh"];

/// A line every five minutes for twenty years.
const MAX_BYTES: u64 = 64 << 20;

/// Of a zone or a source.
const MAX_TEXT_BYTES: usize = 256;

/// Zones that an error lists.
const SHOWN_ZONES: usize = 20;

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum FactorsError {
    #[error("opening {path}: {cause}: write a figure such as 250g/kWh, or name a CSV file")]
    Open { path: PathBuf, cause: io::Error },
    #[error("reading emission factors: {0}")]
    Read(io::Error),
    #[error("reading emission factors: {0}: is this a CSV file?")]
    Csv(#[from] csv::Error),
    #[error("reading emission factors: more than {} MiB: cut the file to the zone and time of the runs", MAX_BYTES >> 20)]
    TooLarge,
    #[error("reading emission factors: the first line names no column {wanted}: it has {found}")]
    NoColumn { wanted: &'static str, found: String },
    #[error("reading emission factors: line {line}: {problem}")]
    Line { line: u64, problem: String },
    #[error("reading emission factors: the file has several zones: choose one with --zone: {0}")]
    Zones(String),
    #[error("reading emission factors: no line is of zone {zone}; the file has {found}: choose one with --zone")]
    UnknownZone { zone: String, found: String },
    #[error(
        "reading emission factors: {0} lines are of this zone, and at least 2 are needed to know how long the last one \
         holds: for a single figure use e.g. --carbon 250g/kWh"
    )]
    TooFew(usize),
}

/// Who says what a kilowatt-hour emits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    pub source: Option<String>,
    pub year: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Factor {
    from: UnixMicros,
    g_per_kwh: f64,
    /// Place in [`Factors::origins`].
    origin: usize,
}

/// The factors of a zone, by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Factors {
    pub zone: Option<String>,
    factors: Vec<Factor>,
    origins: Vec<Origin>,
    /// Until when the last one holds.
    until: UnixMicros,
}

/// What factors say of a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spanned {
    pub mean_g_per_kwh: f64,
    pub min_g_per_kwh: f64,
    pub max_g_per_kwh: f64,
}

impl Factors {
    /// Reads the factors of a zone from the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read or is no such file; a line that is wrong is named.
    pub fn open(path: &Path, zone: Option<&str>) -> Result<Self, FactorsError> {
        let file = File::open(path).map_err(|cause| FactorsError::Open { path: path.into(), cause })?;
        Self::read(file, zone)
    }

    /// Reads them from text.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn read(input: impl Read, zone: Option<&str>) -> Result<Self, FactorsError> {
        let mut bytes = Vec::new();
        input.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(FactorsError::Read)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(FactorsError::TooLarge);
        }
        let mut reader = ReaderBuilder::new();
        let mut reader = reader.trim(Trim::All).comment(Some(b'#')).has_headers(false).from_reader(&bytes[..]);
        let mut records = reader.records();
        let header = records.next().transpose()?.unwrap_or_default();
        let columns = Columns::of(&header)?;
        let mut found = Self::default();
        let mut zones = BTreeSet::new();
        for record in records {
            let record = record?;
            let wrong = |problem: String| FactorsError::Line { line: line_of(&record, &bytes), problem };
            let of = columns.text(&record, columns.zone, "zone").map_err(wrong)?;
            if !zones.contains(of) {
                zones.insert(of.to_owned());
            }
            // Of several zones one must be chosen.
            if zone.map_or(zones.len() == 1, |zone| zone == of) {
                found.take(&columns, &record).map_err(wrong)?;
            }
        }
        found.zone = match zone {
            Some(zone) if !zones.contains(zone) => {
                return Err(FactorsError::UnknownZone { zone: quoted(zone), found: listed(&zones) });
            }
            None if zones.len() > 1 => return Err(FactorsError::Zones(listed(&zones))),
            _ => zone.map(ToOwned::to_owned).or_else(|| zones.pop_first()).filter(|zone| !zone.is_empty()),
        };
        found.complete()
    }

    fn take(&mut self, columns: &Columns, record: &StringRecord) -> Result<(), String> {
        let time = record.get(columns.time).unwrap_or_default();
        let from: Timestamp = time.parse().map_err(|_| {
            format!("{} is not a time: write RFC 3339 with a zone, such as 2026-03-01T12:00:00Z", quoted(time))
        })?;
        let from = UnixMicros(from.as_microsecond());
        let text = record.get(columns.factor).unwrap_or_default();
        let factor = text.parse::<f64>().ok().filter(|factor| (0.0..=MOST_G_PER_KWH).contains(factor));
        let g_per_kwh = factor.ok_or_else(|| {
            format!("{} is not a factor: write g/kWh as a number from 0 to {MOST_G_PER_KWH}", quoted(text))
        })?;
        let source = Some(columns.text(record, columns.source, "source")?).filter(|source| !source.is_empty());
        let year = columns.year.and_then(|year| record.get(year)).filter(|year| !year.is_empty());
        let year = year.map(|text| {
            let year = text.parse::<u16>().ok().filter(|year| (1900..=2999).contains(year));
            year.ok_or_else(|| format!("{} is not a year: write e.g. 2025", quoted(text)))
        });
        let origin = Origin { source: source.map(ToOwned::to_owned), year: year.transpose()? };
        if self.factors.last().is_some_and(|last| last.from >= from) {
            return Err(format!(
                "its time {} is not after that of its zone's line before: sort the file",
                quoted(time)
            ));
        }
        // Neighbours have the same origin.
        if self.origins.last() != Some(&origin) {
            self.origins.push(origin);
        }
        self.factors.push(Factor { from, g_per_kwh, origin: self.origins.len() - 1 });
        Ok(())
    }

    /// Says until when the last factor holds.
    fn complete(mut self) -> Result<Self, FactorsError> {
        let mut spacings: Vec<i64> =
            self.factors.windows(2).map(|pair| pair[1].from.0.saturating_sub(pair[0].from.0)).collect();
        let middle = spacings.len() / 2;
        match self.factors.last() {
            Some(last) if !spacings.is_empty() => {
                let spacing = *spacings.select_nth_unstable(middle).1;
                self.until = UnixMicros(last.from.0.saturating_add(spacing));
                Ok(self)
            }
            _ => Err(FactorsError::TooFew(self.factors.len())),
        }
    }

    /// From when and until when factors are known.
    pub fn range(&self) -> (UnixMicros, UnixMicros) {
        (self.factors.first().map_or(self.until, |first| first.from), self.until)
    }

    /// What the factors of a span say: their mean over its time, the least and the greatest; `None` if
    /// the span is not within [`Self::range`]. Adds who says so to `origins`.
    pub fn over(&self, (start, end): (UnixMicros, UnixMicros), origins: &mut BTreeSet<Origin>) -> Option<Spanned> {
        let first = self.factors.partition_point(|factor| factor.from <= start).checked_sub(1)?;
        if end > self.until || start >= self.until {
            return None;
        }
        let held = self.factors[first..].iter().take_while(|factor| factor.from <= start || factor.from < end);
        let held: &[Factor] = &self.factors[first..first + held.count()];
        let [min_g_per_kwh, max_g_per_kwh] = [f64::min as fn(f64, f64) -> f64, f64::max]
            .map(|choose| held.iter().map(|factor| factor.g_per_kwh).reduce(choose).unwrap_or_default());
        let mut sum = 0.0;
        for (at, factor) in held.iter().enumerate() {
            let until = held.get(at + 1).map_or(end, |next| next.from);
            sum += factor.g_per_kwh * microseconds(factor.from.max(start), until);
            if let Some(origin) = self.origins.get(factor.origin).filter(|origin| !origins.contains(origin)) {
                origins.insert(origin.clone());
            }
        }
        // One factor stays the figure that it is.
        let is_one = min_g_per_kwh >= max_g_per_kwh;
        let mean_g_per_kwh = if is_one { min_g_per_kwh } else { sum / microseconds(start, end) };
        Some(Spanned { mean_g_per_kwh, min_g_per_kwh, max_g_per_kwh })
    }
}

/// The line that a record begins at. Its position is where the record before it ends, which lines without
/// one may follow.
fn line_of(record: &StringRecord, bytes: &[u8]) -> u64 {
    let Some(position) = record.position() else { return 0 };
    let rest = usize::try_from(position.byte()).ok().and_then(|byte| bytes.get(byte..)).unwrap_or_default();
    let without = rest.split(|byte| *byte == b'\n').take_while(|line| {
        let line = line.trim_ascii();
        line.is_empty() || line.starts_with(b"#")
    });
    position.line() + without.count() as u64
}

#[allow(clippy::cast_precision_loss, reason = "a mean of figures with a few digits")]
fn microseconds(from: UnixMicros, until: UnixMicros) -> f64 {
    until.0.saturating_sub(from.0) as f64
}

/// Where a file has what.
#[derive(Clone, Debug)]
struct Columns {
    time: usize,
    factor: usize,
    zone: Option<usize>,
    source: Option<usize>,
    year: Option<usize>,
}

impl Columns {
    fn of(header: &StringRecord) -> Result<Self, FactorsError> {
        let names: Vec<String> =
            header.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_lowercase()).collect();
        let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        let missing = |wanted| FactorsError::NoColumn {
            wanted,
            found: if names.is_empty() {
                "nothing".to_owned()
            } else {
                shortened(names.iter().map(|name| quoted(name)))
            },
        };
        Ok(Self {
            time: find(&["time"]).ok_or_else(|| missing("time"))?,
            factor: find(&FACTOR_NAMES).ok_or_else(|| missing("g/kWh"))?,
            zone: find(&["zone"]),
            source: find(&["source"]),
            year: find(&["year"]),
        })
    }

    /// A text that need not be there.
    fn text<'a>(&self, record: &'a StringRecord, place: Option<usize>, name: &str) -> Result<&'a str, String> {
        let text = place.and_then(|place| record.get(place)).unwrap_or_default();
        if text.len() > MAX_TEXT_BYTES {
            return Err(format!("its {name} has {} bytes, at most {MAX_TEXT_BYTES} are taken", text.len()));
        }
        Ok(text)
    }
}

/// A text of the file, as far as a message has room for it.
fn quoted(text: &str) -> String {
    format!("'{}'", cut(&escape(text), 40, Keep::Start))
}

fn listed(zones: &BTreeSet<String>) -> String {
    if zones.is_empty() { "no lines".to_owned() } else { shortened(zones.iter().map(|zone| quoted(zone))) }
}

fn shortened(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(SHOWN_ZONES);
    let shown = names.take(SHOWN_ZONES).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
#[path = "factors_tests.rs"]
mod tests;
