//! Turns rows into the bytes of a Parquet file.
//!
//! Files carry no Arrow schema and no field metadata. Engines then read them by the Parquet types
//! alone, which all of them know (Sail refuses Arrow's dictionaries), and a file of seconds is a
//! quarter smaller.

use arrow_array::RecordBatch;
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
        column::{Column, Table, kind},
        schema::{self, Kinds, SCHEMA_VERSION, key},
        tables::{Runs, stacks},
    },
    events::RunInfo,
    output::{OutputError, Result},
};

/// Key and value pairs of a file.
pub(crate) type Metadata = Vec<(String, String)>;

/// Fixed, so that equal runs of different builds give equal files.
const CREATED_BY: &str = "joular-bpf";
/// Low, because while a program is profiled, the CPU is for that program.
const ZSTD_LEVEL: i32 = 6;
/// For files that are written once and read often.
const MERGED_ZSTD_LEVEL: i32 = 12;

/// Ids that repeat in a file of minutes.
const REPEATED_IDS: [Column<kind::Int>; 2] = [stacks::STACK_ID, stacks::BRANCH_ID];
/// Enough for the names of a large program. Beyond it, a column is written without a dictionary.
const MERGED_DICTIONARY_BYTES: usize = 4 << 20;

/// One whole file.
pub fn file<T: Table>(batch: &RecordBatch, run: &RunInfo) -> Result<Vec<u8>> {
    let encoded = short_options(metadata::<T>(run), &Kinds::of::<T>()).and_then(|options| encode(batch, options));
    encoded.map_err(OutputError::encode(T::NAME))
}

/// A whole file that holds quarters of hours.
pub(crate) fn long_file<T: Table>(batch: &RecordBatch, run: &RunInfo) -> Result<Vec<u8>> {
    let encoded =
        merged_kinds(&Kinds::of::<T>(), metadata::<T>(run), usize::MAX).and_then(|options| encode(batch, options));
    encoded.map_err(OutputError::encode(T::NAME))
}

fn encode(batch: &RecordBatch, options: ArrowWriterOptions) -> Result<Vec<u8>, ParquetError> {
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options)?;
    writer.write(batch)?;
    writer.into_inner()
}

fn options(properties: WriterProperties) -> ArrowWriterOptions {
    ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true)
}

fn metadata<T: Table>(run: &RunInfo) -> Metadata {
    let mut metadata = vec![
        (key::SCHEMA_VERSION.to_owned(), SCHEMA_VERSION.to_string()),
        (key::TABLE.to_owned(), T::NAME.to_owned()),
        (key::RUN_ID.to_owned(), run.run_id.clone()),
        (key::HOST.to_owned(), run.host.raw().to_owned()),
    ];
    if T::NAME == Runs::NAME {
        // Once a run: in every file they would be a tenth of a data set.
        metadata.push((key::COMMENTS.to_owned(), schema::comments()));
    }
    metadata
}

fn short_options(metadata: Metadata, kinds: &Kinds) -> Result<ArrowWriterOptions, ParquetError> {
    // Files hold seconds: one row group, whose own minima and maxima are
    // enough to skip it.
    let builder = common(metadata, ZSTD_LEVEL)?.set_max_row_group_row_count(Some(usize::MAX));
    let names = kinds.quantities.iter().map(|name| ColumnPath::from(name.as_str()));
    Ok(options(names.fold(builder, quantity).build()))
}

/// Properties of files that hold more than seconds, and with it every stack many times.
pub fn merged(table: &str, metadata: Metadata, row_group_rows: usize) -> Result<ArrowWriterOptions, ParquetError> {
    merged_kinds(&Kinds::of_table(table), metadata, row_group_rows)
}

fn merged_kinds(kinds: &Kinds, metadata: Metadata, row_group_rows: usize) -> Result<ArrowWriterOptions, ParquetError> {
    let builder = common(metadata, MERGED_ZSTD_LEVEL)?
        .set_max_row_group_row_count(Some(row_group_rows))
        .set_dictionary_page_size_limit(MERGED_DICTIONARY_BYTES);
    let names = merged_quantities(kinds).into_iter().map(ColumnPath::from);
    Ok(options(names.fold(builder, quantity).build()))
}

/// Columns with numbers that hardly repeat, also in a file of minutes.
pub(crate) fn merged_quantities(kinds: &Kinds) -> Vec<&str> {
    let names = kinds.quantities.iter().map(String::as_str);
    names.filter(|name| !REPEATED_IDS.iter().any(|id| id.name() == *name)).collect()
}

/// How the columns of a table are encoded in a file that has all tables of a run.
#[derive(Debug, Default)]
pub(crate) struct NestedTable {
    /// Those with numbers that hardly repeat.
    pub(crate) quantities: Vec<ColumnPath>,
    /// Those of a table in which little can repeat.
    pub(crate) short: Vec<ColumnPath>,
    /// Those whose least and greatest value is to be known.
    pub(crate) ordered: Vec<ColumnPath>,
}

/// A whole file of one row, whose columns are the tables of a run.
pub(crate) fn nested(row: &RecordBatch, metadata: Metadata, tables: &[NestedTable]) -> Result<Vec<u8>, ParquetError> {
    // A third of a bundle would be minima and maxima, which say nothing of its only row.
    let builder = common(metadata, MERGED_ZSTD_LEVEL)?
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_page_size_limit(MERGED_DICTIONARY_BYTES);
    let of = |paths: fn(&NestedTable) -> &Vec<ColumnPath>| tables.iter().flat_map(paths).cloned();
    let builder = of(|table| &table.quantities).fold(builder, quantity);
    let builder =
        of(|table| &table.short).fold(builder, |builder, path| builder.set_column_dictionary_enabled(path, false));
    let builder = of(|table| &table.ordered)
        .fold(builder, |builder, path| builder.set_column_statistics_enabled(path, EnabledStatistics::Chunk));
    encode(row, options(builder.build()))
}

fn common(metadata: Metadata, level: i32) -> Result<WriterPropertiesBuilder, ParquetError> {
    let pairs = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
    Ok(WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(level)?))
        // Lists as the Parquet format names them: PyIceberg takes no others.
        .set_coerce_types(true)
        // Page indexes would only make a file larger.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(pairs)))
}

/// Encodes amounts of work and energy. They are so many that a dictionary would be as large as they
/// are. But methods of one call path have equal amounts, which compression finds when they are
/// written plainly. On a realistic hour `methods` is a third smaller than with differences
/// (`DELTA_BINARY_PACKED`).
fn quantity(builder: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder {
    builder
        .set_column_dictionary_enabled(path.clone(), false)
        .set_column_encoding(path.clone(), Encoding::PLAIN)
        // Nobody skips rows by their amounts, and a file of seconds has a column's footer each.
        .set_column_statistics_enabled(path, EnabledStatistics::None)
}
