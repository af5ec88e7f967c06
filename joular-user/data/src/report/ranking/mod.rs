//! Makes the tables of who consumed most.
//!
//! A selection of a data set ([`crate::report::profile`]) is grouped by what the reader asks for
//! ([`by`], [`groups`]), summed and ranked ([`rows`]). Each figure has its error of sampling
//! ([`crate::sampling`]) and, if wanted, is set in relation to how often a method was seen to be called
//! ([`activations`]), or with its emissions and cost ([`footprint`]); what was counted ([`counts`]) and moved ([`moved`]) is
//! beside it. What was allocated has tables of its own ([`allocated`]). A report also says what its tables are part of
//! ([`context`]), and is written for people or machines ([`text`], [`markdown`], [`csv`], [`json`]).

pub mod activations;
pub mod allocated;
pub mod by;
pub mod command;
pub mod context;
pub mod counts;
pub mod csv;
pub mod footprint;
pub mod groups;
pub mod json;
pub mod markdown;
pub mod moved;
pub mod rows;
mod slots;
pub mod text;

#[cfg(test)]
mod tests;

pub use self::{
    allocated::{AllocatedBy, AllocationTable},
    by::By,
    command::{Look, Request},
    moved::Way,
    rows::{Figures, Ranking, Row, Sort},
};
