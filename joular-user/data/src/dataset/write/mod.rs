//! Turns windows into rows, and rows into files.

mod broken;
mod clock;
mod collector_rows;
pub(crate) mod encode;
mod flush;
mod lasting;
mod merge;
mod parquet;
mod rewrite;
mod rollup;
mod rotated;
mod rows;
mod run_row;

pub(crate) use self::rollup::{
    Amount, AmountKey, InferredMethods, Pooled, RollupWindow, RollupWriter, add_inferred, method_rows,
};
pub use self::{
    lasting::Unwritten,
    merge::MergedFile,
    parquet::{DEFAULT_FLUSH_NS, ParquetOutput},
    rewrite::RunRewriter,
    rotated::Rotated,
};
