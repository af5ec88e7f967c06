//! Lists what programs said over time: phases, and what happened.

use serde::Serialize;

use super::strings::Strings;
use crate::{
    dataset::error::Result,
    model::units::UnixMicros,
    report::profile::{DataSet, Overview},
};

/// Phases and events that a page shows. More would be narrower than what can be seen.
const MOST: usize = 600;

/// Times are µs after the page's start.
#[derive(Debug, Serialize)]
pub(super) struct Timeline {
    phases: Vec<Phase>,
    events: Vec<Event>,
    /// Phases that are not shown: the shortest ones.
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct Phase {
    /// With those that it is within.
    path: usize,
    /// How many it is within.
    depth: usize,
    from_us: i64,
    to_us: i64,
}

#[derive(Debug, Serialize)]
struct Event {
    text: usize,
    at_us: i64,
}

/// What was said, before it has places in a page.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Path, depth and times.
    phases: Vec<(String, usize, UnixMicros, UnixMicros)>,
    events: Vec<(String, UnixMicros)>,
    left_out: usize,
}

impl Said {
    /// Within the span of a page.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged.
    pub(super) fn read(data: &DataSet, overview: &Overview) -> Result<Self> {
        let Some((start, end)) = overview.span else { return Ok(Self::default()) };
        let mut said = Self::default();
        for (run, row) in data.catalog.runs.iter().enumerate() {
            for phase in &row.phases {
                let (from, to) = (phase.begun.max(start), phase.ended.unwrap_or(end).min(end));
                if from < to {
                    let path = phase.path.to_string();
                    said.phases.push((path.clone(), path.matches('/').count(), from, to));
                }
            }
            for event in data.events(run, MOST)? {
                if (start..end).contains(&event.at) {
                    let attributes = event.attributes.map(|text| format!(" {text}")).unwrap_or_default();
                    said.events.push((format!("{}{attributes}", event.name), event.at));
                }
            }
        }
        said.phases.sort_by_key(|(path, _, from, to)| (std::cmp::Reverse(to.0 - from.0), *from, path.clone()));
        said.left_out = said.phases.len().saturating_sub(MOST);
        said.phases.truncate(MOST);
        said.phases.sort_by_key(|(path, depth, from, _)| (*from, *depth, path.clone()));
        said.events.sort_by_key(|(_, at)| *at);
        said.events.truncate(MOST);
        Ok(said)
    }

    pub(super) fn timeline(&self, start_us: i64, strings: &mut Strings) -> Timeline {
        let phase = |(path, depth, from, to): &(String, usize, UnixMicros, UnixMicros)| Phase {
            path: strings.place(path),
            depth: *depth,
            from_us: from.0 - start_us,
            to_us: to.0 - start_us,
        };
        let phases = self.phases.iter().map(phase).collect();
        let event = |(text, at): &(String, UnixMicros)| Event { text: strings.place(text), at_us: at.0 - start_us };
        let events = self.events.iter().map(event).collect();
        Timeline { phases, events, left_out: self.left_out }
    }
}
