//! Opens a file of a data set: its footer is read and checked before anything else in it is used.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    },
    errors::ParquetError,
    file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
};

use super::{apart, nested};
use crate::{
    caught::caught,
    dataset::{
        column::Table as _,
        error::{DataSetError, Result},
        schema::{self, Kinds, SCHEMA_VERSION, key},
        store::{Object, StoredFile, TableSchema},
        tables::{FrameTable, Runs, Stacks, runs},
    },
};

/// Rows of one file, or items of the lists in them: a run writes a file when a table
/// has half a million.
const MAX_ROWS: i64 = 4_000_000;
/// Bytes of a program's version.
const MAX_VERSION: usize = 100;

/// What reads a file.
pub(super) type Builder = ParquetRecordBatchReaderBuilder<Object>;

/// Opens a file of a schema version that is read, and reads its footer.
pub(super) fn builder(stored: &StoredFile) -> Result<(Builder, Object)> {
    let (file, known) = apart::opened(stored)?;
    let failed = |cause: ParquetError| match file.failure() {
        Some(cause) => DataSetError::Io { path: stored.path(), cause },
        None => DataSetError::Parquet { path: stored.path(), cause },
    };
    let mut options = apart::needed();
    if let Some(known) = &known {
        options.set_schema(Arc::clone(&known.parquet));
    }
    let metadata = ParquetMetaDataReader::new().with_metadata_options(Some(options)).parse_and_finish(&file);
    let metadata = Arc::new(metadata.map_err(failed)?);
    check(stored, &file, &metadata)?;
    let wanted = match &known {
        Some(known) => known_dictionaries(known, &metadata),
        None => as_dictionaries(&metadata, stored.table().is_some()),
    };
    let options = ArrowReaderOptions::new().with_schema(wanted.map_err(failed)?);
    let metadata = ArrowReaderMetadata::try_new(metadata, options).map_err(failed)?;
    Ok((Builder::new_with_metadata(file.clone(), metadata), file))
}

/// The schema of a table of a bundle: made for the first one, and without what a file says of itself.
fn known_dictionaries(known: &TableSchema, metadata: &Arc<ParquetMetaData>) -> Result<SchemaRef, ParquetError> {
    if let Some(made) = known.arrow.get() {
        return Ok(Arc::clone(made));
    }
    let fields = as_dictionaries(metadata, true)?.fields().clone();
    Ok(Arc::clone(known.arrow.get_or_init(|| Arc::new(Schema::new(fields)))))
}

/// The file's schema, with names as dictionaries, as they lie in the file: a text is then made
/// once, not once per row.
fn as_dictionaries(metadata: &Arc<ParquetMetaData>, is_bundle: bool) -> Result<SchemaRef, ParquetError> {
    let of_file = ArrowReaderMetadata::try_new(Arc::clone(metadata), ArrowReaderOptions::new())?;
    let fields = of_file.schema().fields();
    let fields = if is_bundle {
        fields.iter().map(|field| with_items(field, |columns| names_of(field.name(), columns))).collect()
    } else {
        names_of(&value(metadata, key::TABLE).unwrap_or_default(), fields)
    };
    Ok(Arc::new(Schema::new_with_metadata(fields, of_file.schema().metadata().clone())))
}

/// The columns of a table, with names as dictionaries.
fn names_of(table: &str, columns: &Fields) -> Fields {
    let names = Kinds::of_table(table).names;
    let frames = |fields: &Fields| {
        let names = Kinds::of::<FrameTable>().names;
        fields.iter().map(|field| as_dictionary(field, &names)).collect()
    };
    let column = |field: &FieldRef| match field.data_type() {
        DataType::List(_) if table == Stacks::NAME => with_items(field, frames),
        _ => as_dictionary(field, &names),
    };
    columns.iter().map(column).collect()
}

/// A column of lists of structs, with what `change` makes of their members; other columns as they are.
fn with_items(field: &FieldRef, change: impl FnOnce(&Fields) -> Fields) -> FieldRef {
    let DataType::List(item) = field.data_type() else { return Arc::clone(field) };
    let DataType::Struct(fields) = item.data_type() else { return Arc::clone(field) };
    let item = item.as_ref().clone().with_data_type(DataType::Struct(change(fields)));
    Arc::new(field.as_ref().clone().with_data_type(DataType::List(Arc::new(item))))
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
pub(super) fn check(file: &StoredFile, object: &Object, metadata: &ParquetMetaData) -> Result<()> {
    if !has_sound_places(metadata) {
        return Err(DataSetError::Damaged { path: file.path(), problem: "a column is at a negative place".into() });
    }
    let rows = metadata.file_metadata().num_rows();
    if rows != rows_of_groups(metadata) {
        let problem = "its number of rows is not that of its parts".into();
        return Err(DataSetError::Damaged { path: file.path(), problem });
    }
    if file.table().is_some() && rows != 1 {
        let problem = format!("it has {rows} rows, where a file with all tables of a run has one");
        return Err(DataSetError::Damaged { path: file.path(), problem });
    }
    let values = most_values(metadata);
    if rows.max(values) > MAX_ROWS {
        return Err(DataSetError::TooManyRows { path: file.path(), rows: rows.max(values), most: MAX_ROWS });
    }
    let version = version(metadata);
    if version.is_some_and(|version| schema::read_versions(SCHEMA_VERSION).contains(&version)) {
        return Ok(());
    }
    let is_newer = version.is_some_and(|version| version > SCHEMA_VERSION);
    Err(DataSetError::Version {
        path: file.path(),
        found: value(metadata, key::SCHEMA_VERSION).unwrap_or_else(|| "none".to_owned()),
        written_by: match (value(metadata, key::TABLE).as_deref(), file.table()) {
            (Some(Runs::NAME), _) | (_, Some(_)) => program(object, file.table().is_some()),
            _ => None,
        },
        known: schema::known_versions(),
        advice: if is_newer { "a newer joular-bpf" } else { "the joular-bpf that wrote it" },
    })
}

/// The schema version of a file, if it says one.
pub(crate) fn version(metadata: &ParquetMetaData) -> Option<i64> {
    value(metadata, key::SCHEMA_VERSION)?.parse().ok()
}

/// The version of joular-bpf that wrote a run's row, of whatever schema, if the row still says so.
fn program(object: &Object, is_bundle: bool) -> Option<String> {
    let read = || {
        let builder = Builder::try_new(object.clone()).ok()?;
        let name = runs::VERSION.name();
        let path = if is_bundle { nested::path(Runs::NAME, &name) } else { name.to_string() };
        let mask = ProjectionMask::columns(builder.parquet_schema(), [path.as_str()]);
        let batch = builder.with_projection(mask).with_batch_size(1).build().ok()?.next()?.ok()?;
        let batch = if is_bundle { nested::rows(&batch, Runs::NAME).ok()? } else { batch };
        let versions = batch.column_by_name(&name)?.as_string_opt::<i32>()?.clone();
        versions.iter().next()?.map(ToOwned::to_owned)
    };
    caught(read).flatten().filter(|version| version.len() < MAX_VERSION)
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
