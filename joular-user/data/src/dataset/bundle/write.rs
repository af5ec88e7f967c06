//! Makes the bundle of a run from the files of its tables.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use parquet::schema::types::ColumnPath;

use super::TABLE;
use crate::{
    dataset::{
        column::{self, Table},
        error::{DataSetError, Result},
        read::{
            columns::TableFile,
            files::RunFiles,
            footer::Footer,
            run_row::{self, RunRow},
        },
        redacting,
        schema::{Kinds, key},
        store::{Hour, StoredFile},
        tables::{ForTable, Runs, TABLES, Windows, list, shared},
        write::encode::{self, NestedTable},
    },
    model::units::UnixMicros,
    output::OutputError,
    redact::Redaction,
};

/// Bytes of the files that become a bundle: its rows are in memory while it is made, and those of a table while it is read.
const MOST_BYTES: u64 = 32 << 20;
/// Rows of a table of which a dictionary, with the header of its page, is larger than the names that it spares: most tables of a
/// host that idles.
const SHORT_ROWS: usize = 100;
const HOUR_US: i64 = 3_600_000_000;
/// As the Parquet format names the items of lists.
const ITEM: &str = "element";

/// Whether a rolled-up run may be a bundle: it is not large, and its windows begin in the hour of its start or in the next
/// one. So whoever wants an hour looks into this one and the one before.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn fits(row: &RunRow, files: &RunFiles) -> Result<bool> {
    let next = Hour::of(UnixMicros(row.info.started.0.saturating_add(HOUR_US)));
    let mut bytes = files.row.size_bytes()?;
    for (_, part) in &files.parts {
        for file in TABLES.into_iter().filter_map(|table| part.named(table)) {
            bytes = bytes.saturating_add(file.size_bytes()?);
        }
        let spans = part.file::<Windows>().map(Footer::read).transpose()?.and_then(|footer| footer.windows);
        if spans.is_some_and(|(_, last)| Hour::of(UnixMicros(last)) > next) {
            return Ok(false);
        }
    }
    Ok(row.rolled_up_from_ns.is_some() && bytes <= MOST_BYTES)
}

/// The bytes of a run's bundle, made from files of tables or from a bundle. Command lines are as they are to be shown. Equal
/// runs give equal bytes.
///
/// # Errors
/// If the run is no rollup, or a file cannot be read.
pub(crate) fn encode(files: &RunFiles, redaction: &Redaction) -> Result<Vec<u8>> {
    if run_row::read(&files.row)?.rolled_up_from_ns.is_none() {
        let problem = "it is as recorded, and only rollups are kept in one file: roll it up".to_owned();
        return Err(DataSetError::RollUp { path: files.row.path(), problem });
    }
    let mut tables = Tables { files, redaction, fields: Vec::new(), columns: Vec::new(), nested: Vec::new() };
    tables.add::<Runs>()?;
    let mut each = Each(&mut tables, Ok(()));
    list::each_in_rollup(&mut each);
    each.1?;
    let failed = |cause| DataSetError::Arrow { path: files.row.path(), cause };
    let Tables { fields, columns, nested, .. } = tables;
    let row = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(failed)?;
    let mut metadata = Footer::read(&files.row)?.metadata;
    // Comments of all columns would be a third of an idle host's bundle.
    metadata.retain(|(name, _)| ![key::TABLE, key::COMMENTS].contains(&name.as_str()));
    metadata.push((key::TABLE.to_owned(), TABLE.to_owned()));
    Ok(encode::nested(&row, metadata, &nested).map_err(OutputError::encode(TABLE))?)
}

/// Adds tables until one fails.
struct Each<'a, 'f>(&'a mut Tables<'f>, Result<()>);

impl ForTable for Each<'_, '_> {
    fn table<T: Table>(&mut self) {
        if self.1.is_ok() {
            self.1 = self.0.add::<T>();
        }
    }
}

/// The columns of a bundle.
struct Tables<'a> {
    files: &'a RunFiles,
    redaction: &'a Redaction,
    fields: Vec<FieldRef>,
    columns: Vec<ArrayRef>,
    nested: Vec<NestedTable>,
}

impl Tables<'_> {
    fn add<T: Table>(&mut self) -> Result<()> {
        let files: Vec<&StoredFile> =
            if T::NAME == Runs::NAME { vec![&self.files.row] } else { self.files.of(&[T::NAME]).collect() };
        let rows = self.rows(T::NAME, &files, column::schema::<T>())?;
        let failed = |cause| DataSetError::Arrow { path: self.files.row.path(), cause };
        let item = Arc::new(Field::new(ITEM, DataType::Struct(rows.schema().fields().clone()), false));
        let offsets = OffsetBuffer::from_lengths([rows.num_rows()]);
        let mut nested = NestedTable::default();
        let path = |name: &str| ColumnPath::new([T::NAME, "list", ITEM, name].map(str::to_owned).to_vec());
        if rows.num_rows() <= SHORT_ROWS {
            item_leaves(&mut vec![T::NAME.to_owned(), "list".to_owned()], &item, &mut nested.short);
        } else {
            nested.quantities = encode::merged_quantities(&Kinds::of::<T>()).iter().map(|name| path(name)).collect();
        }
        if T::NAME == Windows::NAME {
            nested.ordered.push(path(&shared::WINDOW_START.name()));
        }
        let lists = ListArray::try_new(item, offsets, Arc::new(StructArray::from(rows)), None).map_err(failed)?;
        self.fields.push(Arc::new(Field::new(T::NAME, lists.data_type().clone(), false)));
        self.columns.push(Arc::new(lists));
        self.nested.push(nested);
        Ok(())
    }

    /// The rows of all files of a table. Without files they have the columns of a table that is written now.
    fn rows(&self, table: &'static str, files: &[&StoredFile], empty: SchemaRef) -> Result<RecordBatch> {
        let mut batches: Vec<RecordBatch> = Vec::new();
        for file in files {
            let mut rows = TableFile::open(file)?;
            while let Some(batch) = rows.next_batch().transpose()? {
                let shown = redacting::batch(table, (&rows.columns(&batch), &batch), &file.path(), self.redaction)?;
                batches.push(shown.unwrap_or(batch));
            }
        }
        let Some(first) = batches.first() else { return Ok(RecordBatch::new_empty(empty)) };
        let failed = |cause| DataSetError::Arrow { path: self.files.row.path(), cause };
        concat_batches(&first.schema(), &batches).map_err(failed)
    }
}

/// The leaves below a field, which stands below `above`, as a file names them.
fn item_leaves(above: &mut Vec<String>, field: &Field, leaves: &mut Vec<ColumnPath>) {
    above.push(field.name().clone());
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().for_each(|field| item_leaves(above, field, leaves)),
        DataType::List(item) => {
            above.push("list".to_owned());
            item_leaves(above, &item.as_ref().clone().with_name(ITEM), leaves);
            above.pop();
        }
        _ => leaves.push(ColumnPath::new(above.clone())),
    }
    above.pop();
}
