//! Opens a file of a data set: its footer is read and checked before anything else in it is used.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    file::metadata::{ParquetMetaData, RowGroupMetaData},
};

use crate::dataset::{
    column::Table as _,
    error::{DataSetError, Result},
    schema::{Kinds, SCHEMA_VERSION, key},
    store::{Object, StoredFile},
    tables::{FrameTable, Stacks},
};

/// Rows of one file, or items of the lists in them: a run writes a file when a table
/// has half a million.
const MAX_ROWS: i64 = 4_000_000;

/// Opens a file of this program's schema version, and reads its footer.
pub(crate) fn builder(stored: &StoredFile) -> Result<ParquetRecordBatchReaderBuilder<Object>> {
    let failed = |cause| DataSetError::Parquet { path: stored.path(), cause };
    let file = stored.open()?;
    let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(failed)?;
    check(stored, metadata.metadata())?;
    let wanted = as_dictionaries(&metadata);
    let options = ArrowReaderOptions::new().with_schema(wanted);
    let metadata = ArrowReaderMetadata::try_new(metadata.metadata().clone(), options).map_err(failed)?;
    Ok(ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata))
}

/// The file's schema, with names as dictionaries, as they lie in the file: a text is then made
/// once, not once per row.
fn as_dictionaries(metadata: &ArrowReaderMetadata) -> SchemaRef {
    let table = value(metadata.metadata(), key::TABLE).unwrap_or_default();
    let names = Kinds::of_table(&table).names;
    let fields = metadata.schema().fields().iter().map(|field| match field.data_type() {
        DataType::List(item) if table == Stacks::NAME => match item.data_type() {
            DataType::Struct(fields) => {
                let names = Kinds::of::<FrameTable>().names;
                let fields = fields.iter().map(|field| as_dictionary(field, &names)).collect();
                let item = item.as_ref().clone().with_data_type(DataType::Struct(fields));
                Arc::new(field.as_ref().clone().with_data_type(DataType::List(Arc::new(item))))
            }
            _ => field.clone(),
        },
        _ => as_dictionary(field, &names),
    });
    let fields: Fields = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, metadata.schema().metadata().clone()))
}

fn as_dictionary(field: &FieldRef, names: &[String]) -> FieldRef {
    if field.data_type() != &DataType::Utf8 || !names.contains(field.name()) {
        return field.clone();
    }
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Arc::new(field.as_ref().clone().with_data_type(dictionary))
}

fn value(metadata: &ParquetMetaData, key: &str) -> Option<String> {
    let pairs = metadata.file_metadata().key_value_metadata();
    pairs.into_iter().flatten().find(|pair| pair.key == key).and_then(|pair| pair.value.clone())
}

/// Checks what a file must be before anything else in it is used.
fn check(file: &StoredFile, metadata: &ParquetMetaData) -> Result<()> {
    if !has_sound_places(metadata) {
        return Err(DataSetError::Damaged { path: file.path(), problem: "a column is at a negative place".into() });
    }
    let rows = metadata.file_metadata().num_rows();
    if rows != rows_of_groups(metadata) {
        let problem = "its number of rows is not that of its parts".into();
        return Err(DataSetError::Damaged { path: file.path(), problem });
    }
    let values = most_values(metadata);
    if rows.max(values) > MAX_ROWS {
        return Err(DataSetError::TooManyRows { path: file.path(), rows: rows.max(values), most: MAX_ROWS });
    }
    let found = value(metadata, key::SCHEMA_VERSION).unwrap_or_else(|| "none".to_owned());
    let version: Option<i64> = found.parse().ok();
    if version == Some(SCHEMA_VERSION) {
        return Ok(());
    }
    let is_newer = version.is_some_and(|version| version > SCHEMA_VERSION);
    let advice = if is_newer { "a newer joular-bpf" } else { "the joular-bpf that wrote it" };
    Err(DataSetError::Version { path: file.path(), found, known: SCHEMA_VERSION, advice })
}

/// The number that the reader relies on; the file's own number is only a claim. Negative ones count
/// as none.
fn rows_of_groups(metadata: &ParquetMetaData) -> i64 {
    metadata.row_groups().iter().fold(0, |sum, group| sum.saturating_add(group.num_rows().max(0)))
}

/// Values of the longest column, because a row may have a list of any length.
fn most_values(metadata: &ParquetMetaData) -> i64 {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let values = |column: usize| {
        let of_group = |group: &RowGroupMetaData| group.columns().get(column).map_or(0, |column| column.num_values());
        metadata.row_groups().iter().fold(0_i64, |sum, group| sum.saturating_add(of_group(group)))
    };
    (0..columns).map(values).max().unwrap_or(0)
}

/// Whether the places of columns are sound: the library trusts them, and panics at negative ones.
fn has_sound_places(metadata: &ParquetMetaData) -> bool {
    metadata.row_groups().iter().flat_map(|group| group.columns()).all(|column| {
        let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
        start >= 0 && column.compressed_size() >= 0
    })
}
