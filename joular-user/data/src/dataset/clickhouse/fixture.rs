//! Small bundles, for tests.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::ArrowWriter;

/// A bundle of a run of a schema version, with windows of these energies.
pub(crate) fn bundle(run: &str, version: i64, measured_uj: &[i64]) -> Vec<u8> {
    let runs = list(vec![
        ("run_id", Arc::new(StringArray::from(vec![run]))),
        ("schema_version", Arc::new(Int64Array::from(vec![version]))),
    ]);
    let windows = list(vec![("measured_uj", Arc::new(Int64Array::from(measured_uj.to_vec())))]);
    let batch = RecordBatch::try_from_iter([("runs", runs), ("windows", windows)]).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn list(columns: Vec<(&str, ArrayRef)>) -> ArrayRef {
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
    let fields: Fields = columns.iter().map(field).collect();
    let rows = StructArray::new(fields.clone(), columns.into_iter().map(|(_, array)| array).collect(), None);
    let item = Arc::new(Field::new("element", DataType::Struct(fields), false));
    let count = rows.len();
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([count]), Arc::new(rows), None))
}
