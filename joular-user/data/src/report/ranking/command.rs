//! Runs `report` as the command line has it.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{
    activations::Activations,
    by::By,
    csv,
    groups::Groups,
    json, markdown,
    rows::{Cut, Ranking, Sort},
    text,
};
use crate::{
    dataset::error::Result,
    report::{
        Format,
        profile::{App, Filter, Profile},
    },
    text::harmless_json,
};

/// What is wanted, and how.
#[derive(Clone, Debug)]
pub struct Request {
    pub filter: Filter,
    pub app: Option<App>,
    /// One table for each; only one for [`Format::Csv`].
    pub by: Vec<By>,
    /// Rows of each table, 0: all.
    pub top: usize,
    pub sort: Sort,
    /// Whether calls are counted.
    pub activations: bool,
    pub format: Format,
}

/// What text is shown on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal; `None`: no terminal, and nothing is cut.
    pub width: Option<usize>,
    pub colours: bool,
}

/// All that a report says.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    pub profile: &'a Profile,
    pub tables: &'a [Ranking],
    pub has_app: bool,
    /// Rows of tables, 0: all.
    pub top: usize,
}

/// Reads a data set and writes the report.
///
/// # Errors
/// If the data set cannot be read; what cannot be written to `out` is the
/// inner error.
pub fn run(data: &Path, request: &Request, look: Look, out: &mut impl Write) -> Result<io::Result<()>> {
    let app = request.app.as_ref();
    let wanted = if request.activations { request.by.as_slice() } else { &[] };
    let mut counters: Vec<(By, Activations)> =
        wanted.iter().filter_map(|by| Some((*by, Activations::of(*by, app)?))).collect();
    let profile = Profile::read_watched(data, &request.filter, app, |catalog, row| {
        counters.iter_mut().for_each(|(_, counter)| counter.see(catalog, row));
    })?;
    let counts: Vec<(By, Vec<u64>)> = counters.into_iter().map(|(by, counter)| (by, counter.counts())).collect();
    let tables = tables(&profile, request, &counts);
    let report = Report { profile: &profile, tables: &tables, has_app: app.is_some(), top: request.top };
    Ok(write(&report, request.format, look, out))
}

fn tables(profile: &Profile, request: &Request, counts: &[(By, Vec<u64>)]) -> Vec<Ranking> {
    let cut = Cut { top: request.top, sort: request.sort, is_partial: !request.filter.methods.allow_all() };
    let table = |by: &By| {
        let counts = counts.iter().find(|(counted, _)| counted == by).map(|(_, counts)| counts.as_slice());
        Ranking::of(profile, Groups::of(*by, &profile.catalog), cut, counts)
    };
    request.by.iter().map(table).collect()
}

/// Writes a report.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(report: &Report<'_>, format: Format, look: Look, out: &mut impl Write) -> io::Result<()> {
    match format {
        Format::Text => {
            for line in text::lines(report, look) {
                writeln!(out, "{}", line.draw(look.colours))?;
            }
            Ok(())
        }
        Format::Json => {
            let text = serde_json::to_string_pretty(&json::report(report)).map_err(io::Error::from)?;
            writeln!(out, "{}", harmless_json(&text))
        }
        Format::Csv => report.tables.iter().try_for_each(|table| out.write_all(csv::table(report, table).as_bytes())),
        Format::Markdown => out.write_all(markdown::report(report).as_bytes()),
    }?;
    out.flush()
}
