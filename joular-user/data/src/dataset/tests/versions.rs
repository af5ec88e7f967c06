//! Tests that files of the schema versions beside ours are read: with columns that came later, and without.

use std::{fs, path::Path, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::{
    dataset::{
        audit,
        column::{Column, kind},
        error::DataSetError,
        fixture::*,
        read::columns::{Columns, TableFile},
        schema::SCHEMA_VERSION,
        store::{self, StoredFile},
        tampering,
    },
    model::policy::Policy,
    report::profile::{Filter, Profile},
};

fn with_column(rows: RecordBatch, name: &str) -> RecordBatch {
    let count = rows.num_rows();
    let (schema, mut columns, _) = rows.into_parts();
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new(name, DataType::Int64, false)));
    columns.push(Arc::new(Int64Array::from(vec![7; count])) as ArrayRef);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[test]
fn of_the_next_version_columns_that_are_not_known_are_ignored() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let before = Profile::read(root.path(), &Filter::default(), None).unwrap();
    for (name, _) in files(root.path()) {
        let later = |rows| with_column(rows, "later");
        tampering::rewrite_rows(&root.path().join(name), Some(SCHEMA_VERSION + 1), later);
    }
    let read = Profile::read(root.path(), &Filter::default(), None).unwrap();
    assert_eq!((read.entries, read.overview), (before.entries, before.overview));
    let audits = audit::run(root.path()).unwrap();
    assert!(audits[0].windows > 0 && audit::is_well(&audits), "{:?}", audits[0].told);
}

const NUMBER: Column<kind::Int> = Column::new("later_number", "", "").since(SCHEMA_VERSION + 1);
const MAYBE: Column<kind::Int> = Column::new("later_maybe", "", "").null("x").since(SCHEMA_VERSION + 1);
const TEXT: Column<kind::Text> = Column::new("later_text", "", "").since(SCHEMA_VERSION + 1);
const NAME: Column<kind::Name> = Column::new("later_name", "", "").since(SCHEMA_VERSION + 1);
const NO_NAME: Column<kind::Name> = Column::new("later_no_name", "", "").null("x").since(SCHEMA_VERSION + 1);
const FLAG: Column<kind::Flag> = Column::new("later_flag", "", "").since(SCHEMA_VERSION + 1);
const LIST: Column<kind::TextList> = Column::new("later_list", "", "").since(SCHEMA_VERSION + 1);

fn expect_nothing(columns: &Columns<'_>) -> Result<(), DataSetError> {
    let last = columns.rows() - 1;
    assert_eq!(columns.ints(NUMBER)?.natural::<u64>(last)?, 0);
    assert_eq!(columns.ints(MAYBE)?.maybe(last), None);
    assert_eq!(columns.texts(TEXT)?.get(last)?, "");
    assert_eq!(columns.names(NAME)?.get(last)?, "");
    assert_eq!(columns.names(NO_NAME)?.maybe(last)?, None);
    assert_eq!(columns.flags(FLAG)?.maybe(last), Some(false));
    assert!(columns.text_lists(LIST)?.of(last).is_empty());
    Ok(())
}

fn read(file: &Path, take: impl FnMut(&Columns<'_>) -> Result<(), DataSetError>) -> Result<(), DataSetError> {
    let store = store::open(file.parent().unwrap()).unwrap();
    TableFile::open(&StoredFile::new(&store, file.file_name().unwrap()))?.batches(take)
}

#[test]
fn a_column_that_an_earlier_version_lacks_is_nothing_there_and_missing_in_its_own() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let file = tampering::file(root.path(), "threads/", 0);
    read(&file, expect_nothing).unwrap();
    tampering::rewrite_rows(&file, Some(SCHEMA_VERSION + 1), |rows| with_column(rows, "later_number"));
    read(&file, |columns| {
        assert_eq!(columns.ints(NUMBER)?.get(0)?, 7);
        Ok(())
    })
    .unwrap();
    let missing = read(&file, |columns| columns.texts(TEXT).map(drop)).unwrap_err().to_string();
    assert!(missing.contains("column later_text is missing"), "{missing}");
}

#[test]
fn other_versions_are_refused_with_what_to_use() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let file = tampering::file(root.path(), "threads/", 0);
    let before = fs::read(&file).unwrap();
    for (version, advice) in [(9, "the joular-bpf that wrote it"), (13, "a newer joular-bpf")] {
        fs::write(&file, &before).unwrap();
        tampering::rewrite_rows(&file, Some(version), |rows| rows);
        let refused = read(&file, |_| Ok(())).unwrap_err().to_string();
        let expected = format!("schema version {version}, this joular-bpf reads versions 10 to 12: use {advice}");
        assert!(refused.ends_with(&expected), "{refused}");
    }
}
