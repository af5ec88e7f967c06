//! Counts requests by the counters that an application exposes for Prometheus.
//!
//! Whoever asks the application again and again hands each answer to [`Counting::take`]. It gives rows of the file that
//! [`super::read`] divides by, a row for each route, of the time since the answer before. If one does not come, the next
//! rows are of a longer time, and no request is lost.

mod counter;
mod exposition;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use thiserror::Error;

pub use self::counter::RequestCounter;
use self::exposition::{NotUnderstood, Sample};
use crate::{
    model::units::UnixMicros,
    report::profile::{FilterError, Names},
    text::{count, csv},
};

/// When a process began, in seconds since 1970: most libraries of Prometheus expose it.
const BEGAN: &str = "process_start_time_seconds";
/// By so much the same beginning may seem to differ, s.
const SAME_BEGINNING: f64 = 1.0;
/// More are one: an application that counts by raw path has ever more of them.
const MOST_ROUTES: usize = 1000;
const OTHER_ROUTES: &str = "[other routes]";
/// Counters that answers had before and have no more are forgotten if there would be more than this.
const MOST_SERIES: usize = 200_000;

/// Why an answer does not count.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScrapeError {
    #[error("line {line} of the answer cannot be understood: {cause}")]
    Line { line: usize, cause: &'static str },
    #[error("the clock of this host was set back: counting goes on when it is where it was")]
    Clock,
}

impl From<NotUnderstood> for ScrapeError {
    fn from(NotUnderstood { line, cause }: NotUnderstood) -> Self {
        Self::Line { line, cause }
    }
}

/// What an answer brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Lines of the file. The first answer has none.
    pub rows: String,
    pub requests: u64,
    /// What people should know.
    pub notes: Vec<String>,
}

/// Counts of an application, answer by answer.
#[derive(Clone, Debug)]
pub struct Counting {
    counters: Vec<RequestCounter>,
    /// By route: a pattern of its handlers.
    handlers: BTreeMap<String, String>,
    /// By kind: place of the counter that is taken, as long as it goes on.
    chosen: BTreeMap<usize, usize>,
    before: Option<Before>,
    routes: BTreeSet<String>,
}

/// The answer before.
#[derive(Clone, Debug)]
struct Before {
    at: UnixMicros,
    /// When the process began.
    began: Option<f64>,
    /// Value of each counter, by its name and labels.
    values: BTreeMap<String, f64>,
}

/// What an answer says of requests.
#[derive(Debug, Default)]
struct Answer {
    began: Option<f64>,
    /// By counter's name and labels: its route and value.
    values: BTreeMap<String, (String, f64)>,
}

impl Counting {
    /// The first line of a file.
    pub const HEADING: &'static str = "route,count,handler,begin,end\r\n";

    /// `handlers`: pattern of a route's handlers, by route.
    ///
    /// # Errors
    /// If one is not a pattern.
    pub fn new(counters: Vec<RequestCounter>, handlers: BTreeMap<String, String>) -> Result<Self, FilterError> {
        handlers.values().try_for_each(|pattern| Names::parse(std::slice::from_ref(pattern)).map(drop))?;
        Ok(Self { counters, handlers, chosen: BTreeMap::new(), before: None, routes: BTreeSet::new() })
    }

    /// Takes what the application said at a time.
    ///
    /// # Errors
    /// If it cannot be understood; then nothing of it counts.
    pub fn take(&mut self, text: &str, at: UnixMicros) -> Result<Taken, ScrapeError> {
        if self.before.as_ref().is_some_and(|before| at <= before.at) {
            return Err(ScrapeError::Clock);
        }
        let mut notes = Vec::new();
        let answer = self.understand(text, &mut notes)?;
        let began = answer.began;
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        let mut resets: u64 = 0;
        let mut values = self.values_before(&answer, &mut notes);
        let is_first = self.before.is_none();
        for (series, (route, value)) in answer.values {
            let more = match values.insert(series, value) {
                // It was counting before anybody looked.
                None if is_first => 0.0,
                None => value,
                Some(before) if value < before => {
                    resets += 1;
                    value
                }
                Some(before) => value - before,
            };
            *counts.entry(self.known(route, &mut notes)).or_default() += more;
        }
        if resets > 0 {
            let counters = count(resets, "counter");
            notes.push(format!("{counters} began again at 0: requests just before are not counted"));
        }
        match self.before.replace(Before { at, began, values }) {
            Some(before) => Ok(self.rows(&counts, [before.at, at], notes)),
            None => Ok(Taken { notes, ..Taken::default() }),
        }
    }

