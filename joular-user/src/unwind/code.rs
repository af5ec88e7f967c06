//! Defines what tables are made from: files, and code that run-time systems write for themselves.

use crate::{
    runtimes::{CodeId, OwnCode},
    symbols::files::{Copies, FileKey},
};

/// Code that has one table, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableKey {
    File(FileKey),
    RunTime(CodeId),
}

impl TableKey {
    /// How much there is to read, as far as that is known.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::File(file) => file.bytes(),
            Self::RunTime(_) => 0,
        }
    }

    /// Of the file system that it is on.
    pub const fn device(self) -> Option<u64> {
        match self {
            Self::File(file) => Some(file.device()),
            Self::RunTime(_) => None,
        }
    }
}

/// The code itself.
#[derive(Clone, Debug)]
pub enum Code {
    File(Copies),
    RunTime(OwnCode),
}
