//! Tests that a bundle has what the files of a rollup's tables have, and that a damaged one is told.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{Array as _, RecordBatch, StructArray, cast::AsArray as _};
use arrow_select::concat::concat_batches;
use parquet::{arrow::arrow_reader::ParquetRecordBatchReaderBuilder, file::metadata::ParquetMetaData};
use tempfile::TempDir;

use super::{BundlePlace, Groups, encode, fits};
use crate::{
    dataset::{
        audit,
        column::Table as _,
        fixture::{self, SECOND},
        read::{columns::TableFile, files, files::RunFiles, run_row},
        store::{LocalDirectory, Store, StoredFile},
        tables::{OF_ROLLUPS, Runs, TABLES},
        tampering::rewrite_rows,
    },
    model::policy::Policy,
    redact::Redaction,
    report::profile::{Filter, Profile, Unreadable},
    rollup,
};

fn local(root: &Path) -> Arc<dyn Store> {
    Arc::new(LocalDirectory::new(root, None))
}

/// A rollup of these runs, in windows of so many seconds.
fn rolled_up(runs: &[&str], seconds: u64) -> TempDir {
    let (recorded, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    runs.iter().for_each(|run| fixture::write_as(recorded.path(), Policy::default(), run));
    rollup::run(recorded.path(), to.path(), seconds * SECOND, None, &Redaction::default()).unwrap();
    to
}

/// The same runs as bundles.
fn bundled(tables: &Path) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    for run in files::find(&local(tables)).unwrap() {
        let row = run_row::read(&run.row).unwrap();
        assert!(fits(&row, &run).unwrap());
        let place = BundlePlace::of(&row.info);
        let bytes = encode(&run, &Redaction::default()).unwrap();
        local(to.path()).publish_new(&place.folder(&Groups::default()), &place.name, &bytes).unwrap();
    }
    to
}

fn only_run(root: &Path) -> RunFiles {
    let mut runs = files::find(&local(root)).unwrap();
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

/// The rows of a table.
fn rows(run: &RunFiles, table: &'static str) -> Option<RecordBatch> {
    let tables = [table];
    let files: Vec<&StoredFile> = if table == Runs::NAME { vec![&run.row] } else { run.of(&tables).collect() };
    let mut batches = Vec::new();
    for file in files {
        let mut file = TableFile::open(file).unwrap();
        while let Some(batch) = file.next_batch() {
            batches.push(batch.unwrap());
        }
    }
    let schema = batches.first()?.schema();
    Some(concat_batches(&schema, &batches).unwrap()).filter(|rows| rows.num_rows() > 0)
}

fn bundle_of(root: &Path) -> PathBuf {
    root.join(&fixture::files(root)[0].0)
}

#[test]
fn every_row_of_every_table_is_that_of_the_flat_file() {
    for seconds in [5, 60, 3600] {
        let tables = rolled_up(&[fixture::RUN_ID], seconds);
        let bundles = bundled(tables.path());
        let (flat, bundle) = (only_run(tables.path()), only_run(bundles.path()));
        assert!(bundle.is_bundle() && !flat.is_bundle() && bundle.place.run() == flat.place.run());
        for table in TABLES {
            let (expected, found) = (rows(&flat, table), rows(&bundle, table));
            if !OF_ROLLUPS.contains(&table) {
                assert!(expected.is_none() && found.is_none(), "{table}: a rollup has none");
                continue;
            }
            let (Some(expected), Some(found)) = (expected, found) else { panic!("{table} has no rows") };
            assert_eq!(
                found.schema().fields(),
                expected.schema().fields(),
                "{table}: as rarely null, of the same type"
            );
            assert_eq!(found.num_rows(), expected.num_rows(), "{table}");
            for (found, expected) in found.columns().iter().zip(expected.columns()) {
                assert_eq!(found, expected, "{table}");
            }
        }
        assert_eq!(rows(&bundle, Runs::NAME), rows(&flat, Runs::NAME));
        assert_eq!(
            format!("{:?}", audit::run(bundles.path()).unwrap()),
            format!("{:?}", audit::run(tables.path()).unwrap())
        );
        let profile = |root: &Path| Profile::of_store(&local(root), &Filter::default(), None).unwrap();
        assert_eq!(profile(bundles.path()).entries, profile(tables.path()).entries);
    }
}

#[test]
fn a_bundle_of_a_bundle_has_the_same_bytes() {
    let bundles = bundled(rolled_up(&[fixture::RUN_ID], 60).path());
    let again = encode(&only_run(bundles.path()), &Redaction::default()).unwrap();
    assert!(again == fs::read(bundle_of(bundles.path())).unwrap());
}

#[test]
fn a_bundle_is_one_row_of_lists_and_smaller_than_the_files() {
    let tables = rolled_up(&[fixture::RUN_ID], 60);
    let bundles = bundled(tables.path());
    let bytes = bytes::Bytes::from(fs::read(bundle_of(bundles.path())).unwrap());
    let flat: usize = fixture::files(tables.path()).iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes.len() < flat, "{} bytes in one file, {flat} in many", bytes.len());
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
    let metadata: &ParquetMetaData = reader.metadata();
    let names: Vec<String> =
        metadata.file_metadata().schema().get_fields().iter().map(|field| field.name().to_owned()).collect();
    assert_eq!(names, [&[Runs::NAME], &TABLES[..]].concat());
    let of_run = metadata.row_group(0).columns().iter().filter(|column| column.column_path().parts()[0] == Runs::NAME);
    let of_run: i64 = of_run.map(|column| column.compressed_size()).sum();
    assert!(of_run < 4096, "{of_run} bytes of the run's row");
    let schema = Arc::clone(reader.schema());
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    assert_eq!((batches.len(), batches[0].num_rows()), (1, 1));
    for field in schema.fields() {
        let arrow_schema::DataType::List(item) = field.data_type() else { panic!("{field}") };
        assert!(!field.is_nullable() && !item.is_nullable() && item.name() == "element", "{field}");
    }
}

