//! Gives rows the columns of another schema: those that it does not have are left out, and those that are missing are null, or 0,
//! or empty.

use std::{path::Path, sync::Arc};

use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, cast::AsArray as _, new_empty_array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema};

use super::error::{DataSetError, Result};

/// Rows as `schema` has them.
///
/// # Errors
/// If a column is of another type, other than in what lists call their items.
pub(crate) fn aligned(path: &Path, batch: &RecordBatch, schema: &Arc<Schema>) -> Result<RecordBatch> {
    let column = |field: &FieldRef| match batch.column_by_name(field.name()) {
        Some(column) => to(path, field.name(), column, field.data_type()),
        None => Ok(missing(field, batch.num_rows())),
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(|cause| arrow(path, cause))
}

fn to(path: &Path, name: &str, array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    match wanted {
        DataType::List(item) => {
            let Some(found) = array.as_list_opt::<i32>() else { return Err(of_other_type(path, name)) };
            let values = to(path, name, found.values(), item.data_type())?;
            let made = ListArray::try_new(Arc::clone(item), found.offsets().clone(), values, found.nulls().cloned());
            Ok(Arc::new(made.map_err(|cause| arrow(path, cause))?))
        }
        DataType::Struct(fields) => {
            let Some(found) = array.as_struct_opt() else { return Err(of_other_type(path, name)) };
            let column = |field: &FieldRef| match found.column_by_name(field.name()) {
                Some(column) => to(path, &format!("{name}.{}", field.name()), column, field.data_type()),
                None => Ok(missing(field, found.len())),
            };
            let columns = fields.iter().map(column).collect::<Result<Vec<_>>>()?;
            let made = StructArray::try_new_with_length(fields.clone(), columns, found.nulls().cloned(), found.len());
            Ok(Arc::new(made.map_err(|cause| arrow(path, cause))?))
        }
        _ => Err(of_other_type(path, name)),
    }
}

/// What stands for a column that a file lacks.
fn missing(field: &Field, rows: usize) -> ArrayRef {
    match field.data_type() {
        of if field.is_nullable() => new_null_array(of, rows),
        DataType::Int64 => Arc::new(Int64Array::from(vec![0; rows])),
        DataType::Boolean => Arc::new(BooleanArray::from(vec![false; rows])),
        DataType::Utf8 => Arc::new(StringArray::from(vec![""; rows])),
        DataType::Timestamp(_, zone) => {
            Arc::new(TimestampMicrosecondArray::from(vec![0; rows]).with_timezone_opt(zone.clone()))
        }
        DataType::List(item) => {
            let offsets = OffsetBuffer::from_lengths(vec![0; rows]);
            Arc::new(ListArray::new(Arc::clone(item), offsets, new_empty_array(item.data_type()), None))
        }
        of => new_null_array(of, rows),
    }
}

fn of_other_type(path: &Path, name: &str) -> DataSetError {
    DataSetError::Column { path: path.to_owned(), column: name.to_owned(), problem: "has another type" }
}

fn arrow(path: &Path, cause: ArrowError) -> DataSetError {
    DataSetError::Arrow { path: path.to_owned(), cause }
}
