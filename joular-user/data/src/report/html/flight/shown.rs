//! Makes the figures of lanes as the page's script reads them.

use serde::Serialize;

use super::{
    super::{clock::Clock, strings::Strings},
    Flight, Jvm, MOST_LANES, OF_THE_JDK, SHOWN,
    lanes::{Lane, Side},
    windows::Windows,
};
use crate::report::profile::{Catalog, Process};

/// How far the begin of a JVM by its own account may be from that of its process.
const START_US: u64 = 60_000_000;

/// The lanes of a file.
#[derive(Debug, Serialize)]
pub(in crate::report::html) struct FlightFile {
    name: usize,
    /// The JVM that it is of, as the data set or the file names it; -1: the file does not say.
    jvm: i64,
    lanes: Vec<ShownLane>,
    /// Types of events without a lane: there are too many.
    left_out: usize,
}

/// Columns have an item for each event that is drawn, in the order of time.
#[derive(Debug, Serialize)]
struct ShownLane {
    name: usize,
    count: u64,
    total_ns: u64,
    longest_ns: u64,
    has_durations: bool,
    at_us: Vec<i64>,
    length_ns: Vec<u64>,
    text: Vec<i64>,
    /// Events that are not drawn: bucket, number, length together in ns.
    joined: Vec<(usize, u64, u64)>,
    /// Energy in µJ, time in ns, number of windows.
    with: Option<(u64, u64, u64)>,
    without: Option<(u64, u64, u64)>,
    /// Windows of which events had a part.
    partly: u64,
    /// Why there are no watts; -1: there are.
    why_not: i64,
}

impl Flight {
    /// Says which JVM the file is of, and returns the figures of its lanes.
    pub(in crate::report::html) fn shown(
        &self,
        catalog: &Catalog,
        clock: Clock,
        windows: &Windows,
        strings: &mut Strings,
    ) -> FlightFile {
        let jvm = self.jvm.map(|jvm| match jvm.process(catalog) {
            Some(process) => format!("{} (pid {})", process.title().raw(), process.pid),
            None => format!("a JVM with pid {}, which the data set does not have", jvm.pid),
        });
        let mut lanes: Vec<(&String, &Lane)> = self.lanes.iter().collect();
        lanes.sort_by_key(|(name, lane)| (rank(name), std::cmp::Reverse(lane.total_ns)));
        let left_out = lanes.len().saturating_sub(MOST_LANES) + self.left_out;
        lanes.truncate(MOST_LANES);
        FlightFile {
            name: strings.place(&self.name),
            jvm: strings.maybe(jvm.as_deref()),
            lanes: lanes.into_iter().map(|(name, lane)| self.lane(name, lane, clock, windows, strings)).collect(),
            left_out,
        }
    }

    fn lane(&self, name: &str, lane: &Lane, clock: Clock, windows: &Windows, strings: &mut Strings) -> ShownLane {
        let drawn = lane.drawn();
        let at = |from_ns: i64| from_ns.div_euclid(1000).saturating_sub(clock.start_us);
        let joined = lane.joined.iter().enumerate().filter(|(_, (count, _))| *count > 0);
        let sides = lane.sides(windows, &self.recorded);
        let why_not = sides.why_not(lane, windows);
        let side =
            |side: Side| why_not.is_none().then_some((side.energy.0, side.time_us.saturating_mul(1000), side.windows));
        ShownLane {
            name: strings.place(name),
            count: lane.count,
            total_ns: lane.total_ns,
            longest_ns: lane.longest_ns,
            has_durations: lane.has_durations,
            at_us: drawn.iter().map(|event| at(event.from_ns.0)).collect(),
            length_ns: drawn.iter().map(|event| event.length_ns).collect(),
            text: drawn.iter().map(|event| strings.maybe(Some(&*event.text).filter(|text| !text.is_empty()))).collect(),
            joined: joined.map(|(bucket, (count, sum))| (bucket, *count, *sum)).collect(),
            with: side(sides.with),
            without: side(sides.without),
            partly: sides.partly,
            why_not: strings.maybe(why_not),
        }
    }

    /// What the user should know of the file.
    pub(in crate::report::html) fn notices(&self, catalog: &Catalog) -> Vec<String> {
        let mut notices = self.notices.clone();
        if let Some(jvm) = self.jvm.filter(|jvm| jvm.process(catalog).is_none()) {
            notices.push(format!(
                "{}: what is shown of the data set has no process {} that began when the file's JVM did. Is the file of another \
                 host? A JVM in a container has another pid there, and that is no mistake",
                self.name, jvm.pid
            ));
        }
        notices
    }
}

impl Jvm {
    fn process(self, catalog: &Catalog) -> Option<&Process> {
        let is_same =
            |process: &&Process| process.pid.0 == self.pid && process.start.0.abs_diff(self.start.0) <= START_US;
        catalog.processes.iter().find(is_same)
    }
}

/// Applications' own events come first, then the JDK's in the order of [`SHOWN`].
fn rank(name: &str) -> usize {
    if !name.starts_with(OF_THE_JDK) {
        return 0;
    }
    SHOWN.iter().position(|shown| *shown == name).map_or(SHOWN.len() + 1, |place| place + 1)
}
