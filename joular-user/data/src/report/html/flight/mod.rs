//! Lays events of recordings of Flight Recorder beside power: a lane for each type of events of a file, and what the selection's
//! power was while one of them was under way.
//!
//! Both clocks are the wall clock of a host. Nothing here corrects them.

mod covered;
mod lanes;
mod shown;
#[cfg(test)]
mod tests;
mod windows;

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use self::{
    covered::Covered,
    lanes::{Lane, Part},
};
pub(super) use self::{shown::FlightFile, windows::Windows};
use super::clock::Clock;
use crate::{
    model::units::UnixMicros,
    report::{
        flight::{Chunk, Event, FlightError, Recording},
        profile::{Names, Overview},
    },
    text,
};

/// Types of the JDK's own events with a lane unless some are asked for, in the order in which they are shown.
const SHOWN: [&str; 8] = [
    "jdk.GarbageCollection",
    "jdk.GCPhasePause",
    "jdk.SafepointBegin",
    "jdk.ExecuteVMOperation",
    "jdk.JavaMonitorEnter",
    "jdk.JavaMonitorWait",
    "jdk.ThreadPark",
    "jdk.Compilation",
];

/// How names of the JDK's own types begin.
const OF_THE_JDK: &str = "jdk.";

/// Says which JVM a recording is of.
const JVM: &str = "jdk.JVMInformation";

/// Lanes of a file that are shown, and kept while it is read.
const MOST_LANES: usize = 16;
const MOST_KEPT: usize = 64;

/// Types of events that a message names.
const NAMED: usize = 12;

/// Types of events whose number is known. The JDK has fewer than 200.
const MOST_COUNTED: usize = 4_096;

/// Between two chunks that follow each other.
const GAP_US: i64 = 100_000;

/// Recordings that a page shows beside power, and which of their events.
#[derive(Clone, Debug, Default)]
pub struct Flights {
    pub files: Vec<PathBuf>,
    /// Names of types of events, or patterns. All are allowed: those of applications are shown, and some of the JDK's own.
    pub events: Names,
}

/// A JVM, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jvm {
    /// In its own PID namespace.
    pid: u32,
    start: UnixMicros,
}

/// What one file has to show.
pub(super) struct Flight {
    path: PathBuf,
    /// The file's own name, for messages and headings.
    name: String,
    jvm: Option<Jvm>,
    lanes: BTreeMap<String, Lane>,
    /// Types of events that have no lane, because there are too many.
    left_out: usize,
    /// The windows in which the JVM recorded.
    recorded: Covered,
    /// When it began and ended.
    span: Option<(UnixMicros, UnixMicros)>,
    /// Events that are wanted, and those of them that are not in the time of the page.
    wanted: u64,
    outside: u64,
    notices: Vec<String>,
}

impl Flights {
    /// Reads the files.
    ///
    /// # Errors
    /// If one cannot be read, or has nothing to show.
    pub(super) fn read(
        &self,
        overview: &Overview,
        clock: Clock,
        windows: &Windows,
    ) -> Result<Vec<Flight>, FlightError> {
        let Some(span) = overview.span else { return Ok(Vec::new()) };
        self.files.iter().map(|path| self.read_file(path, span, clock, windows)).collect()
    }

