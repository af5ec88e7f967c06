//! Gives the columns of a bundle the types that ClickHouse's table of bundles has, whichever schema version wrote them:
//! columns that are not known are left out, and those that are missing are null, or 0, or empty.

use std::{path::Path, sync::Arc};

use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMicrosecondArray, cast::AsArray as _, new_empty_array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, Schema};

use super::each;
use crate::dataset::{
    column::{self, Table},
    error::{DataSetError, Result},
    tables::ForTable,
};

/// What a bundle is to have: a list of rows for each table.
pub(super) fn schema() -> Arc<Schema> {
    struct Tables(Vec<Field>);
    impl ForTable for Tables {
        fn table<T: Table>(&mut self) {
            let rows = DataType::Struct(plain(column::schema::<T>().fields()));
            self.0.push(Field::new(T::NAME, list(rows, false), false));
        }
    }
    let mut tables = Tables(Vec::new());
    each(&mut tables);
    Arc::new(Schema::new(tables.0))
}

fn list(of: DataType, is_nullable: bool) -> DataType {
    DataType::List(Arc::new(Field::new("element", of, is_nullable)))
}

/// Without dictionaries, which are of memory only.
fn plain(fields: &Fields) -> Fields {
    let plain = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(plain_type(field.data_type())));
    fields.iter().map(plain).collect()
}

fn plain_type(of: &DataType) -> DataType {
    match of {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::List(item) => list(plain_type(item.data_type()), item.is_nullable()),
        DataType::Struct(fields) => DataType::Struct(plain(fields)),
        other => other.clone(),
    }
}

/// The rows of a bundle, as `schema` has them.
pub(super) fn aligned(path: &Path, batch: &RecordBatch, schema: &Arc<Schema>) -> Result<RecordBatch> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A bundle with two rows of `runs`, of which only one column is there, and one that nobody knows.
    fn narrow() -> RecordBatch {
        let ids: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let unknown: ArrayRef = Arc::new(Int64Array::from(vec![7, 8]));
        let fields: Fields =
            vec![Field::new("run_id", DataType::Utf8, true), Field::new("unknown", DataType::Int64, false)].into();
        let rows = StructArray::new(fields.clone(), vec![ids, unknown], None);
        let item = Arc::new(Field::new("item", DataType::Struct(fields), false));
        let runs = ListArray::new(item, OffsetBuffer::from_lengths([2]), Arc::new(rows), None);
        RecordBatch::try_from_iter([("runs", Arc::new(runs) as ArrayRef)]).unwrap()
    }

    #[test]
    fn what_is_missing_is_null_or_zero_or_empty_and_what_is_not_known_is_left_out() {
        let schema = schema();
        let found = aligned(Path::new("x"), &narrow(), &schema).unwrap();
        assert_eq!(found.schema(), schema);
        let runs = found.column_by_name("runs").unwrap().as_list::<i32>().value(0);
        let runs = runs.as_struct();
        assert_eq!(runs.column_by_name("run_id").unwrap().as_string::<i32>().value(1), "b");
        let version = runs.column_by_name("schema_version").unwrap();
        assert!(version.null_count() == 0 && runs.column_by_name("measured_uj").unwrap().null_count() == 2);
        assert_eq!(found.column_by_name("methods").unwrap().as_list::<i32>().value(0).len(), 0);
    }

    #[test]
    fn a_column_of_another_type_is_an_error_that_names_it() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("methods", numbers)]).unwrap();
        let error = aligned(Path::new("x"), &batch, &schema()).unwrap_err().to_string();
        assert!(error.contains("methods has another type"), "{error}");
    }
}
