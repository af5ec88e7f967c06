//! The words that everything else speaks: units, domains of energy, policies of
//! dividing it, levels of stacks and how good stacks are. Types and their names; no
//! machinery.

pub mod domain;
pub mod frame;
pub mod policy;
pub mod quality;
pub mod units;
