//! Makes a data set into one page that a browser shows by itself, for `joular-bpf html`. Other pages are made of the
//! same parts: [`document`], [`columns`] and [`strings`].
//!
//! The page is a template ([`document`]) with the figures as JSON in it, which its scripts draw.
//! Figures stay small enough to look at, whatever was recorded: the call tree is pruned
//! ([`figures`]), time is cut into at most [`clock::MOST_BUCKETS`] buckets, names are written once
//! ([`strings`]). What is left out is merged, never dropped: all views sum to the selection's
//! energy.

mod activity;
mod allocations;
pub mod clock;
mod collections;
pub(super) mod columns;
pub(super) mod document;
mod emissions;
mod facts;
mod figures;
mod flight;
mod markup;
mod methods;
mod moved;
mod over_time;
mod power;
mod served;
pub(super) mod strings;
#[cfg(test)]
mod tests;
mod timeline;

use std::path::PathBuf;

use thiserror::Error;

use self::{
    activity::Activity, clock::Clock, collections::AllocatedOverTime, figures::Beside, flight::Windows,
    methods::Method, moved::MovedOverTime, over_time::OverTime, power::Power, strings::Strings, timeline::Said,
};
pub use self::{
    flight::Flights,
    markup::Markup,
    served::{ServedPage, served},
};
use super::{
    flight::FlightError,
    footprint::{Account, Choices, FootprintError, Footprints},
    headline::Headline,
    profile::{App, Collected, DataSet, Filter, Profile},
    selected,
    tree::{Kinds, Shape},
};
use crate::{
    dataset::error::{DataSetError, OfDataSet},
    redact::Redaction,
};

/// What the page is about.
#[derive(Clone, Debug)]
pub struct PageChoice {
    pub data: PathBuf,
    pub filter: Filter,
    pub app: Option<App>,
    pub shape: Shape,
    /// Whether processes and threads stand before the frames at first. They are in the page in any case.
    pub is_apart: bool,
    /// Emissions and cost, if they are wanted.
    pub footprint: Option<Choices>,
    /// What is shown of command lines.
    pub redaction: Redaction,
    /// Whose code is shown if that is not all, for the page to say.
    pub view: String,
    /// Recordings of Flight Recorder that are laid beside power.
    pub flights: Flights,
}

/// A page that is made.
#[derive(Clone, Debug)]
pub struct Page {
    pub bytes: Vec<u8>,
    /// What it shows, in a line.
    pub headline: Headline,
    /// What its maker should know of it.
    pub notices: Vec<String>,
}

/// Why there is no page.
#[derive(Debug, Error)]
pub enum PageError {
    #[error(transparent)]
    Figures(#[from] FootprintError),
    #[error(transparent)]
    Flight(#[from] FlightError),
}

impl From<DataSetError> for PageError {
    fn from(error: DataSetError) -> Self {
        Self::Figures(error.into())
    }
}

impl OfDataSet for PageError {
    fn data_set(&self) -> Option<&DataSetError> {
        match self {
            Self::Figures(error) => error.data_set(),
            Self::Flight(_) => None,
        }
    }
}

/// Makes the page.
///
/// # Errors
/// If the data set or a recording of Flight Recorder cannot be read, or emissions and cost cannot be computed.
pub fn page(choice: &PageChoice) -> Result<Page, PageError> {
    choice.filter.unreadable.reading(|| made(choice))
}

fn made(choice: &PageChoice) -> Result<Page, PageError> {
    let filter = &choice.filter;
    let mut data = DataSet::open(&choice.data, filter)?;
    let account = choice.footprint.as_ref().map(|choices| Account::open(choices, &data, filter)).transpose()?;
    let overview = data.overview(filter)?;
    let said = Said::read(&data, &overview)?;
    let clock = Clock::of(&data.catalog.runs, &overview);
    let windows = Windows::of(data.windows(filter));
    let flights = choice.flights.read(&overview, clock, &windows)?;
    let mut activity = Activity::new(clock);
    data.scan_places(filter, |row| activity.take_place(row))?;
    let power = Power::new(clock, filter, choice.app.as_ref(), choice.shape.kinds);
    let summed = data.sums(filter, &mut |_, _| {})?;
    let collected = Collected::read(&mut data, filter)?;
    let (allocated, moved) = (AllocatedOverTime::default(), MovedOverTime::default());
    let mut over_time = OverTime { clock, account, power, activity, allocated, moved, windows };
    let mut profile = Profile::of(data, summed, overview, filter, choice.app.as_ref(), &mut over_time)?;
    selected::expect_any(&choice.data, &profile, filter)?;
    let headline = Headline::of(&profile);
    let footprints = over_time.account.take().map(|account| account.of(&profile)).transpose()?;
    let notices = flights.iter().flat_map(|flight| flight.notices(&profile.catalog)).collect();
    let mut strings = Strings::default();
    let java_methods = java_methods(&mut profile, choice, footprints.as_ref(), &mut strings);
    let beside = Beside { said, collected, java_methods, flights };
    let figures = figures::of(&profile, choice, footprints.as_ref(), &over_time, beside, strings);
    Ok(Page { bytes: document::page(&document::REPORT, &figures), headline, notices })
}

/// The methods in the Java view, in which reports show them. `None` if nobody asked for that: a page of another view, of
/// kinds of code, or without Java code.
fn java_methods(
    profile: &mut Profile,
    choice: &PageChoice,
    footprints: Option<&Footprints<'_>>,
    strings: &mut Strings,
) -> Option<Vec<Method>> {
    let has_java = profile.catalog.paths.frames().iter().any(|frame| frame.kind.is_java());
    let is_wanted = choice.app.is_none() && choice.shape.kinds == Kinds::Merged && has_java;
    is_wanted.then(|| {
        profile.seen_by(&App::Java, |seen| methods::of(seen, choice.shape.kinds, footprints, strings, columns::kind_of))
    })
}
