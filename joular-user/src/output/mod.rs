//! Everything that leaves the program about a run: the Parquet data set, the
//! live view, the closing summary and the JSON stream. The only part that
//! knows Arrow and Parquet.
//!
//! Each of them is an [`Output`]: it is told what happens in the order in
//! which it happens and keeps for itself what it needs of it.

pub mod artifact;
mod column;
mod directory;
mod encode;
mod error;
mod faults;
#[cfg(test)]
pub(crate) mod fixture;
mod json;
mod json_jvms;
pub(crate) mod jvm_totals;
mod live;
mod lock;
mod merge;
mod parquet;
mod rewrite;
mod rows;
mod run_row;
pub mod schema;
pub(crate) mod summary;
pub(crate) mod table;
mod tables;
pub mod text;
pub(crate) mod totals;

pub use self::{
    directory::OutputDirectory,
    error::OutputError,
    faults::FaultNotices,
    json::JsonOutput,
    live::{LiveOutput, Screen},
    lock::ReadLock,
    merge::MergedFile,
    parquet::{DEFAULT_FLUSH_NS, ParquetOutput},
    rewrite::{RunRewriter, UNCHANGED},
    summary::SummaryOutput,
    table::Size,
};

use self::error::Result;
use crate::{
    attribution::report::WindowReport,
    events::{ProcessInfo, RunEnd, RunInfo},
    stacks::StackTable,
};

/// A reader of a run's results.
pub trait Output {
    /// Comes first, once.
    fn run_started(&mut self, run: &RunInfo) -> Result<()>;

    /// A process was found, or what is known about it changed.
    fn process(&mut self, process: &ProcessInfo);

    /// A window is complete; windows come in order of time.
    fn window(&mut self, report: &WindowReport, stacks: &StackTable) -> Result<()>;

    /// Comes last, once, if the run ended in order.
    fn run_ended(&mut self, end: &RunEnd) -> Result<()>;
}
