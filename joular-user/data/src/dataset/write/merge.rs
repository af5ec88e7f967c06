//! Merges files of a table into one that holds the same rows.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ArrowWriter;

use super::encode;
use crate::{
    dataset::store::Store,
    output::{OutputError, Result},
};

/// Rows of a row group: what a reader decodes or skips as a whole. Smaller ones
/// are larger on disk, by 3 % at this size.
const ROW_GROUP_ROWS: usize = 1 << 18;

/// A file that is being put together in memory, compressed as far as it is whole.
pub struct MergedFile {
    table: &'static str,
    writer: ArrowWriter<Vec<u8>>,
}

impl MergedFile {
    /// `metadata` is that of the files that are merged.
    ///
    /// # Errors
    /// If the schema cannot be written.
    pub fn start(table: &'static str, schema: SchemaRef, metadata: Vec<(String, String)>) -> Result<Self> {
        let failed = OutputError::encode(table);
        let options = encode::merged(table, metadata, ROW_GROUP_ROWS).map_err(&failed)?;
        let writer = ArrowWriter::try_new_with_options(Vec::new(), schema, options).map_err(failed)?;
        Ok(Self { table, writer })
    }

    /// Appends rows.
    ///
    /// # Errors
    /// If they are not of this schema.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.writer.write(batch).map_err(OutputError::encode(self.table))
    }

    /// Its content, when it is whole.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        self.writer.into_inner().map_err(OutputError::encode(self.table))
    }

    /// Makes it a file of the data set.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn publish(self, store: &dyn Store, folder: &Path, name: &str) -> Result<()> {
        store.publish(folder, name, &self.into_bytes()?)
    }
}
