//! Reads a table that is a column of a bundle ([`crate::dataset::bundle`]): the child of the column's list is the table as a
//! file of its own has it. What is asked with `None` as the table is of such a file.

use std::sync::Arc;

use arrow_array::{Array as _, RecordBatch, cast::AsArray as _};
use arrow_schema::{DataType, Fields, Schema, SchemaRef};
use parquet::{arrow::ProjectionMask, schema::types::SchemaDescriptor};

/// Names of a leaf before that of its column: `TABLE.list.element.COLUMN`.
const DEPTH: usize = 3;

/// The name of a column of a table as the file has it.
pub(super) fn path(table: &str, column: &str) -> String {
    format!("{table}.list.element.{column}")
}

/// The names of a leaf within a table; `None`: it is of another one.
pub(super) fn within<'a>(names: &'a [String], table: Option<&str>) -> Option<&'a [String]> {
    match table {
        None => Some(names),
        Some(table) => names.get(DEPTH..).filter(|_| names.first().is_some_and(|name| name == table)),
    }
}

/// The leaves of a table that are wanted, by their places and their names within it. Of a bundle it has one at least, which
/// says how many rows there are.
pub(super) fn mask(
    schema: &SchemaDescriptor,
    table: Option<&str>,
    is_wanted: impl Fn(usize, &[String]) -> bool,
) -> ProjectionMask {
    let leaves = || 0..schema.num_columns();
    let is_of_table = |leaf: &usize| within(schema.column(*leaf).path().parts(), table).is_some();
    let is_asked =
        |leaf: &usize| within(schema.column(*leaf).path().parts(), table).is_some_and(|names| is_wanted(*leaf, names));
    let mut wanted: Vec<usize> = leaves().filter(is_asked).collect();
    if wanted.is_empty() && table.is_some() {
        wanted.extend(leaves().find(is_of_table));
    }
    ProjectionMask::leaves(schema, wanted)
}

/// The columns of a table.
pub(super) fn schema(file: &SchemaRef, table: Option<&str>) -> SchemaRef {
    let Some(table) = table else { return Arc::clone(file) };
    let fields = file.field_with_name(table).ok().and_then(|field| columns(field.data_type()));
    Arc::new(Schema::new(fields.cloned().unwrap_or_default()))
}

/// The columns of a table in a bundle, by the type of the bundle's column.
pub(super) fn columns(of_bundle: &DataType) -> Option<&Fields> {
    match of_bundle {
        DataType::List(item) => match item.data_type() {
            DataType::Struct(fields) => Some(fields),
            _ => None,
        },
        _ => None,
    }
}

/// The rows of a table in the rows of a bundle.
///
/// # Errors
/// If its column is missing, is no table, or is null.
pub(super) fn rows(batch: &RecordBatch, table: &str) -> Result<RecordBatch, &'static str> {
    let lists = batch.column_by_name(table).ok_or("is missing")?;
    let lists = lists.as_list_opt::<i32>().ok_or("is not a list of rows")?;
    let offsets = lists.value_offsets();
    let place = |offset: Option<&i32>| offset.and_then(|offset| usize::try_from(*offset).ok());
    let (Some(first), Some(last)) = (place(offsets.first()), place(offsets.last())) else {
        return Err("is not a list of rows");
    };
    let values = lists.values();
    if lists.null_count() > 0 || last > values.len() {
        return Err("is null where it must not be");
    }
    let values = values.slice(first, last.saturating_sub(first));
    let rows = values.as_struct_opt().ok_or("is not a list of rows")?;
    if rows.null_count() > 0 {
        return Err("has a row that is null");
    }
    Ok(RecordBatch::from(rows))
}
