//! Says which columns ClickHouse's table of bundles has. A bundle's rows are aligned with them, whichever schema version wrote them
//! ([`crate::dataset::align`]).

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};

use super::each;
use crate::dataset::{
    column::{self, Table},
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use arrow_array::{
        Array as _, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray, cast::AsArray as _,
    };
    use arrow_buffer::OffsetBuffer;

    use super::*;
    use crate::dataset::align::aligned;

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
