//! Runs `report` as the command line has it.

use std::{
    io::{self, Write},
    path::Path,
};

use serde_json::Value;

use super::{
    activations::Activations,
    by::By,
    by_measure::{self, MeasureTable, TableOf},
    csv,
    groups::Groups,
    json, markdown,
    rows::{Cut, Ranking, Sort},
    text,
};
use crate::{
    dataset::error::DataSetError,
    report::{
        Format,
        app::AppEnergy,
        footprint::{self, FootprintError, Footprints, statement},
        measure::{self, Measure},
        profile::{App, Catalog, EnergyRow, Filter, Profile, ReadFrom},
    },
    text::harmless_json,
};

/// What is wanted, and how.
#[derive(Clone, Debug)]
pub struct Request {
    pub filter: Filter,
    pub app: Option<App>,
    /// Only one for [`Format::Csv`]. Those of energy come first.
    pub tables: Vec<TableOf>,
    /// Rows of each table, 0: all.
    pub top: usize,
    pub sort: Sort,
    /// Whether calls are counted.
    pub activations: bool,
    /// Whether emissions and cost are shown, and of what they are made.
    pub footprint: Option<footprint::Choices>,
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
    pub of_measures: &'a [MeasureTable],
    /// Whose code is shown; `None`: all.
    pub app: Option<&'a App>,
    /// The application's packages: those of its view, or else those that were found.
    pub packages: &'a AppEnergy,
    /// Rows of tables, 0: all.
    pub top: usize,
    pub footprints: Option<&'a Footprints<'a>>,
}

impl Report<'_> {
    /// Whether code of others than an application's is hidden, whatever it is.
    pub const fn has_app(&self) -> bool {
        matches!(self.app, Some(App::Of(_)))
    }

    /// Name of what is shown.
    pub const fn view(&self) -> &'static str {
        match self.app {
            None => "all",
            Some(App::Of(_)) => "app",
            Some(App::Java) => "java",
        }
    }
}

/// What became of a report.
#[derive(Debug)]
pub struct Said {
    pub written: io::Result<()>,
    /// What its reader must know, and its format has no room for.
    pub notices: Vec<String>,
}

/// Reads a data set and writes the report.
///
/// # Errors
/// If the data set cannot be read, has none of the bytes that are asked for, or there are no emission factors for it.
pub fn run(data: &Path, request: &Request, look: Look, out: &mut impl Write) -> Result<Said, FootprintError> {
    read(data, request, |report| {
        let overview = &report.profile.overview;
        let notices = match request.format {
            Format::Csv => {
                let footprints = report.footprints.map(|footprints| statement::text(footprints, overview));
                let read_from = overview.read_from.as_ref().and_then(ReadFrom::line);
                footprints.into_iter().flatten().chain(read_from).chain(overview.skipped.line()).collect()
            }
            Format::Json => overview.skipped.line().into_iter().collect(),
            Format::Text | Format::Markdown => Vec::new(),
        };
        Said { written: write(report, request.format, look, out), notices }
    })
}

/// Reads a data set for an object of JSON, with the keys that [`run`] writes.
///
/// # Errors
/// As [`run`].
pub fn value(data: &Path, request: &Request) -> Result<Value, FootprintError> {
    read(data, request, json::report)
}

fn read<T>(data: &Path, request: &Request, made: impl FnOnce(&Report<'_>) -> T) -> Result<T, FootprintError> {
    let (profile, footprints, counts) = request.filter.unreadable.reading(|| profile_of(data, request))?;
    let (app, footprints) = (request.app.as_ref(), footprints.as_ref());
    let tables = tables(&profile, request, &counts, footprints);
    check_that_measures_are_there(data, &profile, request)?;
    let of_measures: Vec<MeasureTable> =
        request.of_measures().map(|of| MeasureTable::of(&profile, of, cut(request))).collect();
    let packages = match app {
        // It has no room for them.
        _ if request.format == Format::Csv => AppEnergy::default(),
        Some(App::Of(packages)) => AppEnergy::of(&profile, packages),
        _ => AppEnergy::found(&profile, &[]),
    };
    let report = Report {
        profile: &profile,
        tables: &tables,
        of_measures: &of_measures,
        app,
        packages: &packages,
        top: request.top,
        footprints,
    };
    Ok(made(&report))
}

type Counts = Vec<(By, Vec<u64>)>;

/// What tables are made of: the profile, emissions and cost, and the calls that were counted.
fn profile_of<'a>(
    data: &Path,
    request: &'a Request,
) -> Result<(Profile, Option<Footprints<'a>>, Counts), FootprintError> {
    let app = request.app.as_ref();
    let wanted = request.of_energy().filter(|_| request.activations);
    let mut counters: Vec<(By, Activations)> = wanted.filter_map(|by| Some((by, Activations::of(by, app)?))).collect();
    let mut watch = |catalog: &Catalog, row: &EnergyRow| {
        counters.iter_mut().for_each(|(_, counter)| counter.see(catalog, row));
    };
    let (profile, footprints) = match &request.footprint {
        Some(choices) => {
            let (profile, footprints) = footprint::read(data, &request.filter, app, choices, &mut watch)?;
            (profile, Some(footprints))
        }
        None => (Profile::read_watched(data, &request.filter, app, &mut watch)?, None),
    };
    let counts = counters.into_iter().map(|(by, counter)| (by, counter.counts())).collect();
    Ok((profile, footprints, counts))
}

fn tables(
    profile: &Profile,
    request: &Request,
    counts: &[(By, Vec<u64>)],
    footprints: Option<&Footprints<'_>>,
) -> Vec<Ranking> {
    let footprints = footprints.map(|footprints| footprints.entries.as_slice());
    let cut = cut(request);
    let table = |by: By| {
        let counts = counts.iter().find(|(counted, _)| *counted == by).map(|(_, counts)| counts.as_slice());
        Ranking::of(profile, &Groups::of(by, profile), cut, counts, footprints)
    };
    request.of_energy().map(table).collect()
}

impl Request {
    /// What rows of tables of energy are about.
    pub fn of_energy(&self) -> impl Iterator<Item = By> + '_ {
        self.tables.iter().filter(|table| table.measure == Measure::Energy).map(|table| table.by)
    }

    /// All other tables.
    pub fn of_measures(&self) -> impl Iterator<Item = TableOf> + '_ {
        self.tables.iter().copied().filter(|table| table.measure != Measure::Energy)
    }
}

/// Rows are not shown by a measure of which there is nothing.
fn check_that_measures_are_there(data: &Path, profile: &Profile, request: &Request) -> Result<(), DataSetError> {
    let sorted = match request.sort {
        Sort::By(measure) => Some(measure),
        Sort::Own | Sort::Total => None,
    };
    let mut wanted = request.of_measures().map(|table| table.measure).chain(sorted);
    wanted.find(|measure| !profile.has(*measure)).map_or(Ok(()), |measure| Err(measure::nothing(measure, data)))
}

fn cut(request: &Request) -> Cut {
    Cut { top: request.top, sort: request.sort, is_partial: !request.filter.allows_all_paths() }
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
        Format::Csv => {
            let tables = report.tables.iter().map(|table| csv::table(report, table));
            let of_measures = report.of_measures.iter().map(|table| by_measure::csv(table, report.profile));
            tables.chain(of_measures).try_for_each(|table| out.write_all(table.as_bytes()))
        }
        Format::Markdown => out.write_all(markdown::report(report).as_bytes()),
    }?;
    out.flush()
}
