//! Reads one Parquet file as rows with named values. A reader asks for every value by its column's
//! definition ([`crate::dataset::tables`]). A file is not trusted. A column that is absent, of
//! another type, null where it must not be, or negative where it cannot be, is an error that names
//! its place.

use std::{
    borrow::Cow,
    ops::Range,
    path::{Path, PathBuf},
};

use arrow_array::{
    Array, BooleanArray, DictionaryArray, Int64Array, ListArray, RecordBatch, StringArray,
    cast::AsArray,
    types::{Int32Type, Int64Type, TimestampMicrosecondType},
};
use arrow_buffer::OffsetBuffer;
use arrow_select::take::{TakeOptions, take};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
    },
    file::metadata::{ParquetMetaData, RowGroupMetaData},
    schema::types::SchemaDescriptor,
};

use super::{builder::builder, footer, span::Span};
use crate::{
    caught::caught,
    dataset::{
        column::{Column, Named, kind},
        error::{DataSetError, Result},
        store::{Object, StoredFile},
    },
    model::units::UnixMicros,
};

/// Rows that are in memory as columns at a time.
const BATCH_ROWS: usize = 8_192;

/// A file being read.
pub(crate) struct TableFile {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
}

impl TableFile {
    /// Opens a file of this program's schema version.
    pub(crate) fn open(file: &StoredFile) -> Result<Self> {
        Self::open_masked(file, |_| ProjectionMask::all())
    }

    /// The same, but reads only these columns, as far as the file has them.
    pub(crate) fn open_columns(file: &StoredFile, wanted: &[&dyn Named]) -> Result<Self> {
        Self::open_masked(file, |metadata| selected(metadata.file_metadata().schema_descr(), wanted))
    }

    /// The same, without those of a list's columns `texts` that hold no text, see
    /// [`Columns::names_if_any`]. A file must have all columns.
    pub(crate) fn open_lists(file: &StoredFile, wanted: &[&dyn Named], texts: &[Column<kind::Name>]) -> Result<Self> {
        let builder = builder(file)?;
        let schema = builder.parquet_schema();
        let leaf_of = |text: &str| {
            let is_it = |leaf: &usize| {
                schema.column(*leaf).path().parts().get(1..).and_then(<[_]>::last).is_some_and(|name| name == text)
            };
            (0..schema.num_columns()).find(is_it)
        };
        let mut empty = Vec::new();
        for text in texts {
            let name = text.name();
            let missing =
                || DataSetError::Column { path: file.path(), column: name.to_string(), problem: "is missing" };
            let leaf = leaf_of(&name).ok_or_else(missing)?;
            if footer::has_no_text(builder.metadata(), leaf) {
                empty.push(leaf);
            }
        }
        let names: Vec<_> = wanted.iter().map(|column| column.name()).collect();
        let is_wanted = |leaf: &usize| {
            let column = schema.column(*leaf);
            column.path().parts().first().is_some_and(|name| names.iter().any(|wanted| wanted == name))
                && !empty.contains(leaf)
        };
        let mask = ProjectionMask::leaves(schema, (0..schema.num_columns()).filter(is_wanted));
        Self::built(file, builder, mask)
    }

    /// The same, without rows that are known to be of windows outside this span.
    pub(crate) fn open_span(file: &StoredFile, wanted: &[&dyn Named], span: &Span) -> Result<Self> {
        let builder = builder(file)?;
        let may_have = |group: &RowGroupMetaData| {
            footer::windows(group).is_none_or(|(first, last)| span.may_have(UnixMicros(first), UnixMicros(last)))
        };
        let groups = builder.metadata().row_groups().iter().enumerate();
        let kept = groups.filter(|(_, group)| may_have(group)).map(|(index, _)| index).collect();
        let mask = selected(builder.parquet_schema(), wanted);
        Self::built(file, builder.with_row_groups(kept), mask)
    }

    fn open_masked(file: &StoredFile, mask: impl FnOnce(&ParquetMetaData) -> ProjectionMask) -> Result<Self> {
        let builder = builder(file)?;
        let mask = mask(builder.metadata());
        Self::built(file, builder, mask)
    }

    fn built(
        file: &StoredFile,
        builder: ParquetRecordBatchReaderBuilder<Object>,
        mask: ProjectionMask,
    ) -> Result<Self> {
        let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
        let reader = reader.map_err(|cause| DataSetError::Parquet { path: file.path(), cause })?;
        Ok(Self { path: file.path(), reader })
    }

    /// The next batch of rows, for [`Columns::of`].
    pub(crate) fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        let Some(next) = caught(|| self.reader.next()) else {
            let problem = "a length in it is wrong".to_owned();
            return Some(Err(DataSetError::Damaged { path: self.path.clone(), problem }));
        };
        let failed = |cause| DataSetError::Arrow { path: self.path.clone(), cause };
        next.map(|batch| batch.map_err(failed))
    }

    /// Calls `take` for every batch of rows.
    pub(crate) fn batches(mut self, mut take: impl FnMut(&Columns<'_>) -> Result<()>) -> Result<()> {
        while let Some(batch) = self.next_batch() {
            take(&Columns::of(&self.path, &batch?))?;
        }
        Ok(())
    }
}

