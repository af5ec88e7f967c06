//! Takes a bundle apart, so that it can be read table by table: what says where its columns are is large, and most of it is
//! about other tables.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use parquet::{
    errors::Result as ParquetResult,
    file::{
        FOOTER_SIZE,
        metadata::{
            FileMetaData, ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetMetaDataWriter,
            ParquetStatisticsPolicy, RowGroupMetaData,
        },
    },
    schema::types::{SchemaDescriptor, Type},
};

use super::{builder, footer};
use crate::{
    caught::caught,
    dataset::{
        column::Table as _,
        error::{DataSetError, Result},
        store::{Content, Object, StoredFile, TableEnd, TableSchema},
        tables::{OF_ROLLUPS, Runs},
    },
};

/// Larger bundles are read where they are, of which each request has a part.
const MOST_BYTES: u64 = 1 << 20;

/// What a file is read from: of a bundle that is kept near, a file with its table alone, whose schema is known. The bundle is
/// checked when it is taken apart.
///
/// # Errors
/// If it cannot be opened, or is not what it must be.
pub(super) fn opened(stored: &StoredFile) -> Result<(Object, Option<Arc<TableSchema>>)> {
    let (Some(near), Some(table)) = (stored.near(), stored.table()) else { return Ok((stored.open()?, None)) };
    if let Some((object, schema)) = near.table(table) {
        return Ok((object, Some(schema)));
    }
    let object = stored.open()?;
    if near.is_tried() || object.size_bytes() > MOST_BYTES {
        return Ok((object, None));
    }
    let whole = object.clone().read_all().map_err(|cause| DataSetError::Io { path: stored.path(), cause })?;
    let object = Object::new(bytes::Bytes::from(whole.clone()), whole.len() as u64);
    let metadata = ParquetMetaDataReader::new().with_metadata_options(Some(needed())).parse_and_finish(&object);
    let metadata = metadata.map_err(|cause| DataSetError::Parquet { path: stored.path(), cause })?;
    builder::check(stored, &object, &metadata)?;
    near.keep(|| caught(|| apart(whole, &metadata))?.ok().flatten());
    Ok(near.table(table).map_or((object, None), |(object, schema)| (object, Some(schema))))
}

/// What is needed of what a file says of its columns. The rest takes memory of its own for each of them.
pub(super) fn needed() -> ParquetMetaDataOptions {
    ParquetMetaDataOptions::new()
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

/// Schemas of tables, each with its field in a bundle.
static SCHEMAS: Mutex<Vec<(Arc<Type>, Arc<TableSchema>)>> = Mutex::new(Vec::new());
/// Of ten tables, in the versions that are read.
const MOST_SCHEMAS: usize = 64;

/// The schema of a file with this field alone. Making one takes longer than finding it.
fn of_field(name: &str, field: &Arc<Type>) -> ParquetResult<Arc<TableSchema>> {
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = schemas.iter().find(|(known, schema)| known == field && schema.parquet.name() == name);
    if let Some((_, schema)) = known {
        return Ok(Arc::clone(schema));
    }
    let root = Type::group_type_builder(name).with_fields(vec![Arc::clone(field)]).build()?;
    let parquet = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    let schema = Arc::new(TableSchema { parquet, arrow: OnceLock::new() });
    if schemas.len() >= MOST_SCHEMAS {
        schemas.clear();
    }
    schemas.push((Arc::clone(field), Arc::clone(&schema)));
    Ok(schema)
}

/// The columns of a bundle, with an end for each table; `None` if it is not as bundles are.
fn apart(mut bytes: Vec<u8>, metadata: &ParquetMetaData) -> ParquetResult<Option<Content>> {
    let [group] = metadata.row_groups() else { return Ok(None) };
    let Some(columns) = columns_end(&bytes) else { return Ok(None) };
    bytes.truncate(columns);
    let mut tables = Vec::new();
    for table in [Runs::NAME].into_iter().chain(OF_ROLLUPS) {
        if let Some((of_table, schema)) = of_table(metadata.file_metadata(), group, table)? {
            let start = bytes.len() as u64;
            ParquetMetaDataWriter::new(&mut bytes, &of_table).finish()?;
            tables.push(TableEnd { table, schema, end: start..bytes.len() as u64 });
        }
    }
    Ok(Some(Content { bytes, tables, windows: footer::windows(group, Some(Runs::NAME)) }))
}

/// Where the columns of a file end: before what its last bytes give the length of.
fn columns_end(bytes: &[u8]) -> Option<usize> {
    let footer = bytes.len().checked_sub(FOOTER_SIZE)?;
    let length: [u8; 4] = bytes.get(footer..)?.get(..4)?.try_into().ok()?;
    footer.checked_sub(usize::try_from(u32::from_le_bytes(length)).ok()?)
}

/// What a file with one table of the bundle says of itself; `None` if the bundle has no such table.
fn of_table(
    file: &FileMetaData,
    group: &RowGroupMetaData,
    table: &'static str,
) -> ParquetResult<Option<(ParquetMetaData, Arc<TableSchema>)>> {
    let Some(field) = file.schema().get_fields().iter().find(|field| field.name() == table) else { return Ok(None) };
    let schema = of_field(file.schema().name(), field)?;
    let is_of_table = |names: &[String]| names.first().is_some_and(|name| name == table);
    let columns = group.columns().iter().filter(|column| is_of_table(column.column_path().parts()));
    let group = RowGroupMetaData::builder(Arc::clone(&schema.parquet))
        .set_num_rows(group.num_rows())
        .set_total_byte_size(group.total_byte_size())
        .set_column_metadata(columns.cloned().collect())
        .build()?;
    let created_by = file.created_by().map(ToOwned::to_owned);
    let pairs = file.key_value_metadata().cloned();
    let file = FileMetaData::new(file.version(), file.num_rows(), created_by, pairs, Arc::clone(&schema.parquet), None);
    Ok(Some((ParquetMetaData::new(file, vec![group]), schema)))
}
