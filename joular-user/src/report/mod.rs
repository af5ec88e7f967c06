//! Data sets, read again: the files of a run ([`files`]) become the work of its
//! windows and the shares that were written ([`windows`], [`stacks`],
//! [`run_row`]), which are attributed again ([`reattribute`]) and checked
//! ([`audit`]); or a selection of it, summed ([`profile`]), which all that is shown
//! starts from. Nothing here needs privileges or asks the system anything.

pub mod audit;
mod columns;
pub mod commands;
mod error;
mod files;
pub mod flamegraph;
pub mod headline;
pub mod html;
pub mod profile;
pub mod reattribute;
mod run_row;
mod stacks;
pub mod tree;
mod windows;

pub use self::error::DataSetError;

#[cfg(test)]
mod tests;
