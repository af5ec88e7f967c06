//! Changes files of a data set, for tests of what reads them.

use std::{fs, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, cast::AsArray as _, types::Int64Type};
use arrow_select::concat::concat_batches;
use parquet::{
    arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
    file::properties::WriterProperties,
};

use super::fixture::files;

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
    let bytes = bytes::Bytes::from(fs::read(path).unwrap());
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let metadata = builder.metadata().file_metadata().key_value_metadata().cloned();
    let schema = builder.schema().clone();
    let batches: Vec<RecordBatch> = builder.build().unwrap().collect::<Result<_, _>>().unwrap();
    let batch = concat_batches(&schema, &batches).unwrap();
    let index = schema.index_of(column).unwrap();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns[index] = change(&columns[index]);
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), schema, Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
