//! Keeps the rows of a table that wait to be written, column by column.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, ListArray, RecordBatch, StructArray,
    builder::{
        BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder, TimestampMicrosecondBuilder,
    },
    types::Int32Type,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;

use super::{
    column::{ColumnOf, Get, Table, frame_item, schema},
    tables::FrameTable,
};

/// A column's values so far.
enum Cells {
    Int(Int64Builder),
    Flag(BooleanBuilder),
    Time(TimestampMicrosecondBuilder),
    Name(StringDictionaryBuilder<Int32Type>),
    Text(StringBuilder),
    TextList(ListBuilder<StringBuilder>),
    Frames { ends: Vec<i32>, frames: Box<Buffer<FrameTable>> },
}

impl Cells {
    fn new<T: Table>(get: &Get<T>) -> Self {
        match get {
            Get::Int(_) | Get::Item(..) => Self::Int(Int64Builder::new()),
            Get::Flag(_) => Self::Flag(BooleanBuilder::new()),
            Get::Time(_) => Self::Time(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            Get::Name(_) => Self::Name(StringDictionaryBuilder::new()),
            Get::Text(_) => Self::Text(StringBuilder::new()),
            Get::TextList(_) => Self::TextList(ListBuilder::new(StringBuilder::new())),
            Get::Frames(_) => Self::Frames { ends: vec![0], frames: Box::new(Buffer::new()) },
        }
    }

    fn push<T: Table>(&mut self, get: &Get<T>, row: &T::Row<'_>) -> Result<(), ArrowError> {
        match (self, get) {
            (Self::Int(cells), Get::Int(get)) => cells.append_option(get(row)),
            (Self::Int(cells), Get::Item(index, get)) => cells.append_value(get(row, *index)),
            (Self::Flag(cells), Get::Flag(get)) => cells.append_option(get(row)),
            (Self::Time(cells), Get::Time(get)) => cells.append_option(get(row)),
            (Self::Text(cells), Get::Text(get)) => cells.append_option(get(row)),
            (Self::Name(cells), Get::Name(get)) => match get(row) {
                Some(name) => {
                    cells.append(name)?;
                }
                None => cells.append_null(),
            },
            (Self::TextList(cells), Get::TextList(get)) => cells.append_value(get(row).into_iter().map(Some)),
            (Self::Frames { ends, frames }, Get::Frames(get)) => {
                for frame in get(row) {
                    frames.push(&frame)?;
                }
                ends.push(i32::try_from(frames.rows).map_err(|_| ArrowError::OffsetOverflowError(frames.rows))?);
            }
            _ => return Err(ArrowError::SchemaError("a column's builder is not of its type".into())),
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Int(cells) => Arc::new(cells.finish()),
            Self::Flag(cells) => Arc::new(cells.finish()),
            Self::Time(cells) => Arc::new(cells.finish()),
            Self::Name(cells) => Arc::new(cells.finish()),
            Self::Text(cells) => Arc::new(cells.finish()),
            Self::TextList(cells) => Arc::new(cells.finish()),
            Self::Frames { ends, frames } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(ends, vec![0])));
                let values = StructArray::from(frames.finish()?);
                Arc::new(ListArray::try_new(frame_item(), offsets, Arc::new(values), None)?)
            }
        })
    }
}

/// Rows of one table, kept column by column until they are written.
pub struct Buffer<T: Table> {
    columns: Vec<(ColumnOf<T>, Cells)>,
    rows: usize,
}

impl<T: Table> Default for Buffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Table> Buffer<T> {
    pub fn new() -> Self {
        let with_cells = |column: ColumnOf<T>| {
            let cells = Cells::new(&column.get);
            (column, cells)
        };
        Self { columns: T::columns().into_iter().map(with_cells).collect(), rows: 0 }
    }

    /// Number of rows, or of the frames in them where there are more of those. Memory grows with
    /// it.
    pub fn load(&self) -> usize {
        let frames = self.columns.iter().map(|(_, cells)| match cells {
            Cells::Frames { frames, .. } => frames.rows,
            _ => 0,
        });
        frames.fold(self.rows, usize::max)
    }

    pub fn push(&mut self, row: &T::Row<'_>) -> Result<(), ArrowError> {
        for (column, cells) in &mut self.columns {
            cells.push(&column.get, row)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Takes all rows out.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        self.rows = 0;
        let arrays: Result<Vec<ArrayRef>, ArrowError> =
            self.columns.iter_mut().map(|(_, cells)| cells.finish()).collect();
        RecordBatch::try_new(schema::<T>(), arrays?)
    }
}
