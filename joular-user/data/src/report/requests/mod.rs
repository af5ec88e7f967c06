//! Computes joules per request, from counts of requests and the energy of their handlers.
//!
//! A handler is a method on the call path ([`crate::report::profile::Handler`]), so samples show its energy. How many requests
//! there were no sample shows: a load generator, an access log or an application's own counters do. So
//!
//! > joules per request = energy of the handler while requests were counted ÷ requests
//!
//! [`counts`] reads how many there were, [`recorded`] leaves out what was counted while nothing was recorded,
//! [`figures`] divides, and [`render`] shows it. [`scrape`] makes counts of what applications expose. Two figures bracket
//! the truth: **direct** is what paths of the handler had, **loaded** has in addition its part of what its process did
//! outside of all handlers. docs/handlers.md explains them to users.

pub(in crate::report) mod counts;
mod figures;
pub(in crate::report) mod recorded;
mod render;
pub mod scrape;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

use self::{
    figures::Sums,
    recorded::{Coverage, Recorded},
};
use super::{
    Format,
    profile::{DataSet, Filter, Moment, Profile},
};
use crate::{
    dataset::error::{DataSetError, OfDataSet},
    model::{domain::Label, target_text::TargetText},
};

/// Fewer samples say nothing of a figure: its interval reaches farther than a third of it.
pub const LEAST_SAMPLES: u64 = 30;

/// Why there are no joules per request.
#[derive(Debug, Error)]
pub enum RequestsError {
    #[error(transparent)]
    Data(#[from] DataSetError),
    #[error("reading counts of requests from {}: {cause}", path.display())]
    Read { path: PathBuf, cause: csv::Error },
    #[error("counts of requests in {}, row {row}: {cause}", path.display())]
    Row { path: PathBuf, row: usize, cause: String },
    #[error("counts of requests in {}: there is none: the file has a line for each route, below the line route,count", path.display())]
    Empty { path: PathBuf },
    #[error("counts of requests in {}: there are more than {most} rows: sum up routes that belong together", path.display())]
    Rows { path: PathBuf, most: usize },
    #[error("counts of requests in {}: they are of {spans} different times, and at most {most} can be read", path.display())]
    Spans { path: PathBuf, spans: usize, most: usize },
    #[error(
        "counts of requests in {}: routes {first} and {second} have the same handler, {handler}: give one count for both",
        path.display()
    )]
    SameHandler { path: PathBuf, first: TargetText, second: TargetText, handler: TargetText },
}

impl OfDataSet for RequestsError {
    fn data_set(&self) -> Option<&DataSetError> {
        match self {
            Self::Data(error) => Some(error),
            _ => None,
        }
    }
}

/// What is wanted.
#[derive(Clone, Debug)]
pub struct RequestsWanted {
    /// It says how handlers are found.
    pub filter: Filter,
    /// The file of counts.
    pub counts: PathBuf,
    pub format: Format,
}

/// A figure per request, J, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PerRequest {
    pub joules: f64,
    pub low: f64,
    pub high: f64,
}

/// What a request of a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// Of paths that have the handler.
    pub direct: PerRequest,
    /// With its part of what its processes did outside of handlers.
    pub loaded: PerRequest,
}

/// A route with its requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Route {
    pub route: TargetText,
    pub requests: u64,
    /// Energy of paths that have its handler, µJ.
    pub energy_uj: u64,
    pub samples: u64,
    /// `None`: see `why_not`.
    pub needs: Option<Needs>,
    pub why_not: Option<String>,
}

/// All routes of a file, in its order.
#[derive(Clone, Debug, Serialize)]
pub struct PerRoute {
    pub routes: Vec<Route>,
    /// Energy of processes that have handlers, µJ.
    pub processes_uj: u64,
    /// Part of it that is of no handler, µJ: loaded figures share it out.
    pub no_handler_uj: u64,
    /// Part of it that is of handlers of no route, µJ.
    pub other_handlers_uj: u64,
    #[serde(flatten)]
    coverage: Coverage,
    /// How the energy came about: the weakest label of all runs.
    pub energy_label: Option<&'static str>,
    #[serde(skip)]
    label: Option<Label>,
    #[serde(skip)]
    format: Format,
}

/// Reads a data set and the counts of its requests.
///
/// # Errors
/// If one of them cannot be read, or the counts do not fit each other.
pub fn read(data: &Path, wanted: &RequestsWanted) -> Result<PerRoute, RequestsError> {
    wanted.filter.unreadable.reading(|| per_route(data, wanted))
}

fn per_route(data: &Path, wanted: &RequestsWanted) -> Result<PerRoute, RequestsError> {
    let mut counts = counts::read(&wanted.counts)?;
    let windows = DataSet::open(data, &wanted.filter)?.windows(&wanted.filter);
    let coverage = Recorded::of(&windows).keep(&mut counts);
    let mut sums = Sums::of(&counts);
    let mut label = None;
    for (span, rows) in counts.joined(&wanted.counts)? {
        let moment = |end: Option<_>| end.map(Moment::At);
        let filter = Filter { since: moment(span.begin), until: moment(span.end), ..wanted.filter.clone() };
        let profile = Profile::read(data, &filter, None)?;
        label = label.max(profile.overview.label);
        sums.add(&profile, &rows).map_err(|same| RequestsError::SameHandler {
            path: wanted.counts.clone(),
            first: counts.routes[same.first].clone(),
            second: counts.routes[same.second].clone(),
            handler: same.handler,
        })?;
    }
    Ok(sums.finish(&counts, coverage, label, wanted.format))
}
