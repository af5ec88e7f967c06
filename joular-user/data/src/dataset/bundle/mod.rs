//! Keeps all tables of a run in one file, for places that many hosts ship to:
//! `raw/date=DATE/hour=HH/group=GG/host=HOST/RUN.parquet`.
//!
//! A bundle has one row. Each of its columns is a table: a list of structs, whose members are the table's columns. The child
//! of the list is the table as a file of its own has it, so all that reads tables reads bundles ([`mod@read`] says where they
//! are). A run that is one file is there or is not, and costs one request each to write and to read. Its key begins with what
//! is asked for: date and hour (UTC) of its start, and the group of its host ([`mod@groups`]).
//!
//! Only rollups are bundled, and only those that are short and small ([`fits`]): others stay files of one table each.

mod earlier;
mod groups;
mod place;
mod read;
#[cfg(test)]
mod tests;
mod tier;
mod write;

pub use self::groups::{FLEET, Groups, Init, init};
pub(crate) use self::{
    earlier::Earlier,
    place::{BundlePlace, place_of},
    read::{found, has_any},
    tier::TierMark,
    write::{encode, fits},
};

/// The folder of all bundles.
pub(crate) const BUNDLES: &str = "raw";

/// What a bundle says of its table, in the metadata of the file.
pub(crate) const TABLE: &str = "bundle";
