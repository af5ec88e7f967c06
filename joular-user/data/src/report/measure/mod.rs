//! Says what can be ranked, drawn and exported: energy, bytes and counts.
//!
//! A [`Measure`] is a name with a unit. A [`Fact`] is what a thread has of a measure on a call path. Tables sum facts by
//! their rows, all measures alike. A new measure is a variant of [`Measure`] and an iterator of facts in [`facts`].

pub mod facts;
mod list;
mod way;

pub use self::{
    facts::Fact,
    list::{Measure, Unit},
    way::Way,
};
