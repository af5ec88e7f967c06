//! Lists what programs said over time: phases, and what happened.

use std::cmp::Reverse;

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
    phases: Vec<SaidPhase>,
    events: Vec<(String, UnixMicros)>,
    left_out: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SaidPhase {
    path: String,
    from: UnixMicros,
    to: UnixMicros,
    /// Phases that began in one window have one beginning, and this tells them apart.
    order: usize,
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
                    let order = said.phases.len();
                    said.phases.push(SaidPhase { path: phase.path.to_string(), from, to, order });
                }
            }
            for event in data.events(run, MOST)? {
                if (start..end).contains(&event.at) {
                    let attributes = event.attributes.map(|text| format!(" {text}")).unwrap_or_default();
                    said.events.push((format!("{}{attributes}", event.name), event.at));
                }
            }
        }
        said.left_out = said.phases.len().saturating_sub(MOST);
        said.phases = longest(said.phases, MOST);
        said.events.sort_by_key(|(_, at)| *at);
        said.events.truncate(MOST);
        Ok(said)
    }

    pub(super) fn timeline(&self, start_us: i64, strings: &mut Strings) -> Timeline {
        let phase = |phase: &SaidPhase| Phase {
            path: strings.place(&phase.path),
            depth: phase.path.matches('/').count(),
            from_us: phase.from.0 - start_us,
            to_us: phase.to.0 - start_us,
        };
        let phases = self.phases.iter().map(phase).collect();
        let event = |(text, at): &(String, UnixMicros)| Event { text: strings.place(text), at_us: at.0 - start_us };
        let events = self.events.iter().map(event).collect();
        Timeline { phases, events, left_out: self.left_out }
    }
}

/// The phases that took longest, in the order in which they began.
fn longest(mut phases: Vec<SaidPhase>, most: usize) -> Vec<SaidPhase> {
    phases.sort_by_key(|phase| (Reverse(phase.to.0 - phase.from.0), phase.from, phase.order));
    phases.truncate(most);
    phases.sort_by_key(|phase| (phase.from, phase.order));
    phases
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
    fn phases_that_began_in_one_window_keep_their_order() {
        let phase = |(order, (path, from, to)): (usize, (&str, i64, i64))| SaidPhase {
            path: path.to_owned(),
            from: UnixMicros(from),
            to: UnixMicros(to),
            order,
        };
        let said = [("load", 5, 5), ("load/parse", 5, 5), ("load", 5, 9), ("store", 7, 8), ("load/parse", 5, 8)];
        let said: Vec<_> = said.into_iter().enumerate().map(phase).collect();
        let orders = |most| longest(said.clone(), most).into_iter().map(|phase| phase.order).collect::<Vec<_>>();
        assert_eq!(orders(10), [0, 1, 2, 4, 3]);
        assert_eq!(orders(3), [2, 4, 3]);
    }

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
