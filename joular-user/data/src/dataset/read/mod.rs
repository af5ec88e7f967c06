//! Turns files into rows with named values again, and rows into the work of windows.

mod apart;
pub(crate) mod asked;
pub(crate) mod builder;
pub(crate) mod columns;
pub(crate) mod decode_ahead;
pub(crate) mod files;
pub(crate) mod footer;
pub(crate) mod lists;
pub mod marks;
pub(crate) mod method_spans;
mod nested;
pub(crate) mod rollup;
pub(crate) mod run_row;
mod side_by_side;
pub mod span;
pub(crate) mod stacks;
pub mod unreadable;
mod values;
pub(crate) mod windows;
