//! Reads one Parquet file as rows with named values. A reader asks for every value by its column's
//! definition ([`crate::dataset::tables`]), before it looks at rows: what it asks for without any is what is read of a
//! file ([`Asked`]). A file is not trusted. A column that is absent, of
//! another type, null where it must not be, or negative where it cannot be, is an error that names
//! its place.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
};

use arrow_array::{
    Array, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray,
    cast::AsArray,
    types::{Int32Type, Int64Type, TimestampMicrosecondType},
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::Schema;
use arrow_select::take::{TakeOptions, take};
use parquet::{
    arrow::{ProjectionMask, arrow_reader::ParquetRecordBatchReader},
    file::metadata::RowGroupMetaData,
};

pub(crate) use super::values::{Flags, Names, Numbers, Structs, Texts};
use super::{
    asked::Asked,
    builder::{Builder, builder, version},
    footer,
    lists::TextLists,
    nested,
    span::Span,
    values,
};
use crate::{
    caught::caught,
    dataset::{
        column::{Column, kind},
        error::{DataSetError, Result},
        schema::SCHEMA_VERSION,
        store::{Object, StoredFile},
    },
    model::units::UnixMicros,
};

/// Rows that are in memory as columns at a time.
const BATCH_ROWS: usize = 8_192;

/// A file being read.
pub(crate) struct TableFile {
    path: PathBuf,
    object: Object,
    /// Of its schema.
    version: i64,
    /// Of a bundle, the one that is read.
    table: Option<&'static str>,
    reader: ParquetRecordBatchReader,
}

impl TableFile {
    /// Opens a file of a schema version that is read.
    pub(crate) fn open(file: &StoredFile) -> Result<Self> {
        let built = builder(file)?;
        let mask = nested::mask(built.0.parquet_schema(), file.table(), |_, _| true);
        Self::built(file, built, mask)
    }

    /// The same, but reads only what was asked for, and no rows that are known to be of windows outside this span.
    pub(super) fn open_asked(file: &StoredFile, asked: &Asked, span: &Span) -> Result<Self> {
        let (builder, object) = builder(file)?;
        let may_have = |group: &RowGroupMetaData| {
            footer::windows_of(file, group)
                .is_none_or(|(first, last)| span.may_have(UnixMicros(first), UnixMicros(last)))
        };
        let groups = builder.metadata().row_groups().iter().enumerate();
        let kept = groups.filter(|(_, group)| may_have(group)).map(|(index, _)| index).collect();
        let mask = asked.mask(file, &builder)?;
        Self::built(file, (builder.with_row_groups(kept), object), mask)
    }

    fn built(file: &StoredFile, (builder, object): (Builder, Object), mask: ProjectionMask) -> Result<Self> {
        let version = version(builder.metadata()).unwrap_or(SCHEMA_VERSION);
        let table = file.table();
        let builder = match table {
            // A table that came later has no rows.
            Some(table) if builder.schema().field_with_name(table).is_err() => builder.with_row_groups(Vec::new()),
            _ => builder,
        };
        let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
        let reader = reader.map_err(|cause| DataSetError::Parquet { path: file.path(), cause })?;
        Ok(Self { path: file.path(), object, version, table, reader })
    }

    /// The next batch of rows, for [`Self::columns`].
    pub(crate) fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        let Some(next) = caught(|| self.reader.next()) else {
            let problem = "a length in it is wrong".to_owned();
            return Some(Err(DataSetError::Damaged { path: self.path.clone(), problem }));
        };
        let failed = |cause| match self.object.failure() {
            Some(cause) => DataSetError::Io { path: self.path.clone(), cause },
            None => DataSetError::Arrow { path: self.path.clone(), cause },
        };
        let batch = match next? {
            Ok(batch) => batch,
            Err(cause) => return Some(Err(failed(cause))),
        };
        // All rows of a table in a bundle are one batch.
        let rows = match self.table {
            Some(table) => nested::rows(&batch, table).map_err(|problem| values::wrong(&self.path, table, problem)),
            None => Ok(batch),
        };
        Some(rows)
    }

    /// A batch of the file's rows by their columns.
    pub(crate) fn columns<'a>(&'a self, batch: &'a RecordBatch) -> Columns<'a> {
        Columns::of(&self.path, self.version, batch, None)
    }

    /// The version of its schema.
    pub(super) const fn version(&self) -> i64 {
        self.version
    }

    /// Calls `take` for every batch of rows.
    pub(crate) fn batches(mut self, mut take: impl FnMut(&Columns<'_>) -> Result<()>) -> Result<()> {
        while let Some(batch) = self.next_batch() {
            take(&Columns::of(&self.path, self.version, &batch?, None))?;
        }
        Ok(())
    }
}

/// Some rows of a table.
pub(crate) struct Columns<'a> {
    path: &'a Path,
    /// Of the file's schema.
    version: i64,
    source: Source<'a>,
}