    fn read_file(
        &self,
        path: &std::path::Path,
        span: (UnixMicros, UnixMicros),
        clock: Clock,
        windows: &Windows,
    ) -> Result<Flight, FlightError> {
        let mut recording = Recording::open(path)?;
        let mut flight = Flight::new(path, windows);
        let mut counts: HashMap<String, u64> = HashMap::new();
        loop {
            match recording.next_chunk() {
                Ok(Some(chunk)) => {
                    for (name, count) in recording.counts(&chunk)? {
                        if let Some(sum) = counts.get_mut(name) {
                            *sum += count;
                        } else if counts.len() < MOST_COUNTED {
                            counts.insert(name.to_owned(), count);
                        }
                    }
                    flight.take_chunk(&chunk, windows);
                    let wants = |name: &str| name == JVM || self.wants(name);
                    recording.events(&chunk, wants, |event| flight.take(self, event, span, clock, windows))?;
                }
                Ok(None) => break,
                Err(error) if error.is_of_the_end() && flight.span.is_some() => {
                    flight.notices.push(format!("{error}. What comes before is shown"));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if flight.lanes.len() == MOST_KEPT {
            flight.left_out = counts.keys().filter(|name| self.wants(name)).count().saturating_sub(MOST_KEPT);
        }
        flight.expect_any(span, counts)?;
        Ok(flight)
    }

    fn wants(&self, name: &str) -> bool {
        if self.events.allow_all() {
            SHOWN.contains(&name) || !name.starts_with(OF_THE_JDK)
        } else {
            self.events.allow(name)
        }
    }
}

impl Flight {
    fn new(path: &std::path::Path, windows: &Windows) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Self {
            path: path.into(),
            name: text::escape(&name),
            jvm: None,
            lanes: BTreeMap::new(),
            left_out: 0,
            recorded: Covered::of(windows),
            span: None,
            wanted: 0,
            outside: 0,
            notices: Vec::new(),
        }
    }

    fn take_chunk(&mut self, chunk: &Chunk, windows: &Windows) {
        let (start, end) = (chunk.header.start(), chunk.header.end());
        // One chunk begins where the one before it ends, but for what that takes.
        let before =
            self.span.map(|(_, end)| end).filter(|end| (0..=GAP_US).contains(&(start.0.saturating_sub(end.0))));
        self.recorded.add(windows, before.unwrap_or(start).0, end.0);
        let (first, last) = self.span.unwrap_or((start, end));
        self.span = Some((first.min(start), last.max(end)));
    }

    fn take(
        &mut self,
        choice: &Flights,
        event: &Event<'_>,
        span: (UnixMicros, UnixMicros),
        clock: Clock,
        windows: &Windows,
    ) {
        if event.name() == JVM {
            self.jvm = self.jvm.or_else(|| Jvm::of(event));
        }
        if !choice.wants(event.name()) {
            return;
        }
        self.wanted += 1;
        let Some(part) = Part::within(event, span) else {
            self.outside += 1;
            return;
        };
        if let Some(lane) = self.lanes.get_mut(event.name()) {
            lane.take(&part, event, clock, windows);
        } else if self.lanes.len() < MOST_KEPT {
            let mut lane = Lane::new(windows, clock);
            lane.take(&part, event, clock, windows);
            self.lanes.insert(event.name().to_owned(), lane);
        }
    }

    /// Refuses a file that has nothing to show, and says why.
    fn expect_any(
        &mut self,
        (start, end): (UnixMicros, UnixMicros),
        counts: HashMap<String, u64>,
    ) -> Result<(), FlightError> {
        if self.wanted == 0 {
            return Err(FlightError::NoneWanted { path: self.path.clone(), found: named(counts) });
        }
        if self.lanes.is_empty() {
            let (from, to) = self.span.unwrap_or_default();
            let [from, to, start, end] = [from, to, start, end].map(text::time);
            let why = format!(
                "the file is of {from} to {to}, what is shown of the data set of {start} to {end}: is it of another host, or of \
                 another time?"
            );
            return Err(FlightError::NoneWithin { path: self.path.clone(), why });
        }
        if self.outside > 0 {
            let outside = text::count(self.outside, "event");
            self.notices.push(format!("{}: outside of the page's time, and left out: {outside}", self.name));
        }
        Ok(())
    }
}

impl Jvm {
    fn of(event: &Event<'_>) -> Option<Self> {
        let pid = u32::try_from(event.integer("pid")?).ok()?;
        let start = UnixMicros(event.integer("jvmStartTime")?.checked_mul(1000)?);
        Some(Self { pid, start })
    }
}

/// The types with most events.
fn named(counts: HashMap<String, u64>) -> String {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let more = counts.len().saturating_sub(NAMED);
    counts.truncate(NAMED);
    let mut names: Vec<String> =
        counts.iter().map(|(name, count)| format!("{} ({count})", text::escape(name))).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    if names.is_empty() { "no events".to_owned() } else { names.join(", ") }
}
