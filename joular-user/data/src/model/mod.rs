//! Defines the terms that everything else uses: units, domains of energy, policies of dividing it,
//! levels of stacks and how good stacks are. It holds types and their names, and no machinery.

pub mod cores;
pub mod domain;
pub mod frame;
pub mod policy;
pub mod quality;
pub mod units;
