//! Understands what programs ask about a data set, and reads it for them.
//!
//! A [`Query`] has parameters and says which part of the data set they select. A parameter means what the flag of `report`
//! or `diff` does, and is understood by the same code. [`tables`] and [`comparison`] read what it asks for, within the limits
//! of [`Readings`]; what does not fit is a [`Refusal`]. `serve` answers addresses with it, `mcp` calls of tools.

pub mod comparison;
mod parameters;
mod readings;
mod refusal;
pub mod tables;

use std::{borrow::Cow, fmt::Write as _};

use form_urlencoded::parse;
use joular_data::{
    fleet::choice::{View, Wish},
    model::units::UnixMicros,
    report::profile::{App, Filter, Moment, Names, Stop},
    text::escape,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

pub use self::{
    parameters::{
        APP, BY, GROUP, MEASURE, NODES, ONE_BY, PER, Parameter, REFRESH, SELECTION, SIDES, TIER, TOP, VIEW, Values,
        list, one,
    },
    readings::Readings,
    refusal::Refusal,
};
use crate::{
    cli::PartFlags,
    config::{self, AUTO_APP, duration::parse_duration},
};

/// Parameters in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

/// A part of the data set.
#[derive(Clone, Debug)]
pub struct Part {
    pub filter: Filter,
    pub app: Option<App>,
}

impl Query {
    /// Reads what stands behind the question mark. Values without a character count as not given, because forms send them.
    ///
    /// # Errors
    /// If a parameter is not one of `allowed`, or given twice although it has one value.
    pub fn parse(text: &str, allowed: &[Parameter], has_sides: bool) -> Result<Self, Refusal> {
        Self::of(parse(text.as_bytes()), allowed, has_sides)
    }

    /// The same of names and values.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn of<'a>(
        pairs: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
        allowed: &[Parameter],
        has_sides: bool,
    ) -> Result<Self, Refusal> {
        let mut query = Self::default();
        for (name, value) in pairs {
            let side = SIDES.iter().find_map(|side| name.strip_prefix(side)).filter(|_| has_sides);
            let known = match side {
                Some(rest) => SELECTION.iter().find(|parameter| parameter.name == rest),
                None => allowed.iter().find(|parameter| parameter.name == name),
            };
            let Some(parameter) = known else {
                let names: Vec<&str> = allowed.iter().map(|parameter| parameter.name).collect();
                let sides = if has_sides { "; left. and right. may stand before what selects" } else { "" };
                let (name, names) = (escape(&name), names.join(", "));
                let names = if names.is_empty() { "none".to_owned() } else { names };
                return Err(Refusal::bad(format!("'{name}' is not a parameter here: there are {names}{sides}")));
            };
            if value.is_empty() {
                continue;
            }
            if !parameter.is_list && query.one(&name).is_some() {
                return Err(Refusal::bad(format!("'{name}' is given twice: it has one value")));
            }
            query.pairs.push((name.into_owned(), value.into_owned()));
        }
        query.sort();
        Ok(query)
    }

    /// Values of one parameter stay in their order, which tables have.
    fn sort(&mut self) {
        self.pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
    }

    pub fn one(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// All values of a list.
    pub fn many(&self, name: &str) -> Vec<String> {
        let values = self.pairs.iter().filter(|(one, _)| one == name);
        values.flat_map(|(_, value)| value.split(',')).filter(|value| !value.is_empty()).map(str::to_owned).collect()
    }

    /// A number in a range.
    ///
    /// # Errors
    /// If it is not one.
    pub fn number(&self, name: &str, range: std::ops::RangeInclusive<usize>, default: usize) -> Result<usize, Refusal> {
        let Some(text) = self.one(name) else { return Ok(default) };
        text.parse::<usize>().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            let (text, least, most) = (escape(text), range.start(), range.end());
            Refusal::bad(format!("{name}: '{text}' is not a number between {least} and {most}"))
        })
    }

    /// What is selected, of a side if it is not empty. What a side does not say holds for both. `stop` ends its reading.
    ///
    /// # Errors
    /// If a value cannot be understood.
    pub fn part(&self, side: &str, now: UnixMicros, stop: &Stop) -> Result<Part, Refusal> {
        let of_side = |name: &str| format!("{side}{name}");
        let many = |name: &str| {
            Some(self.many(&of_side(name))).filter(|own| !own.is_empty()).unwrap_or_else(|| self.many(name))
        };
        let pid = |text: &String| {
            text.parse::<u32>().map_err(|_| Refusal::bad(format!("pid: '{}' is not the id of a process", escape(text))))
        };
        let flags = PartFlags {
            pid: many("pid").iter().map(pid).collect::<Result<_, _>>()?,
            process: many("process"),
            service: many("service"),
            pod: many("pod"),
            namespace: many("namespace"),
            label: many("label"),
            thread: many("thread"),
            category: many("category"),
            method: many("method"),
            host: many("host"),
            run: many("run"),
            app: self.many("app"),
            ..PartFlags::default()
        };
        if flags.app.iter().any(|prefix| prefix == AUTO_APP) {
            // They would be found anew for every address, and differ.
            let packages = "name packages, such as com.acme: 'app' in a report lists those that are found";
            return Err(Refusal::bad(format!("app: '{AUTO_APP}' is not a package here: {packages}")));
        }
        let (filter, app) = config::part(&flags)?;
        let versions = Names::parse(&many("version")).map_err(|error| Refusal::bad(format!("version: {error}")))?;
        let time = |name: &str| {
            let text = self.one(&of_side(name)).or_else(|| self.one(name));
            text.map(|text| moment(name, text, now)).transpose()
        };
        let (since, until) = (time("from")?, time("until")?);
        Ok(Part { filter: Filter { since, until, versions, stop: stop.clone(), ..filter }, app })
    }

    /// What is selected, read from where these views can be had, by the parameter [`TIER`].
    ///
    /// # Errors
    /// As [`Self::part`].
    pub fn part_showing(
        &self,
        views: impl IntoIterator<Item = View>,
        now: UnixMicros,
        stop: &Stop,
    ) -> Result<Part, Refusal> {
        let sources = config::sources(self.one(TIER.name).unwrap_or(Wish::Auto.name()), views)?;
        let Part { filter, app } = self.part("", now, stop)?;
        Ok(Part { filter: Filter { sources, ..filter }, app })
    }

    /// What both sides of a comparison select.
    ///
    /// # Errors
    /// As [`Self::part`].
    pub fn sides(&self, now: UnixMicros, stop: &Stop) -> Result<[Part; 2], Refusal> {
        let [left, right] = SIDES.map(|side| self.part(side, now, stop));
        Ok([left?, right?])
    }

    /// Whether any parameter begins so.
    pub fn has_any(&self, side: &str) -> bool {
        self.pairs.iter().any(|(name, _)| name.starts_with(side))
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The same with another value of a parameter, or without it.
    #[must_use]
    pub fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut query = self.clone();
        query.pairs.retain(|(one, _)| one != name);
        query.pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        query.sort();
        query
    }

    /// Only what selects a part, for a page that knows nothing else.
    #[must_use]
    pub fn selecting(&self) -> Self {
        let selects = |name: &str| SELECTION.iter().chain([&APP]).any(|parameter| parameter.name == name);
        Self { pairs: self.pairs.iter().filter(|(name, _)| selects(name)).cloned().collect() }
    }

    /// The address of a path with these parameters.
    pub fn link(&self, path: &str) -> String {
        let mut link = path.to_owned();
        let mut before = '?';
        for (name, value) in &self.pairs {
            // Writing to a String cannot fail.
            let _ = write!(link, "{before}{}={}", encoded(name), encoded(value));
            before = '&';
        }
        link
    }
}

