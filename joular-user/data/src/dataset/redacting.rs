//! Takes secrets out of files that hold command lines, for data sets that were recorded with them as they are. What a
//! reader could find anywhere in such a file is written anew: rows, dictionaries, and minima and maxima.

use std::{path::Path, sync::Arc};

use arrow_array::{
    ArrayRef, DictionaryArray, RecordBatch, StringArray,
    builder::{ListBuilder, StringBuilder},
    types::Int32Type,
};
use arrow_schema::{DataType, Field};

use super::{
    column::{Column, Table as _, kind},
    error::{DataSetError, Result},
    read::{
        columns::{Columns, TableFile},
        footer::Footer,
    },
    store::StoredFile,
    tables::{Processes, Runs, processes, runs, shared},
    write::MergedFile,
};
use crate::redact::{CommandLines, Redacted, Redaction, Why};

/// Columns of table `processes` that may repeat a part of the command line.
const NAMES: [Column<kind::Name>; 3] = [processes::MAIN_CLASS, processes::SERVICE, processes::VERSION];

/// Where a table has command lines.
fn command_line_of(table: &str) -> Option<Column<kind::TextList>> {
    match table {
        Processes::NAME => Some(processes::COMMAND_LINE),
        Runs::NAME => Some(runs::COMMAND_LINE),
        _ => None,
    }
}

/// The content of a file as it is to be shown. It is the file's own if there is nothing to change. Of a table in a bundle it
/// is a file of that table.
pub(crate) fn file(
    table: &'static str,
    stored: &StoredFile,
    most_bytes: u64,
    redaction: &Redaction,
) -> Result<Vec<u8>> {
    let own = if stored.table().is_some() { None } else { Some(stored.read_whole(most_bytes)?) };
    let own = match own {
        Some(own) if redaction.shown == CommandLines::Full || command_line_of(table).is_none() => return Ok(own),
        own => own,
    };
    let footer = Footer::read(stored)?;
    let mut made = MergedFile::start(table, footer.schema, footer.metadata)?;
    let mut has_changed = false;
    let mut rows = TableFile::open(stored)?;
    while let Some(read) = rows.next_batch().transpose()? {
        let redacted = batch(table, (&rows.columns(&read), &read), &stored.path(), redaction)?;
        has_changed |= redacted.is_some();
        made.write(redacted.as_ref().unwrap_or(&read))?;
    }
    match own {
        Some(own) if !has_changed => Ok(own),
        _ => Ok(made.into_bytes()?),
    }
}

/// Rows of a table as they are to be shown; `None`: as they are.
pub(crate) fn batch(
    table: &str,
    (columns, batch): (&Columns<'_>, &RecordBatch),
    path: &Path,
    redaction: &Redaction,
) -> Result<Option<RecordBatch>> {
    let Some(command_line) = command_line_of(table).filter(|_| redaction.shown != CommandLines::Full) else {
        return Ok(None);
    };
    let lines = columns.text_lists(command_line)?;
    let all: Vec<Vec<&str>> = (0..columns.rows()).map(|row| lines.of(row)).collect();
    let redacted: Vec<Redacted> = all.iter().map(|words| redaction.words(words)).collect();
    let mut has_changed = redacted.iter().zip(&all).any(|(redacted, words)| redacted.words != *words);
    let mut arrays: Vec<ArrayRef> = batch.columns().to_vec();
    for (array, field) in arrays.iter_mut().zip(batch.schema_ref().fields()) {
        if *field.name() == command_line.name() {
            *array = word_lists(redacted.iter().map(|line| &line.words), field);
        }
        let Some(column) = NAMES.into_iter().find(|column| table == Processes::NAME && *field.name() == column.name())
        else {
            continue;
        };
        let texts = columns.texts(column)?;
        let known = (0..columns.rows()).map(|row| texts.maybe(row));
        let shown: Vec<Option<String>> = known
            .clone()
            .zip(&redacted)
            .map(|(text, redacted)| text.map(|text| redaction.named(redacted, text).unwrap_or_else(|| text.to_owned())))
            .collect();
        if !known.eq(shown.iter().map(Option::as_deref)) {
            has_changed = true;
            let shown = shown.iter().map(Option::as_deref);
            *array = match field.data_type() {
                DataType::Dictionary(..) => Arc::new(shown.collect::<DictionaryArray<Int32Type>>()),
                _ => Arc::new(shown.collect::<StringArray>()),
            };
        }
    }
    if !has_changed {
        return Ok(None);
    }
    let made = RecordBatch::try_new(batch.schema(), arrays);
    made.map(Some).map_err(|cause| DataSetError::Arrow { path: path.into(), cause })
}

/// A column of lists of words, such as command lines.
pub(crate) fn word_lists<W: AsRef<str>>(
    lines: impl IntoIterator<Item = impl IntoIterator<Item = W>>,
    field: &Field,
) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    if let DataType::List(item) = field.data_type() {
        lists = lists.with_field(Arc::clone(item));
    }
    for line in lines {
        line.into_iter().for_each(|word| lists.values().append_value(word));
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// A secret in a file of a table.
#[derive(Debug)]
pub(crate) struct InRow {
    pub(crate) column: String,
    /// Of the process, in table `processes`.
    pub(crate) pid: Option<i64>,
    pub(crate) why: Why,
}

/// Says of each secret in a file where it is.
pub(crate) fn find(
    table: &str,
    stored: &StoredFile,
    redaction: &Redaction,
    mut found: impl FnMut(InRow),
) -> Result<()> {
    let Some(command_line) = command_line_of(table) else { return Ok(()) };
    TableFile::open(stored)?.batches(|columns| {
        let lines = columns.text_lists(command_line)?;
        for row in 0..columns.rows() {
            let pid = if table == Processes::NAME { columns.ints(shared::PID)?.maybe(row) } else { None };
            let redacted = redaction.words(&lines.of(row));
            for secret in &redacted.secrets {
                let column = command_line.name().into_owned();
                found(InRow { column, pid, why: secret.why.clone() });
            }
            for column in NAMES.into_iter().filter(|_| table == Processes::NAME) {
                if let Some(text) = columns.texts(column)?.maybe(row)
                    && redaction.named(&redacted, text).is_some()
                {
                    found(InRow { column: column.name().into_owned(), pid, why: Why::Repeated });
                }
            }
        }
        Ok(())
    })
}