    /// Handlers of routes of which there was no request.
    pub fn routes_not_seen(&self) -> impl Iterator<Item = &str> {
        self.handlers.keys().filter(|route| !self.routes.contains(*route)).map(String::as_str)
    }

    /// Whether there was no answer yet.
    pub const fn is_at_beginning(&self) -> bool {
        self.before.is_none()
    }

    /// Routes that were seen.
    pub fn routes(&self) -> usize {
        self.routes.len()
    }

    /// The names of all counters that are looked for.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.counters.iter().map(|counter| counter.name.as_str())
    }

    fn understand(&mut self, text: &str, notes: &mut Vec<String>) -> Result<Answer, ScrapeError> {
        let place = |name: &str| self.counters.iter().position(|counter| counter.name == name);
        let mut answer = Answer::default();
        let mut found: Vec<(usize, Sample<'_>)> = Vec::new();
        for sample in exposition::samples(text, |name| name == BEGAN || place(name).is_some()) {
            let sample = sample?;
            // A counter that is not a number, or infinite, is not known.
            if !(0.0..f64::INFINITY).contains(&sample.value) {
                continue;
            }
            match place(sample.name) {
                Some(counter) => found.push((counter, sample)),
                None => answer.began = Some(sample.value),
            }
        }
        let there: BTreeSet<usize> = found.iter().map(|(counter, _)| *counter).collect();
        for counter in there {
            let RequestCounter { kind, name, .. } = &self.counters[counter];
            self.chosen.entry(*kind).or_insert_with(|| {
                notes.push(format!("requests are counted by {name}"));
                counter
            });
        }
        for (counter, sample) in found {
            let of = &self.counters[counter];
            if self.chosen.get(&of.kind) == Some(&counter) {
                let mut labels: Vec<_> =
                    sample.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
                labels.sort_unstable();
                let series = format!("{}{{{}}}", of.name, labels.join(","));
                answer.values.insert(series, (of.route(&sample.labels), sample.value));
            }
        }
        Ok(answer)
    }

    /// What counters had before, if they went on since.
    fn values_before(&self, answer: &Answer, notes: &mut Vec<String>) -> BTreeMap<String, f64> {
        let Some(before) = &self.before else { return BTreeMap::new() };
        let began = before.began.zip(answer.began);
        if began.is_some_and(|(before, now)| now - before > SAME_BEGINNING) {
            notes.push("the application was started again: requests just before are not counted".to_owned());
            return BTreeMap::new();
        }
        let mut values = before.values.clone();
        if values.len() + answer.values.len() > MOST_SERIES {
            values.retain(|series, _| answer.values.contains_key(series));
        }
        values
    }

    /// The route, or the one that stands for those that are too many.
    fn known(&mut self, route: String, notes: &mut Vec<String>) -> String {
        if self.routes.contains(&route) {
            return route;
        }
        let route = if self.routes.len() < MOST_ROUTES { route } else { OTHER_ROUTES.to_owned() };
        if self.routes.insert(route.clone()) && route == OTHER_ROUTES {
            notes.push(format!("there are more than {MOST_ROUTES} routes: all others are counted as {OTHER_ROUTES}"));
        }
        route
    }

    /// Also of routes without a request: what their handlers did meanwhile was for requests before or after.
    fn rows(&self, counts: &BTreeMap<String, f64>, span: [UnixMicros; 2], notes: Vec<String>) -> Taken {
        let mut taken = Taken { notes, ..Taken::default() };
        let time = |at: UnixMicros| {
            Timestamp::from_microsecond(at.0).map_or_else(|_| String::new(), |stamp| stamp.to_string())
        };
        let [begin, end] = span.map(time);
        for route in &self.routes {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count that is not negative")]
            let count = counts.get(route).copied().unwrap_or_default().round() as u64;
            taken.requests = taken.requests.saturating_add(count);
            let handler = self.handlers.get(route).cloned().unwrap_or_default();
            let cells = [csv::name(route), count.to_string(), handler, begin.clone(), end.clone()];
            taken.rows.push_str(&csv::line(cells));
        }
        taken
    }
}