/// A text as a part of an address.
pub fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// A pattern for this very name, which commas do not divide. Of one that no address has room for it is the beginning.
pub fn exactly(name: &str) -> String {
    const MOST: usize = 1000;
    let kept = &name[..name.floor_char_boundary(MOST)];
    let mut pattern = String::with_capacity(kept.len());
    for c in kept.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' => pattern.extend(['[', c, ']']),
            // No pattern can say these.
            ',' | '\\' => pattern.push('?'),
            c => pattern.push(c),
        }
    }
    if kept.len() < name.len() {
        pattern.push('*');
    }
    pattern
}

/// A time as parameters have it.
///
/// # Errors
/// If the text is none.
pub fn moment(name: &str, text: &str, now: UnixMicros) -> Result<Moment, Refusal> {
    let before = |ago: &str| {
        let ago = if ago.is_empty() {
            Some(0)
        } else {
            parse_duration(ago.strip_prefix('-')?).ok()?.as_micros().try_into().ok()
        };
        Some(Moment::At(UnixMicros(now.0.saturating_sub(ago?))))
    };
    let seconds = || {
        let seconds = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i64>().ok())??;
        Some(Moment::At(UnixMicros(seconds.checked_mul(1_000_000)?)))
    };
    let relative = text.strip_prefix("now").map(before);
    let found = relative.unwrap_or_else(|| seconds().or_else(|| Moment::parse(text, |_| None).ok()));
    found.ok_or_else(|| {
        let text = escape(text);
        Refusal::bad(format!("{name}: '{text}' is not a time: write 2026-03-01T12:00:00Z, Unix seconds, or now-1h"))
    })
}

#[cfg(test)]
mod tests;
