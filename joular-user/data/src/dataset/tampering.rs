//! Changes files of a data set, for tests of what reads them.

use std::{fs, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, cast::AsArray as _, types::Int64Type};
use arrow_select::concat::concat_batches;
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    file::properties::WriterProperties,
};

use super::{fixture::files, schema::key};

/// Path of a table's `number`th file.
pub(crate) fn file(root: &Path, table: &str, number: usize) -> std::path::PathBuf {
    let files: Vec<String> =
        files(root).into_iter().map(|(name, _)| name).filter(|name| name.starts_with(table)).collect();
    root.join(&files[number])
}

/// Rewrites a file with one column changed, its metadata kept.
pub(crate) fn tamper(path: &Path, column: &str, change: impl Fn(&mut Vec<Option<i64>>)) {
    rewrite(path, column, |values| {
        let mut values: Vec<Option<i64>> = values.as_primitive::<Int64Type>().iter().collect();
        change(&mut values);
        Arc::new(Int64Array::from(values))
    });
}

/// Rewrites a file with other values of one column.
pub(crate) fn rewrite(path: &Path, column: &str, change: impl Fn(&ArrayRef) -> ArrayRef) {
    rewrite_rows(path, None, |batch| {
        let (schema, mut columns, _) = batch.into_parts();
        let index = schema.index_of(column).unwrap();
        columns[index] = change(&columns[index]);
        RecordBatch::try_new(schema, columns).unwrap()
    });
}

/// Rewrites a file with other rows, and of another schema version if one is given.
pub(crate) fn rewrite_rows(path: &Path, version: Option<i64>, change: impl Fn(RecordBatch) -> RecordBatch) {
    let bytes = bytes::Bytes::from(fs::read(path).unwrap());
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let mut metadata = builder.metadata().file_metadata().key_value_metadata().cloned();
    for pair in metadata.iter_mut().flatten().filter(|pair| version.is_some() && pair.key == key::SCHEMA_VERSION) {
        pair.value = version.map(|version| version.to_string());
    }
    let schema = builder.schema().clone();
    let batches: Vec<RecordBatch> = builder.build().unwrap().collect::<Result<_, _>>().unwrap();
    let batch = change(concat_batches(&schema, &batches).unwrap());
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
