//! Answers `GET /pyroscope/render` and `/pyroscope/render-diff`: flame graphs as JSON in the form of Pyroscope's first
//! version, which Grafana's app compares profiles by.

use std::{collections::HashMap, path::Path};

use form_urlencoded::parse;
use joular_data::{model::units::UnixMicros, report::profile::Moment};
use serde_json::{Value, json};

use super::{
    super::{
        answer::Answer,
        question::{Bounds, Question},
        terms::{Reads, Terms},
    },
    flame::{Drawing, Drawn},
    types::ProfileType,
};
use crate::query::{Refusal, moment};

pub const RENDER: &str = "/pyroscope/render";
pub const RENDER_DIFF: &str = "/pyroscope/render-diff";

/// Parameters by name. Those that are not known change nothing, since clients have some of their own.
struct Given(HashMap<String, String>);

impl Given {
    fn of(query: &str) -> Self {
        Self(parse(query.as_bytes()).into_owned().collect())
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// What is drawn of a side: its query is a type of profiles with a selector behind it.
    fn drawing(&self, [query, from, until]: [&str; 3], bounds: &Bounds<'_>) -> Result<Drawing, Refusal> {
        let text = self.text(query);
        if text.is_empty() {
            let (name, example) = (query, ProfileType::Energy.id());
            return Err(Refusal::bad(format!("{name}: it is missing: write {example}{{service_name=\"shop\"}}")));
        }
        let begin = text.find('{').unwrap_or(text.len());
        let (kind, selector) = text.split_at_checked(begin).unwrap_or((text, ""));
        let now = bounds.terms.now;
        let time = (self.time(from, now)?, self.time(until, now)?);
        let nodes = ["max-nodes", "maxNodes"].into_iter().find_map(|name| self.text(name).parse().ok());
        Drawing::new(kind.trim(), selector, time, nodes.unwrap_or(0), bounds)
    }

    /// Unix milliseconds; 0 if it is not given.
    fn time(&self, name: &str, now: UnixMicros) -> Result<i64, Refusal> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(0);
        }
        // So many seconds are long after our time.
        let is_of_ms = text.len() > 11 && text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(ms) = text.parse().ok().filter(|_| is_of_ms) {
            return Ok(ms);
        }
        match moment(name, text, now)? {
            Moment::At(at) => Ok(at.0 / 1000),
            Moment::Clock(_) | Moment::Into(_) => Err(Refusal::bad(format!("{name}: a time needs its date here"))),
        }
    }
}

/// # Errors
/// If a parameter cannot be understood.
pub fn render(query: &str, terms: &Terms) -> Result<Question, Refusal> {
    let bounds = Bounds::new(terms);
    let drawing = Given::of(query).drawing(["query", "from", "until"], &bounds)?;
    // Its times are moments, also those that were relative.
    let asked = format!("{RENDER}#{}", drawing.key());
    let work = move |place: &Path| Answer::json(&shown(&drawing.draw(place)?, drawing.kind, "single"));
    bounds.question(&asked, false, Reads::Parts, Box::new(work))
}

/// # Errors
/// As [`render`].
pub fn render_diff(query: &str, terms: &Terms) -> Result<Question, Refusal> {
    let (given, bounds) = (Given::of(query), Bounds::new(terms));
    let left = given.drawing(["leftQuery", "leftFrom", "leftUntil"], &bounds)?;
    let right = given.drawing(["rightQuery", "rightFrom", "rightUntil"], &bounds)?;
    let asked = format!("{RENDER_DIFF}#{}#{}", left.key(), right.key());
    let work = move |place: &Path| {
        let drawn = left.compare(&right, place)?;
        let mut shown = shown(&drawn, left.kind, "double");
        if let Some(fields) = shown.as_object_mut() {
            let [left, right] = drawn.totals;
            fields.insert("leftTicks".to_owned(), left.into());
            fields.insert("rightTicks".to_owned(), right.into());
        }
        Answer::json(&shown)
    };
    bounds.question(&asked, false, Reads::Parts, Box::new(work))
}

fn shown<const SIDES: usize>(drawn: &Drawn<SIDES>, kind: Option<ProfileType>, format: &str) -> Value {
    let total = drawn.totals.iter().fold(0_i64, |sum, total| sum.saturating_add(*total));
    json!({
        "version": 1,
        "flamebearer": {
            "names": drawn.names,
            "levels": drawn.levels,
            "numTicks": total,
            "maxSelf": drawn.most_own,
        },
        "metadata": {
            "format": format,
            "name": kind.map(ProfileType::id),
            "units": kind.map_or("", ProfileType::unit),
            // A tick is one of the unit.
            "sampleRate": 1,
            "spyName": "",
        },
    })
}
