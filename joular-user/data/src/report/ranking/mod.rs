//! Makes the tables of who consumed most.
//!
//! A selection of a data set ([`crate::report::profile`]) is grouped by what the reader asks for
//! ([`by`], [`groups`]), summed and ranked ([`rows`]). Each figure has its error of sampling
//! ([`crate::sampling`]) and, if wanted, is set in relation to how often a method was seen to be called
//! ([`activations`]), or with its emissions and cost ([`footprint`]); bytes and counts are beside it ([`beside`]). A measure
//! that is not energy also has tables of its own ([`by_measure`]). All of them are summed by [`sums`]. A report also says
//! what its tables are part of ([`context`], [`unnamed`], [`rootless`], [`selected`]), and is written for people or machines
//! ([`text`], [`markdown`], [`csv`], [`json`]).

pub mod activations;
pub mod beside;
pub mod by;
pub mod by_measure;
pub mod command;
pub mod context;
pub mod csv;
pub mod footprint;
pub mod groups;
pub mod json;
pub mod markdown;
pub mod neighbours;
pub mod rootless;
pub mod rows;
pub mod selected;
pub(super) mod slots;
pub mod sums;
pub mod text;
pub mod unnamed;

#[cfg(test)]
mod tests;

pub use self::{
    by::By,
    by_measure::{MeasureTable, TableOf},
    command::{Look, Request},
    rows::{Figures, RankedRow, Ranking, Sort},
    sums::{Cell, Figure},
};
