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

pub use self::{
    markup::Markup,
    served::{ServedPage, served},
};

use self::{
    activity::Activity, clock::Clock, collections::AllocatedOverTime, figures::Beside, moved::MovedOverTime,
    over_time::OverTime, power::Power, timeline::Said,
};
use super::{
    footprint::{Account, Choices, FootprintError},
    headline::Headline,
    profile::{App, Collected, DataSet, Filter, Profile},
    selected,
    tree::Shape,
};
use crate::redact::Redaction;

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
}

/// Makes the page.
///
/// # Errors
/// If the data set cannot be read, or emissions and cost cannot be computed.
pub fn page(choice: &PageChoice) -> Result<(Vec<u8>, Headline), FootprintError> {
    let filter = &choice.filter;
    let mut data = DataSet::open(&choice.data, filter)?;
    let account = choice.footprint.as_ref().map(|choices| Account::open(choices, &data, filter)).transpose()?;
    let overview = data.overview(filter)?;
    let said = Said::read(&data, &overview)?;
    let clock = Clock::of(&data.catalog.runs, &overview);
    let mut activity = Activity::new(clock);
    data.scan_places(filter, |row| activity.take_place(row))?;
    let power = Power::new(clock, filter, choice.app.as_ref(), choice.shape.kinds);
    let summed = data.sums(filter, |_, _| {})?;
    let collected = Collected::read(&mut data, filter)?;
    let (allocated, moved) = (AllocatedOverTime::default(), MovedOverTime::default());
    let mut over_time = OverTime { clock, account, power, activity, allocated, moved };
    let profile = Profile::of(data, summed, overview, filter, choice.app.as_ref(), &mut over_time)?;
    selected::expect_any(&choice.data, &profile, filter)?;
    let headline = Headline::of(&profile);
    let footprints = over_time.account.take().map(|account| account.of(&profile)).transpose()?;
    let beside = Beside { said, collected };
    let figures = figures::of(&profile, choice, footprints.as_ref(), &over_time, &beside);
    Ok((document::page(&document::REPORT, &figures), headline))
}