#[test]
fn what_is_as_recorded_is_not_bundled() {
    let recorded = tempfile::tempdir().unwrap();
    fixture::write(recorded.path(), Policy::default());
    let run = only_run(recorded.path());
    assert!(!fits(&run_row::read(&run.row).unwrap(), &run).unwrap());
    let error = encode(&run, &Redaction::default()).unwrap_err().to_string();
    assert!(error.contains("roll it up"), "{error}");
}

/// What is wrong with a bundle whose row is changed so, and that the others are read without it.
fn refused(change: impl Fn(RecordBatch) -> RecordBatch) -> String {
    let bundles = bundled(rolled_up(&["a-1", "a-2"], 60).path());
    let damaged = bundle_of(bundles.path());
    rewrite_rows(&damaged, None, change);
    let filter = Filter { unreadable: Unreadable::left_out(), ..Filter::default() };
    let read = filter.unreadable.reading(|| Profile::of_store(&local(bundles.path()), &filter, None));
    assert!(!read.unwrap().entries.is_empty());
    let skipped = filter.unreadable.skipped();
    assert_eq!((skipped.skipped.len(), skipped.looked_at), (1, 2), "{skipped:?}");
    assert_eq!(Path::new(&skipped.skipped[0].path), damaged);
    let error = audit::run(bundles.path()).unwrap_err();
    assert_eq!(error.file(), Some(damaged.as_path()), "{error}");
    skipped.skipped[0].why.clone()
}

/// A bundle with another list in place of a table.
fn with_table(row: &RecordBatch, table: &str, change: impl Fn(&StructArray) -> StructArray) -> RecordBatch {
    let (index, field) = row.schema_ref().column_with_name(table).map(|(index, field)| (index, field.clone())).unwrap();
    let values = change(row.column(index).as_list::<i32>().values().as_struct());
    let item = arrow_schema::Field::new("element", values.data_type().clone(), false);
    let offsets = arrow_buffer::OffsetBuffer::from_lengths([values.len()]);
    let lists = arrow_array::ListArray::new(Arc::new(item), offsets, Arc::new(values), None);
    let mut fields: Vec<_> = row.schema().fields().iter().cloned().collect();
    let mut columns = row.columns().to_vec();
    fields[index] = Arc::new(field.with_data_type(lists.data_type().clone()));
    columns[index] = Arc::new(lists);
    RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns).unwrap()
}

#[test]
fn a_damaged_bundle_is_left_out_and_named() {
    let twice = |row: RecordBatch| concat_batches(&row.schema(), [&row, &row]).unwrap();
    assert!(refused(twice).contains("it has 2 rows"));
    let without = |row: RecordBatch| {
        with_table(&row, "branches", |rows| {
            let kept = rows.fields().iter().zip(rows.columns()).filter(|(field, _)| field.name() != "energy_uj");
            let (fields, columns): (Vec<_>, Vec<_>) =
                kept.map(|(field, column)| (field.clone(), column.clone())).unzip();
            StructArray::new(fields.into(), columns, None)
        })
    };
    assert!(refused(without).contains("energy_uj is missing"));
    let no_run = |row: RecordBatch| with_table(&row, Runs::NAME, |rows| rows.slice(0, 0));
    assert!(refused(no_run).contains("it has no row"));
}
