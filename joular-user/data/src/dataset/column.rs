//! A column is defined once: its name, its meaning, and how to take it from a
//! row. The Arrow schema, the file metadata, docs/schema.md and the rows that
//! are written all follow from that one definition.

use std::{borrow::Cow, sync::Arc};

use arrow::{
    array::{
        ArrayRef, BooleanBuilder, Int64Builder, ListArray, ListBuilder, RecordBatch, StringBuilder,
        StringDictionaryBuilder, StructArray, TimestampMicrosecondBuilder,
    },
    buffer::{OffsetBuffer, ScalarBuffer},
    datatypes::{DataType, Field, Fields, Int32Type, Schema, TimeUnit},
    error::ArrowError,
};

use super::tables::FrameTable;
use crate::model::frame::Frame;

/// A table of the data set.
pub trait Table: Sized + 'static {
    /// Name of its folder.
    const NAME: &'static str;
    /// What one row stands for.
    const ROW: &'static str;
    /// Whether rows depend on the policy that energy is divided by.
    const BY_POLICY: bool;
    type Row<'a>;

    fn columns() -> Vec<Column<Self>>;
}

type Extract<T, V> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>) -> Option<V>;
type ExtractText<T> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>) -> Option<Cow<'r, str>>;
type ExtractList<T> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>) -> &'r [String];
type ExtractFrames<T> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>) -> Vec<&'r Frame>;

/// The type of a column, and how its value is taken from a row.
pub enum Get<T: Table> {
    /// A number of which there are few, such as an id or a count of samples.
    Int(Extract<T, i64>),
    /// A number that hardly repeats, such as an energy.
    Quantity(Extract<T, i64>),
    /// One of several like numbers, by position.
    Item(usize, for<'r, 'a> fn(&'r T::Row<'a>, usize) -> i64),
    Flag(Extract<T, bool>),
    /// Microseconds since 1970 UTC.
    Time(Extract<T, i64>),
    /// Text that repeats: kept as a dictionary.
    Name(ExtractText<T>),
    /// Text that does not repeat.
    Text(ExtractText<T>),
    TextList(ExtractList<T>),
    Frames(ExtractFrames<T>),
}

/// One column of table `T`.
pub struct Column<T: Table> {
    pub name: Cow<'static, str>,
    pub get: Get<T>,
    /// Empty for what has no unit.
    pub unit: &'static str,
    /// Where the value comes from.
    pub source: &'static str,
    pub meaning: &'static str,
    /// What null means; a column without it is never null.
    pub null: Option<&'static str>,
}

impl<T: Table> Column<T> {
    pub fn new(name: impl Into<Cow<'static, str>>, get: Get<T>, source: &'static str, meaning: &'static str) -> Self {
        Self { name: name.into(), get, unit: "", source, meaning, null: None }
    }

    pub fn unit(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub fn null(self, meaning: &'static str) -> Self {
        Self { null: Some(meaning), ..self }
    }

    /// The comment that the file of a run's row carries.
    pub fn comment(&self) -> String {
        let mut comment = self.meaning.to_owned();
        for (name, value) in [("unit", self.unit), ("source", self.source), ("null", self.null.unwrap_or_default())] {
            if !value.is_empty() {
                comment.push_str(&format!("; {name}: {value}"));
            }
        }
        comment
    }

    fn data_type(&self) -> DataType {
        match self.get {
            Get::Int(_) | Get::Quantity(_) | Get::Item(..) => DataType::Int64,
            Get::Flag(_) => DataType::Boolean,
            Get::Time(_) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Get::Name(_) => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Get::Text(_) => DataType::Utf8,
            Get::TextList(_) => DataType::new_list(DataType::Utf8, true),
            Get::Frames(_) => DataType::List(frame_item()),
        }
    }

    /// The type as docs/schema.md names it.
    pub const fn type_name(&self) -> &'static str {
        match self.get {
            Get::Int(_) | Get::Quantity(_) | Get::Item(..) => "int64",
            Get::Flag(_) => "boolean",
            Get::Time(_) => "timestamp (µs, UTC)",
            Get::Name(_) | Get::Text(_) => "string",
            Get::TextList(_) => "list of strings",
            Get::Frames(_) => "list of structs",
        }
    }

    pub fn field(&self) -> Field {
        Field::new(self.name.as_ref(), self.data_type(), self.null.is_some())
    }
}

fn frame_item() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Struct(fields::<FrameTable>()), false))
}

pub fn fields<T: Table>() -> Fields {
    T::columns().iter().map(Column::field).collect()
}

pub fn schema<T: Table>() -> Arc<Schema> {
    Arc::new(Schema::new(fields::<T>()))
}

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
            Get::Int(_) | Get::Quantity(_) | Get::Item(..) => Self::Int(Int64Builder::new()),
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
            (Self::Int(cells), Get::Int(get) | Get::Quantity(get)) => cells.append_option(get(row)),
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
            (Self::TextList(cells), Get::TextList(get)) => cells.append_value(get(row).iter().map(Some)),
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
    columns: Vec<(Column<T>, Cells)>,
    rows: usize,
}

impl<T: Table> Default for Buffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Table> Buffer<T> {
    pub fn new() -> Self {
        let with_cells = |column: Column<T>| {
            let cells = Cells::new(&column.get);
            (column, cells)
        };
        Self { columns: T::columns().into_iter().map(with_cells).collect(), rows: 0 }
    }

    /// Rows, or the frames in them where those are more: what memory goes by.
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

/// A count as a column holds it. Nothing we count reaches 2^63.
pub fn int(value: u64) -> Option<i64> {
    Some(i64::try_from(value).unwrap_or(i64::MAX))
}