/// These columns of a file, as far as it has them.
fn selected(schema: &SchemaDescriptor, wanted: &[&dyn Named]) -> ProjectionMask {
    let names: Vec<_> = wanted.iter().map(|column| column.name()).collect();
    ProjectionMask::columns(schema, names.iter().map(AsRef::as_ref))
}

/// Some rows of a table.
pub(crate) struct Columns<'a> {
    path: &'a Path,
    batch: &'a RecordBatch,
}

impl<'a> Columns<'a> {
    pub(crate) const fn of(path: &'a Path, batch: &'a RecordBatch) -> Self {
        Self { path, batch }
    }
}

impl Columns<'_> {
    pub(crate) fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The rows as they are.
    pub(crate) const fn batch(&self) -> &RecordBatch {
        self.batch
    }

    pub(crate) fn damaged(&self, problem: impl Into<String>) -> DataSetError {
        DataSetError::Damaged { path: self.path.into(), problem: problem.into() }
    }

    pub(super) fn wrong(&self, column: &str, problem: &'static str) -> DataSetError {
        DataSetError::Column { path: self.path.into(), column: column.to_owned(), problem }
    }

    /// Whether the rows have this column: a table of a rollup has others than that of a recording.
    pub(crate) fn has(&self, column: &dyn Named) -> bool {
        self.batch.column_by_name(&column.name()).is_some()
    }

    fn column(&self, name: &str) -> Result<&dyn Array> {
        let column = self.batch.column_by_name(name).ok_or_else(|| self.wrong(name, "is missing"))?;
        Ok(column.as_ref())
    }

    pub(crate) fn ints(&self, column: Column<kind::Int>) -> Result<Numbers<'_>> {
        let name = column.name();
        let values = self.column(&name)?.as_primitive_opt::<Int64Type>();
        let values = values.ok_or_else(|| self.wrong(&name, "is not an integer"))?;
        Ok(Numbers { columns: self, name, values: values.clone() })
    }

    /// Numbers of a column that a rollup lacks: null there.
    pub(crate) fn ints_if_any(&self, column: Column<kind::Int>) -> Result<Numbers<'_>> {
        if self.has(&column) {
            return self.ints(column);
        }
        Ok(Numbers { columns: self, name: column.name(), values: Int64Array::new_null(self.rows()) })
    }

    /// Microseconds since 1970.
    pub(crate) fn times(&self, column: Column<kind::Time>) -> Result<Numbers<'_>> {
        let name = column.name();
        let values = self.column(&name)?.as_primitive_opt::<TimestampMicrosecondType>();
        let values = values.ok_or_else(|| self.wrong(&name, "is not a timestamp"))?;
        Ok(Numbers { columns: self, name, values: values.reinterpret_cast::<Int64Type>() })
    }

    pub(crate) fn texts<K: kind::Textual>(&self, column: Column<K>) -> Result<Texts<'_>> {
        let name = column.name();
        let found = self.column(&name)?;
        let values = match found.as_dictionary_opt::<Int32Type>() {
            Some(names) => take(names.values(), names.keys(), Some(TakeOptions { check_bounds: true })).ok(),
            None => Some(found.slice(0, found.len())),
        };
        let values = values.as_deref().and_then(|values| values.as_string_opt::<i32>()).cloned();
        Ok(Texts { columns: self, values: values.ok_or_else(|| self.wrong(&name, "is not text"))?, name })
    }

    /// Text that repeats: see [`Names`].
    pub(crate) fn names(&self, column: Column<kind::Name>) -> Result<Names<'_>> {
        let name = column.name();
        let found = self.column(&name)?;
        let values = match found.as_dictionary_opt::<Int32Type>() {
            Some(names) => Some(names.clone()),
            None => found.as_string_opt::<i32>().map(|texts| DictionaryArray::from_iter(texts.iter())),
        };
        let values = values.ok_or_else(|| self.wrong(&name, "is not text"))?;
        let texts = values.values().as_string_opt::<i32>().ok_or_else(|| self.wrong(&name, "is not text"))?.clone();
        Ok(Names { columns: self, name, values, texts })
    }

    /// Text that may be null in every row, in which case the column was not read.
    pub(crate) fn names_if_any(&self, column: Column<kind::Name>) -> Result<Names<'_>> {
        let name = column.name();
        if self.batch.column_by_name(&name).is_some() {
            return self.names(column);
        }
        let values = DictionaryArray::from_iter(std::iter::repeat_n(None::<&str>, self.rows()));
        Ok(Names { columns: self, name, values, texts: StringArray::new_null(0) })
    }

    pub(crate) fn flags(&self, column: Column<kind::Flag>) -> Result<Flags> {
        let name = column.name();
        let values = self.column(&name)?.as_boolean_opt().ok_or_else(|| self.wrong(&name, "is not a boolean"))?;
        Ok(Flags(values.clone()))
    }

    /// The structs in a list column.
    pub(crate) fn structs(&self, column: Column<kind::Frames>) -> Result<Structs> {
        let name = column.name();
        let list = self.list(&name)?;
        match list.values().as_struct_opt() {
            Some(values) if values.null_count() == 0 => {
                Ok(Structs { offsets: list.offsets().clone(), values: RecordBatch::from(values) })
            }
            _ => Err(self.wrong(&name, "is not a list of structs")),
        }
    }

    pub(super) fn list(&self, name: &str) -> Result<&ListArray> {
        self.column(name)?.as_list_opt().ok_or_else(|| self.wrong(name, "is not a list"))
    }

    /// Rows of another batch that belong to the same file.
    pub(crate) const fn nested<'b>(&'b self, batch: &'b RecordBatch) -> Columns<'b> {
        Columns { path: self.path, batch }
    }
}

