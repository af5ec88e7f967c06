//! Writes, reads and checks the data set: Parquet files, a folder per table.
//!
//! A column is defined once ([`mod@column`], [`tables`]). What is written ([`mod@write`]) and what
//! is read ([`read`]) follow from that definition. [`store`] says where files lie. All tables of a run
//! can be in one file ([`bundle`]). A data set can be checked ([`audit`]), divided again under another policy
//! ([`reattribute`]), its many files made few ([`compact`]), and old runs removed ([`expire`]). [`clickhouse`] is how a
//! database has it.

pub(crate) mod align;
pub mod audit;
pub(crate) mod buffer;
pub mod bundle;
pub mod clickhouse;
pub mod column;
pub mod compact;
pub(crate) mod erasing;
pub mod error;
pub mod expire;
pub mod forget;
pub(crate) mod layout;
pub(crate) mod method_sums;
pub mod read;
pub mod reattribute;
pub(crate) mod redacting;
pub mod schema;
pub mod secrets;
pub mod store;
pub mod tables;
pub mod write;

pub use self::{
    error::DataSetError,
    store::OutputDirectory,
    write::{DEFAULT_FLUSH_NS, ParquetOutput},
};

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod fixture_collections;
#[cfg(test)]
pub(crate) mod fixture_io;
#[cfg(test)]
pub(crate) mod fixture_store;
#[cfg(test)]
pub(crate) mod tampering;
#[cfg(test)]
mod tests;
