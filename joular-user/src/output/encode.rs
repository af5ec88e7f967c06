//! Rows become the bytes of a Parquet file.

use arrow::record_batch::RecordBatch;
use parquet::{
    arrow::{ArrowWriter, arrow_writer::ArrowWriterOptions},
    basic::{Compression, Encoding, ZstdLevel},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
    },
    schema::types::ColumnPath,
};

use super::{
    column::{Get, Table},
    error::{OutputError, Result},
    schema::{SCHEMA_VERSION, key},
};
use crate::events::RunInfo;

/// Fixed, so that equal runs of different builds give equal files.
const CREATED_BY: &str = "joular-bpf";
/// Level 9 gains 3 % for several times the CPU time.
const ZSTD_LEVEL: i32 = 3;

/// One whole file.
pub fn file<T: Table>(batch: &RecordBatch, run: &RunInfo) -> Result<Vec<u8>> {
    encode::<T>(batch, run).map_err(|source| OutputError::Encode { table: T::NAME, source })
}

fn encode<T: Table>(batch: &RecordBatch, run: &RunInfo) -> Result<Vec<u8>, ParquetError> {
    let options = ArrowWriterOptions::new().with_properties(properties::<T>(run)?);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options)?;
    writer.write(batch)?;
    writer.into_inner()
}

fn properties<T: Table>(run: &RunInfo) -> Result<WriterProperties, ParquetError> {
    let metadata = [
        (key::SCHEMA_VERSION, SCHEMA_VERSION.to_string()),
        (key::TABLE, T::NAME.to_owned()),
        (key::RUN_ID, run.run_id.clone()),
        (key::HOST, run.host.clone()),
    ];
    let builder = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        // Files hold seconds: one row group, whose own minima and maxima are
        // enough to skip it. Page indexes would only make it larger.
        .set_max_row_group_row_count(Some(usize::MAX))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(
            metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect(),
        ));
    Ok(T::columns()
        .iter()
        .fold(builder, |builder, column| match column.get {
            Get::Quantity(_) => quantity(builder, ColumnPath::from(column.name.as_ref())),
            _ => builder,
        })
        .build())
}

/// Numbers that hardly repeat: a dictionary would hold each of them once and
/// an index beside it, which makes a data set a third larger.
fn quantity(builder: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder {
    builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
}
