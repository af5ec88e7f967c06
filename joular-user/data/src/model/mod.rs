//! Defines the terms that everything else uses: units, domains of energy, policies of dividing it,
//! levels of stacks, how good stacks are, texts of targets. It holds types and their names, and no machinery.

pub mod byte_costs;
pub mod container;
pub mod cores;
pub mod counter;
pub mod domain;
pub mod frame;
pub mod generated;
mod label;
pub mod measure;
mod meter;
pub mod policy;
pub mod quality;
pub mod target_text;
pub mod units;
pub mod use_curve;
pub mod way;
