//! Lists what programs said over time: phases, and what happened.

use serde::Serialize;

use super::strings::Strings;
use crate::{
    dataset::{error::Result, read::marks::PhaseWindows},
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
                if let Some((from, to)) = within(phase, (start, end)) {
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

/// The part of a phase that is in a span. A phase that began and ended in one window has no time of its own: it is shown
/// where it was, as long as nothing.
fn within(phase: &PhaseWindows, (start, end): (UnixMicros, UnixMicros)) -> Option<(UnixMicros, UnixMicros)> {
    let (from, to) = (phase.begun.max(start), phase.ended.unwrap_or(end).min(end));
    let is_moment = phase.ended == Some(phase.begun) && (start..=end).contains(&phase.begun);
    (from < to || is_moment).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_is_shown_where_it_is_in_the_span_even_if_it_took_no_window() {
        let span = (UnixMicros(100), UnixMicros(200));
        for (begun, ended, expected) in [
            (120, Some(150), Some((120, 150))),
            (50, Some(150), Some((100, 150))),
            (150, None, Some((150, 200))),
            (150, Some(150), Some((150, 150))),
            (200, Some(200), Some((200, 200))),
            (50, Some(100), None),
            (50, Some(50), None),
            (200, Some(250), None),
        ] {
            let phase = PhaseWindows {
                name: "load".into(),
                path: "load".into(),
                after: UnixMicros(begun - 1),
                last: None,
                begun: UnixMicros(begun),
                ended: ended.map(UnixMicros),
            };
            let expected = expected.map(|(from, to)| (UnixMicros(from), UnixMicros(to)));
            assert_eq!(within(&phase, span), expected, "{begun} to {ended:?}");
        }
    }
}
