//! Finds the files of a table in the runs of a data set.

use std::path::PathBuf;

use super::{catalog::Run, filter::Filter, reader::DataSet};
use crate::dataset::{column::Table, read::span::Span, store::StoredFile};

impl DataSet {
    /// The file of the first run's row.
    pub(super) fn first_row(&self) -> Option<PathBuf> {
        self.files.first().map(|files| files.row.path())
    }

    /// Says that these tables will be read, run by run.
    pub(super) fn expect(&self, tables: &[&str]) {
        StoredFile::expect(self.files.iter().flat_map(|files| files.of(tables)));
    }

    /// A run's files of a table, in the order in which they were written.
    pub(super) fn files<T: Table>(&self, run: usize) -> Vec<StoredFile> {
        self.files[run].parts.iter().filter_map(|(_, part)| part.file::<T>()).cloned().collect()
    }

    /// The files of a table of all runs, of which all rows are wanted.
    pub(super) fn whole<T: Table>(&self) -> Vec<(Vec<StoredFile>, Span)> {
        (0..self.files.len()).map(|run| (self.files::<T>(run), Span::default())).collect()
    }

    /// The same with the rows of the windows that `filter` allows.
    pub(super) fn allowed<T: Table>(&self, filter: &Filter) -> Vec<(Vec<StoredFile>, Span)> {
        let of_run = |(run, row): (usize, &Run)| (self.files::<T>(run), filter.span(row));
        self.catalog.runs.iter().enumerate().map(of_run).collect()
    }
}