/// A column of lists of structs.
pub(crate) struct Structs {
    offsets: OffsetBuffer<i32>,
    /// Those of all rows, one after the other.
    pub(crate) values: RecordBatch,
}

impl Structs {
    /// Which of the values are a row's, if they are in the file.
    pub(crate) fn range(&self, row: usize) -> Option<Range<usize>> {
        let place = |index: usize| usize::try_from(*self.offsets.get(index)?).ok();
        let (start, end) = (place(row)?, place(row + 1)?);
        (start <= end && end <= self.values.num_rows()).then_some(start..end)
    }
}

/// A column of integers.
pub(crate) struct Numbers<'a> {
    columns: &'a Columns<'a>,
    name: Cow<'static, str>,
    values: Int64Array,
}

impl Numbers<'_> {
    #[inline]
    pub(crate) fn maybe(&self, row: usize) -> Option<i64> {
        (row < self.values.len() && self.values.is_valid(row)).then(|| self.values.value(row))
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Result<i64> {
        match self.maybe(row) {
            Some(value) => Ok(value),
            None => Err(self.wrong("is null where it must not be")),
        }
    }

    /// A count, an id, an energy: never negative.
    #[inline]
    pub(crate) fn natural<T: TryFrom<i64>>(&self, row: usize) -> Result<T> {
        self.as_natural(self.get(row)?)
    }

    pub(crate) fn maybe_natural<T: TryFrom<i64>>(&self, row: usize) -> Result<Option<T>> {
        self.maybe(row).map(|value| self.as_natural(value)).transpose()
    }

    #[inline]
    fn as_natural<T: TryFrom<i64>>(&self, value: i64) -> Result<T> {
        T::try_from(value).map_err(|_| self.wrong("is out of range"))
    }

    /// Apart, so that what millions of rows go through stays small.
    #[cold]
    pub(super) fn wrong(&self, problem: &'static str) -> DataSetError {
        self.columns.wrong(&self.name, problem)
    }
}

/// A column of text.
pub(crate) struct Texts<'a> {
    columns: &'a Columns<'a>,
    name: Cow<'static, str>,
    values: StringArray,
}

impl Texts<'_> {
    pub(crate) fn maybe(&self, row: usize) -> Option<&str> {
        (row < self.values.len() && self.values.is_valid(row)).then(|| self.values.value(row))
    }

    pub(crate) fn get(&self, row: usize) -> Result<&str> {
        self.maybe(row).ok_or_else(|| self.columns.wrong(&self.name, "is null where it must not be"))
    }

    /// One of a closed set of names.
    pub(crate) fn name_of<T>(&self, row: usize, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        find(self.get(row)?).ok_or_else(|| self.columns.wrong(&self.name, "has an unknown name"))
    }
}

/// A column of texts that repeat. Rows with one key have one text. The reverse usually holds, but
/// only for rows of one batch.
pub(crate) struct Names<'a> {
    columns: &'a Columns<'a>,
    name: Cow<'static, str>,
    values: DictionaryArray<Int32Type>,
    texts: StringArray,
}

impl Names<'_> {
    /// `None` for null.
    pub(crate) fn key(&self, row: usize) -> Option<usize> {
        self.values.key(row)
    }

    pub(crate) fn maybe(&self, row: usize) -> Result<Option<&str>> {
        match self.key(row) {
            None => Ok(None),
            Some(key) if key < self.texts.len() => Ok(Some(self.texts.value(key))),
            Some(_) => Err(self.columns.wrong(&self.name, "has a text that is not in its dictionary")),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Result<&str> {
        self.maybe(row)?.ok_or_else(|| self.columns.wrong(&self.name, "is null where it must not be"))
    }

    /// One of a closed set of names.
    pub(crate) fn name_of<T>(&self, row: usize, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        find(self.get(row)?).ok_or_else(|| self.columns.wrong(&self.name, "has an unknown name"))
    }
}

/// A column of yes and no.
pub(crate) struct Flags(BooleanArray);

impl Flags {
    pub(crate) fn maybe(&self, row: usize) -> Option<bool> {
        (row < self.0.len() && self.0.is_valid(row)).then(|| self.0.value(row))
    }
}
