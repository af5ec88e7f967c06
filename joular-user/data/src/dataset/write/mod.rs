//! Turns windows into rows, and rows into files.

pub(crate) mod encode;
mod flush;
mod merge;
mod parquet;
mod rewrite;
mod rows;
mod run_row;

pub use self::{
    merge::MergedFile,
    parquet::{DEFAULT_FLUSH_NS, ParquetOutput},
    rewrite::RunRewriter,
};