/// Where columns come from.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// Rows that were read. `None`: all of their columns were.
    Rows(&'a RecordBatch, Option<&'a Asked>),
    /// Nowhere: what is asked for is noted.
    Asking(&'a RefCell<Asked>),
    /// The same of structs in a list.
    AskingInList(&'a RefCell<Asked>),
}

impl<'a> Columns<'a> {
    pub(super) const fn of(path: &'a Path, version: i64, batch: &'a RecordBatch, asked: Option<&'a Asked>) -> Self {
        Self { path, version, source: Source::Rows(batch, asked) }
    }

    /// No rows, of which any column may be asked for.
    pub(super) fn asking(asked: &'a RefCell<Asked>) -> Self {
        Self { path: Path::new(""), version: SCHEMA_VERSION, source: Source::Asking(asked) }
    }
}

impl Columns<'_> {
    pub(crate) fn rows(&self) -> usize {
        match self.source {
            Source::Rows(batch, _) => batch.num_rows(),
            Source::Asking(_) | Source::AskingInList(_) => 0,
        }
    }

    pub(crate) fn damaged(&self, problem: impl Into<String>) -> DataSetError {
        DataSetError::Damaged { path: self.path.into(), problem: problem.into() }
    }

    fn wrong(&self, column: &str, problem: &'static str) -> DataSetError {
        values::wrong(self.path, column, problem)
    }

    /// Whether the rows have this column: a table of a rollup has others than that of a recording.
    pub(crate) fn has<K>(&self, column: &Column<K>) -> Result<bool> {
        let name = column.name();
        Ok(matches!(self.source, Source::Asking(_) | Source::AskingInList(_)) | self.find_if_any(&name)?.is_some())
    }

    /// A column that rows must have; `None` if there are no rows, or the column came with a later schema version.
    fn find<K>(&self, column: &Column<K>) -> Result<Option<&dyn Array>> {
        let name = column.name();
        match (self.find_if_any(&name)?, self.source) {
            (None, Source::Rows(..)) if !column.may_lack(self.version) => Err(self.wrong(&name, "is missing")),
            (found, _) => Ok(found),
        }
    }

    /// A column that rows may lack.
    fn find_if_any(&self, name: &str) -> Result<Option<&dyn Array>> {
        match self.source {
            Source::Rows(_, Some(asked)) if !asked.has(name) => Err(self.wrong(name, "was not asked for in time")),
            Source::Rows(batch, _) => Ok(batch.column_by_name(name).map(AsRef::as_ref)),
            Source::Asking(asked) => {
                asked.borrow_mut().add(name);
                Ok(None)
            }
            Source::AskingInList(_) => Ok(None),
        }
    }

    /// What `view` makes of a column, or `absent` of the number of rows: of none, or of a file that lacks the column.
    fn values<K, V>(
        &self,
        column: &Column<K>,
        problem: &'static str,
        absent: impl FnOnce(usize) -> V,
        view: impl FnOnce(&dyn Array) -> Option<V>,
    ) -> Result<V> {
        match self.find(column)? {
            Some(found) => view(found).ok_or_else(|| self.wrong(&column.name(), problem)),
            None => Ok(absent(self.rows())),
        }
    }

    pub(crate) fn ints(&self, column: Column<kind::Int>) -> Result<Numbers<'_>> {
        let name = column.name();
        let view = |found: &dyn Array| found.as_primitive_opt::<Int64Type>().cloned();
        let values = self.values(&column, "is not an integer", |rows| numbers(&column, rows), view)?;
        Ok(Numbers { path: self.path, name, values })
    }

    /// Numbers of a column that a rollup lacks: null there.
    pub(crate) fn ints_if_any(&self, column: Column<kind::Int>) -> Result<Numbers<'_>> {
        if self.has(&column)? {
            return self.ints(column);
        }
        Ok(Numbers { path: self.path, name: column.name(), values: Int64Array::new_null(self.rows()) })
    }

    /// Microseconds since 1970.
    pub(crate) fn times(&self, column: Column<kind::Time>) -> Result<Numbers<'_>> {
        let name = column.name();
        let view = |found: &dyn Array| {
            let times = found.as_primitive_opt::<TimestampMicrosecondType>();
            times.map(|times| times.reinterpret_cast::<Int64Type>())
        };
        let values = self.values(&column, "is not a timestamp", |rows| numbers(&column, rows), view)?;
        Ok(Numbers { path: self.path, name, values })
    }

    pub(crate) fn texts<K: kind::Textual>(&self, column: Column<K>) -> Result<Texts<'_>> {
        let name = column.name();
        let view = |found: &dyn Array| {
            let values = match found.as_dictionary_opt::<Int32Type>() {
                Some(names) => take(names.values(), names.keys(), Some(TakeOptions { check_bounds: true })).ok(),
                None => Some(found.slice(0, found.len())),
            };
            values.as_deref().and_then(|values| values.as_string_opt::<i32>()).cloned()
        };
        let values = self.values(&column, "is not text", |rows| texts(&column, rows), view)?;
        Ok(Texts { path: self.path, values, name })
    }

    /// Text that repeats: see [`Names`].
    pub(crate) fn names(&self, column: Column<kind::Name>) -> Result<Names<'_>> {
        let name = column.name();
        let view = |found: &dyn Array| {
            let values = match found.as_dictionary_opt::<Int32Type>() {
                Some(names) => names.clone(),
                None => found.as_string_opt::<i32>().map(|texts| DictionaryArray::from_iter(texts.iter()))?,
            };
            let texts = values.values().as_string_opt::<i32>()?.clone();
            Some((values, texts))
        };
        let (values, texts) = self.values(&column, "is not text", |rows| names(&column, rows), view)?;
        Ok(Names { path: self.path, name, values, texts })
    }

    /// Text that may be null in every row, in which case the column is not read.
    pub(crate) fn names_if_any(&self, column: Column<kind::Name>) -> Result<Names<'_>> {
        let name = column.name();
        if let Source::AskingInList(asked) = self.source {
            asked.borrow_mut().add_text(&name);
        }
        if self.has(&column)? {
            return self.names(column);
        }
        let (values, texts) = nulls(self.rows());
        Ok(Names { path: self.path, name, values, texts })
    }

    pub(crate) fn flags(&self, column: Column<kind::Flag>) -> Result<Flags> {
        let view = |found: &dyn Array| found.as_boolean_opt().cloned();
        let absent = |rows| BooleanArray::from(vec![(!column.is_nullable()).then_some(false); rows]);
        Ok(Flags(self.values(&column, "is not a boolean", absent, view)?))
    }

    /// The structs in a list column.
    pub(crate) fn structs(&self, column: Column<kind::Frames>) -> Result<Structs> {
        let absent = |rows| Structs {
            offsets: OffsetBuffer::new_zeroed(rows),
            values: RecordBatch::new_empty(Schema::empty().into()),
        };
        let view = |found: &dyn Array| {
            let list = found.as_list_opt()?;
            let values = list.values().as_struct_opt().filter(|values| values.null_count() == 0)?;
            Some(Structs { offsets: list.offsets().clone(), values: RecordBatch::from(values) })
        };
        self.values(&column, "is not a list of structs", absent, view)
    }

    /// The lists of texts in a column.
    pub(crate) fn text_lists(&self, column: Column<kind::TextList>) -> Result<TextLists> {
        self.values(&column, "is not a list of texts", TextLists::absent, TextLists::of_column)
    }

    /// Rows of another batch that belong to the same file.
    pub(crate) const fn nested<'b>(&'b self, batch: &'b RecordBatch) -> Columns<'b> {
        let source = match self.source {
            Source::Rows(..) => Source::Rows(batch, None),
            Source::Asking(asked) | Source::AskingInList(asked) => Source::AskingInList(asked),
        };
        Columns { path: self.path, version: self.version, source }
    }
}

/// A column of numbers that rows lack.
fn numbers<K>(column: &Column<K>, rows: usize) -> Int64Array {
    Int64Array::from(vec![(!column.is_nullable()).then_some(0); rows])
}

/// A column of texts that rows lack.
fn texts<K>(column: &Column<K>, rows: usize) -> StringArray {
    StringArray::from(vec![(!column.is_nullable()).then_some(""); rows])
}

/// A column of names that rows lack, and its dictionary.
fn names<K>(column: &Column<K>, rows: usize) -> (DictionaryArray<Int32Type>, StringArray) {
    if column.is_nullable() || rows == 0 {
        return nulls(rows);
    }
    (DictionaryArray::from_iter(std::iter::repeat_n(Some(""), rows)), StringArray::from(vec![""]))
}

/// A column of names without any, and its dictionary.
fn nulls(rows: usize) -> (DictionaryArray<Int32Type>, StringArray) {
    (DictionaryArray::from_iter(std::iter::repeat_n(None::<&str>, rows)), StringArray::new_null(0))
}
