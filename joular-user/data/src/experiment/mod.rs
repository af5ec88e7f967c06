//! Computes what experiments show: runs that were repeated, variants of a command side by side
//! ([`replicates`]).
//!
//! Nothing here starts a command: who measured gives figures, and gets means, intervals, rankings and
//! warnings.

mod cells;
pub mod replicates;
