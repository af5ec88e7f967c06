//! Where a data set's files lie.

pub mod directory;
pub mod lock;

pub use self::{directory::OutputDirectory, lock::ReadLock};
