//! Data sets, read again: the files of a run ([`files`]) become the work of its
//! windows and the shares that were written ([`windows`], [`stacks`],
//! [`run_row`]), which are attributed again ([`reattribute`]) and checked
//! ([`audit`]), or merged ([`compact`]); or a selection of it, summed ([`profile`]), which all that is shown
//! starts from: tables ([`ranking`]), comparisons ([`diff`]), other tools' formats ([`export`]). Nothing here needs
//! privileges or asks the system anything.

mod ahead;
pub mod audit;
mod columns;
pub mod commands;
pub mod compact;
pub mod diff;
mod error;
pub mod export;
mod files;
pub mod flamegraph;
mod footer;
pub mod headline;
pub mod html;
pub mod profile;
pub mod ranking;
pub mod reattribute;
mod run_row;
mod stacks;
pub mod tree;
mod windows;

pub use self::error::DataSetError;

#[cfg(test)]
mod tests;
