//! Sums what hosts shipped, by service: for questions about many hosts and long times, for which what each host recorded is
//! too much to read.
//!
//! A place that hosts ship to has a bundle for each host and quarter of an hour ([`crate::dataset::bundle`]). [`compact`]
//! makes two tiers of them, in folders of the place ([`tier`]):
//!
//! | tier | from | windows | a bundle for each |
//! |---|---|---|---|
//! | `minutes` | what hosts shipped | 5 minutes | hour, service and energy label |
//! | `hourly` | `minutes` | 1 hour | day, service and energy label |
//!
//! A tier is a data set of its own, of rollups, and is read as any other. A service is in it what a host is elsewhere, and a
//! version of a service what a process is. What hosts needed beside all services is in `[hosts]`. So nothing is lost of
//! any sum: energy, CPU time, samples and amounts of a tier are those of its sources, to the microjoule.
//!
//! What is made of an hour or a day follows from its sources alone ([`unit`]). So it may be made again: after an interruption,
//! by another one at the same time, or because a host was late. Who was stopped meanwhile writes nothing over what is newer
//! ([`before`]).

mod before;
pub mod choice;
mod claim;
mod erase;
mod names;
mod note;
mod read;
#[cfg(test)]
mod stalled_tests;
mod sums;
#[cfg(test)]
mod tests;
mod tier;
mod unit;
mod window;
mod write;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

pub use self::erase::{Erased, Order, Subject, erase};
use self::tier::Opened;
pub use self::tier::{Span, Tier};
use crate::{
    dataset::{
        bundle,
        column::Table as _,
        error::Result,
        layout::{FilePlace, date},
        read::files::MAX_FILES,
        store::{Hour, Part, SharedPlace, Store},
        tables::Runs,
    },
    model::units::UnixMicros,
    text::count,
};

/// What was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compacted {
    pub minutes: Made,
    pub hourly: Made,
}

/// What was made of a tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Hours or days that were summed.
    pub units: usize,
    /// Those that had been summed already, from the same sources.
    pub unchanged: usize,
    /// Those that somebody else is at.
    pub claimed: usize,
    /// Runs that were summed.
    pub runs: usize,
    pub files: usize,
    pub bytes: u64,
    /// Sources that could not be summed, each with the reason.
    pub left_out: Vec<String>,
}

/// Sums the hours of a span, and their days, as far as that was not done. Files are made in the folder `scratch` before they
/// are sent.
///
/// # Errors
/// If the place cannot be opened, listed or written. What was made until then is whole.
pub fn compact(place: &SharedPlace, span: &Span, scratch: &Path, now: UnixMicros) -> Result<Compacted> {
    let mut done = Compacted::default();
    for tier in Tier::ALL {
        let opened = Opened::new(place, tier)?;
        let made = match tier {
            Tier::Minutes => &mut done.minutes,
            Tier::Hourly => &mut done.hourly,
        };
        for unit in tier.units(span) {
            unit::sum(&opened, unit, scratch, now, made)?;
        }
    }
    done.minutes.left_out.extend(of_tables(&place.open()?, span)?);
    Ok(done)
}

/// Says how many runs of the span's dates are files of tables: of these nobody knows whether they are whole.
fn of_tables(place: &Arc<dyn Store>, span: &Span) -> Result<Option<String>> {
    let hours = (Some(Hour::of(span.begin)), Some(Hour::of(span.end)));
    let part = Part { since: Some(date(span.begin)), until: Some(date(span.end)), hours, ..Part::default() };
    let mut rows = place.list_part(&[Runs::NAME], &part, MAX_FILES)?;
    let is_wanted = |row: &PathBuf| FilePlace::of(row).is_some_and(|row| part.has_date(row.date()));
    rows.retain(is_wanted);
    if rows.is_empty() {
        return Ok(None);
    }
    let bundles = bundle::found(place, &part)?;
    rows.retain(|row| FilePlace::of(row).is_some_and(|row| !bundles.contains_key(&row.run())));
    rows.sort();
    let Some(first) = rows.first() else { return Ok(None) };
    let (runs, first) = (count(rows.len(), "run"), place.path().join(first));
    Ok(Some(format!("{runs} as files of tables, such as {}: only bundles are summed", first.display())))
}

impl Compacted {
    /// Says what was done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn say(&self, json: bool, out: &mut impl io::Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        self.minutes.say("hour", out)?;
        self.hourly.say("day", out)
    }

    /// What could not be summed.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.minutes.left_out.iter().chain(&self.hourly.left_out).map(String::as_str)
    }
}

impl Made {
    fn say(&self, unit: &str, out: &mut impl io::Write) -> io::Result<()> {
        let units = |number: usize| count(number, unit);
        let (runs, files) = (count(self.runs, "run"), count(self.files, "file"));
        write!(out, "summed {} of {runs} into {files}", units(self.units))?;
        if self.unchanged > 0 {
            write!(out, "; {} unchanged", units(self.unchanged))?;
        }
        if self.claimed > 0 {
            write!(out, "; {} left to another one", units(self.claimed))?;
        }
        writeln!(out)
    }
}
