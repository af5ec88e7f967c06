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

use crate::{
    dataset::{
        column::{Get, Table},
        schema::{SCHEMA_VERSION, key},
    },
    events::RunInfo,
    output::{OutputError, Result},
};

/// Fixed, so that equal runs of different builds give equal files.
const CREATED_BY: &str = "joular-bpf";
/// Level 9 gains 3 % for several times the CPU time.
const ZSTD_LEVEL: i32 = 3;

/// Ids that repeat where a file holds minutes.
const REPEATED_IDS: [&str; 2] = ["stack_id", "branch_id"];
/// Names of a large program; beyond, a column is written without a dictionary.
const MERGED_DICTIONARY_BYTES: usize = 4 << 20;

/// One whole file.
pub fn file<T: Table>(batch: &RecordBatch, run: &RunInfo) -> Result<Vec<u8>> {
    encode::<T>(batch, run).map_err(OutputError::encode(T::NAME))
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
    let metadata = metadata.into_iter().map(|(key, value)| (key.to_owned(), value));
    // Files hold seconds: one row group, whose own minima and maxima are
    // enough to skip it.
    let builder = common(metadata)?.set_max_row_group_row_count(Some(usize::MAX));
    Ok(quantities::<T>().fold(builder, |builder, name| quantity(builder, ColumnPath::from(name))).build())
}

/// Of files that hold more than seconds, and with it every stack many times over.
pub fn merged(
    table: &str,
    metadata: Vec<(String, String)>,
    row_group_rows: usize,
) -> Result<WriterProperties, ParquetError> {
    let builder = common(metadata.into_iter())?
        .set_max_row_group_row_count(Some(row_group_rows))
        .set_dictionary_page_size_limit(MERGED_DICTIONARY_BYTES);
    let names =
        crate::dataset::schema::quantities(table).into_iter().filter(|name| !REPEATED_IDS.contains(&name.as_str()));
    Ok(names.fold(builder, |builder, name| quantity(builder, ColumnPath::from(name))).build())
}

fn common(metadata: impl Iterator<Item = (String, String)>) -> Result<WriterPropertiesBuilder, ParquetError> {
    let pairs = metadata.map(|(key, value)| KeyValue::new(key, value)).collect();
    Ok(WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        // Page indexes would only make a file larger.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(pairs)))
}

/// Columns of a table with numbers that hardly repeat.
pub fn quantities<T: Table>() -> impl Iterator<Item = String> {
    let columns = T::columns().into_iter().filter(|column| matches!(column.get, Get::Quantity(_)));
    columns.map(|column| column.name.into_owned())
}

/// Amounts of work and energy. They are many, so a dictionary of them would be as
/// large as they are; but methods of one call path have the same ones, which
/// compression finds when they stand there as they are. On a realistic hour
/// `methods` is a third smaller than with differences (`DELTA_BINARY_PACKED`).
fn quantity(builder: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder {
    builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, Encoding::PLAIN)
}
