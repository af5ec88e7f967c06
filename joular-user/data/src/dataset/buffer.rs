//! Keeps the rows of a table that wait to be written, column by column.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use arrow_array::{
    ArrayRef, ListArray, RecordBatch, StructArray, UInt32Array,
    builder::{
        BooleanBuilder, Int64Builder, ListBuilder, StringBuilder, StringDictionaryBuilder, TimestampMicrosecondBuilder,
    },
    types::Int32Type,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::ArrowError;
use arrow_select::take::take;
use foldhash::fast::RandomState;

use super::{
    column::{ColumnOf, Get, KnownFrame, Table, frame_item, schema},
    tables::FrameTable,
};
use crate::stacks::FrameId;

/// A column's values so far.
enum Cells {
    Int(Int64Builder),
    Flag(BooleanBuilder),
    Time(TimestampMicrosecondBuilder),
    Name(StringDictionaryBuilder<Int32Type>),
    Text(StringBuilder),
    TextList(ListBuilder<StringBuilder>),
    Frames(Box<Frames>),
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
            Get::Frames(_) => Self::Frames(Box::default()),
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
            (Self::Frames(frames), Get::Frames(get)) => frames.push(get(row))?,
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
            Self::Frames(frames) => Arc::new(frames.finish()?),
        })
    }
}

/// Lists of frames. Most frames are in many of them, so each is kept once, and found without a look at its names.
#[derive(Default)]
struct Frames {
    known: Buffer<FrameTable>,
    places: HashMap<(u64, FrameId), u32, RandomState>,
    /// Places of the frames of all lists.
    rows: Vec<u32>,
    /// Of each list, in `rows`.
    ends: Vec<i32>,
}

impl Frames {
    fn push(&mut self, frames: Vec<KnownFrame<'_>>) -> Result<(), ArrowError> {
        for (id, frame) in frames {
            let place = match self.places.entry(id) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let place = u32::try_from(self.known.rows).map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
                    self.known.push(&frame)?;
                    *new.insert(place)
                }
            };
            self.rows.push(place);
        }
        let end = self.rows.len();
        self.ends.push(i32::try_from(end).map_err(|_| ArrowError::OffsetOverflowError(end))?);
        Ok(())
    }

    fn finish(&mut self) -> Result<ListArray, ArrowError> {
        let Self { mut known, rows, ends, .. } = std::mem::take(self);
        let values = take(&StructArray::from(known.finish()?), &UInt32Array::from(rows), None)?;
        let offsets = [0].into_iter().chain(ends).collect::<ScalarBuffer<i32>>();
        ListArray::try_new(frame_item(), OffsetBuffer::new(offsets), values, None)
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
            Cells::Frames(frames) => frames.rows.len(),
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
