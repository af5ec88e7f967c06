//! Computes what experiments show: runs that were repeated, variants of a command side by side
//! ([`replicates`]), how energy grows with a parameter ([`growth`]), and what an operation of a benchmark needs ([`jmh`]).
//! [`methods`] describes how an experiment was made, and [`plot`] draws it.
//!
//! Nothing here starts a command: who measured gives figures, and gets means, intervals, rankings and
//! warnings.

mod cells;
pub mod growth;
pub mod jmh;
pub mod methods;
pub mod plot;
pub mod replicates;
