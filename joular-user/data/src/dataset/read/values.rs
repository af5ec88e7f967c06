//! Holds the values of columns, row by row.

use std::{borrow::Cow, ops::Range, path::Path};

use arrow_array::{Array as _, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray, types::Int32Type};
use arrow_buffer::OffsetBuffer;

use crate::dataset::error::{DataSetError, Result};

/// What is wrong with a column of a file.
pub(super) fn wrong(path: &Path, column: &str, problem: &'static str) -> DataSetError {
    DataSetError::Column { path: path.into(), column: column.to_owned(), problem }
}

/// A column of lists of structs.
pub(crate) struct Structs {
    pub(super) offsets: OffsetBuffer<i32>,
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
    pub(super) path: &'a Path,
    pub(super) name: Cow<'static, str>,
    pub(super) values: Int64Array,
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
        wrong(self.path, &self.name, problem)
    }
}

/// A column of text.
pub(crate) struct Texts<'a> {
    pub(super) path: &'a Path,
    pub(super) name: Cow<'static, str>,
    pub(super) values: StringArray,
}

impl Texts<'_> {
    pub(crate) fn maybe(&self, row: usize) -> Option<&str> {
        (row < self.values.len() && self.values.is_valid(row)).then(|| self.values.value(row))
    }

    pub(crate) fn get(&self, row: usize) -> Result<&str> {
        self.maybe(row).ok_or_else(|| wrong(self.path, &self.name, "is null where it must not be"))
    }

    /// One of a closed set of names.
    pub(crate) fn name_of<T>(&self, row: usize, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        find(self.get(row)?).ok_or_else(|| wrong(self.path, &self.name, "has an unknown name"))
    }
}

/// A column of texts that repeat. Rows with one key have one text. The reverse usually holds, but
/// only for rows of one batch.
pub(crate) struct Names<'a> {
    pub(super) path: &'a Path,
    pub(super) name: Cow<'static, str>,
    pub(super) values: DictionaryArray<Int32Type>,
    pub(super) texts: StringArray,
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
            Some(_) => Err(wrong(self.path, &self.name, "has a text that is not in its dictionary")),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Result<&str> {
        self.maybe(row)?.ok_or_else(|| wrong(self.path, &self.name, "is null where it must not be"))
    }

    /// One of a closed set of names.
    pub(crate) fn name_of<T>(&self, row: usize, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        find(self.get(row)?).ok_or_else(|| wrong(self.path, &self.name, "has an unknown name"))
    }
}

/// A column of yes and no.
pub(crate) struct Flags(pub(super) BooleanArray);

impl Flags {
    pub(crate) fn maybe(&self, row: usize) -> Option<bool> {
        (row < self.0.len() && self.0.is_valid(row)).then(|| self.0.value(row))
    }
}
