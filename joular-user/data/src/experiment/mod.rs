//! Computes what experiments show: runs that were repeated, variants of a command side by side
//! ([`replicates`]), and how energy grows with a parameter ([`growth`]).
//!
//! Nothing here starts a command: who measured gives figures, and gets means, intervals, rankings and
//! warnings.

mod cells;
pub mod growth;
#[cfg(test)]
pub(crate) mod noise;
pub mod replicates;
