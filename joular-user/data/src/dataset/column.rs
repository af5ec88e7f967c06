//! Defines a column once: a [`Column`] is its name, its type and its meaning. A table says which
//! columns it has and how each takes its value from a row ([`ColumnOf`]). The Arrow schema, the
//! file metadata, docs/schema.md and the written rows follow from the two. Readers ask for columns
//! by the same definitions ([`crate::dataset::read`]), so a misspelt name or a wrong type does not
//! compile.

use std::{borrow::Cow, marker::PhantomData, sync::Arc};

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use super::tables::FrameTable;
use crate::{model::frame::Frame, stacks::FrameId};

/// A table of the data set.
pub trait Table: Sized + 'static {
    /// Name of its folder.
    const NAME: &'static str;
    /// What one row stands for.
    const ROW: &'static str;
    /// Whether rows depend on the policy that energy is divided by.
    const BY_POLICY: bool;
    type Row<'a>;

    fn columns() -> Vec<ColumnOf<Self>>;
}

/// The definition of a column whose values are of kind `K`, see [`kind`]. Tables that
/// share a column share its definition.
#[derive(Clone, Copy)]
pub struct Column<K> {
    about: About,
    kind: PhantomData<fn() -> K>,
}

/// What a definition says to people.
#[derive(Clone, Copy)]
struct About {
    /// The pieces of the name: one for most columns, several where similar columns differ in a
    /// piece.
    name: [&'static str; 3],
    unit: &'static str,
    source: &'static str,
    meaning: &'static str,
    null: Option<&'static str>,
    hardly_repeats: bool,
    /// The schema version that it came with; 0: it was always there.
    since: i64,
}

impl<K> Column<K> {
    /// `source` says where the value comes from.
    pub(crate) const fn new(name: &'static str, source: &'static str, meaning: &'static str) -> Self {
        Self::joined(["", name, ""], source, meaning)
    }

    /// The same, with a name in pieces.
    pub(crate) const fn joined(name: [&'static str; 3], source: &'static str, meaning: &'static str) -> Self {
        let about = About { name, unit: "", source, meaning, null: None, hardly_repeats: false, since: 0 };
        Self { about, kind: PhantomData }
    }

    pub(crate) fn name(&self) -> Cow<'static, str> {
        self.about.name()
    }

    /// Sets the unit. Without it, values have no unit.
    pub(crate) const fn unit(mut self, unit: &'static str) -> Self {
        self.about.unit = unit;
        self
    }

    /// The same column, with another meaning in one table.
    pub(crate) const fn meaning(mut self, meaning: &'static str) -> Self {
        self.about.meaning = meaning;
        self
    }

    /// What null means; a column without it is never null.
    pub(crate) const fn null(mut self, meaning: &'static str) -> Self {
        self.about.null = Some(meaning);
        self
    }

    /// Says with which schema version the column came: files of the version before lack it. To be left out again when that
    /// version is not read any more.
    pub(crate) const fn since(mut self, version: i64) -> Self {
        self.about.since = version;
        self
    }

    /// Whether files of a schema version may lack it.
    pub(crate) const fn may_lack(&self, version: i64) -> bool {
        version < self.about.since
    }

    /// Whether it may be null.
    pub(crate) const fn is_nullable(&self) -> bool {
        self.about.null.is_some()
    }
}

impl Column<kind::Int> {
    /// Numbers that hardly repeat, such as energies.
    pub(crate) const fn quantity(name: &'static str, source: &'static str, meaning: &'static str) -> Self {
        Self::new(name, source, meaning).hardly_repeating()
    }

    pub(crate) const fn hardly_repeating(mut self) -> Self {
        self.about.hardly_repeats = true;
        self
    }

    /// The column in table `T`, as one of several that take their values from a row in the same
    /// way.
    pub(crate) fn of_item<T: Table>(self, position: usize, take: ExtractItem<T>) -> ColumnOf<T> {
        ColumnOf { about: self.about, get: Get::Item(position, take) }
    }
}

impl<K: kind::Kind> Column<K> {
    /// The column in table `T`, with how it takes its value from a row.
    pub(crate) fn of<T: Table>(self, take: K::Take<T>) -> ColumnOf<T> {
        ColumnOf { about: self.about, get: K::get(take) }
    }
}

impl About {
    fn name(&self) -> Cow<'static, str> {
        match self.name {
            ["", name, ""] => name.into(),
            pieces => pieces.concat().into(),
        }
    }
}

type Extract<T, V> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>) -> Option<V>;
type ExtractItem<T> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>, usize) -> i64;
type ExtractText<T> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>) -> Option<Cow<'r, str>>;
type ExtractList<T> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>) -> Vec<Cow<'r, str>>;
type ExtractFrames<T> = for<'r, 'a> fn(&'r <T as Table>::Row<'a>) -> Vec<KnownFrame<'r>>;

/// A frame, and the number that it alone has among those of a run.
pub type KnownFrame<'r> = ((u64, FrameId), &'r Frame);

/// The kinds of values that columns have. No value of these types ever exists: they only tell the
/// compiler what a column holds.
pub mod kind {
    use super::{Extract, ExtractFrames, ExtractList, ExtractText, Get, Table};

    /// What a column can hold, and how a row gives it.
    pub trait Kind {
        type Take<T: Table>;

        fn get<T: Table>(take: Self::Take<T>) -> Get<T>;
    }

    /// Kinds that are text in a file.
    pub trait Textual: Kind {}

    macro_rules! kinds {
        ($($(#[$doc:meta])* $name:ident from $take:ident$(<$value:ty>)? $(is $family:ident)?;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub enum $name {}

            impl Kind for $name {
                type Take<T: Table> = $take<T $(, $value)?>;

                fn get<T: Table>(take: Self::Take<T>) -> Get<T> {
                    Get::$name(take)
                }
            }

            $(impl $family for $name {})?
        )*};
    }

    kinds! {
        Int from Extract<i64>;
        Flag from Extract<bool>;
        /// Microseconds since 1970 UTC.
        Time from Extract<i64>;
        /// Text that repeats: kept as a dictionary.
        Name from ExtractText is Textual;
        /// Text that does not repeat.
        Text from ExtractText is Textual;
        TextList from ExtractList;
        Frames from ExtractFrames;
    }
}

/// How a column takes its value from a row, by its kind.
pub enum Get<T: Table> {
    Int(Extract<T, i64>),
    /// By a position.
    Item(usize, ExtractItem<T>),
    Flag(Extract<T, bool>),
    Time(Extract<T, i64>),
    Name(ExtractText<T>),
    Text(ExtractText<T>),
    TextList(ExtractList<T>),
    Frames(ExtractFrames<T>),
}

/// One column of table `T`.
pub struct ColumnOf<T: Table> {
    about: About,
    pub(crate) get: Get<T>,
}

impl<T: Table> ColumnOf<T> {
    pub fn name(&self) -> Cow<'static, str> {
        self.about.name()
    }

    /// Whether its values hardly repeat.
    pub const fn hardly_repeats(&self) -> bool {
        self.about.hardly_repeats
    }

    /// Empty for what has no unit.
    pub const fn unit(&self) -> &'static str {
        self.about.unit
    }

    /// Where the value comes from.
    pub const fn source(&self) -> &'static str {
        self.about.source
    }

    pub const fn meaning(&self) -> &'static str {
        self.about.meaning
    }

    /// What null means; `None`: it is never null.
    pub const fn null(&self) -> Option<&'static str> {
        self.about.null
    }

    /// The schema version that it came with; 0: it was always there.
    #[cfg(test)]
    pub(crate) const fn since(&self) -> i64 {
        self.about.since
    }

    /// The comment that the file of a run's row carries.
    pub fn comment(&self) -> String {
        let mut comment = self.meaning().to_owned();
        let facts = [("unit", self.unit()), ("source", self.source()), ("null", self.null().unwrap_or_default())];
        for (name, value) in facts {
            if !value.is_empty() {
                comment.push_str(&format!("; {name}: {value}"));
            }
        }
        comment
    }

    fn data_type(&self) -> DataType {
        match self.get {
            Get::Int(_) | Get::Item(..) => DataType::Int64,
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
            Get::Int(_) | Get::Item(..) => "int64",
            Get::Flag(_) => "boolean",
            Get::Time(_) => "timestamp (µs, UTC)",
            Get::Name(_) | Get::Text(_) => "string",
            Get::TextList(_) => "list of strings",
            Get::Frames(_) => "list of structs",
        }
    }

    fn field(&self) -> Field {
        Field::new(self.name(), self.data_type(), self.null().is_some())
    }
}

pub(crate) fn frame_item() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Struct(fields::<FrameTable>()), false))
}

fn fields<T: Table>() -> Fields {
    T::columns().iter().map(ColumnOf::field).collect()
}

pub fn schema<T: Table>() -> Arc<Schema> {
    Arc::new(Schema::new(fields::<T>()))
}

/// A count as a column holds it. Nothing we count reaches 2^63.
pub fn int(value: u64) -> Option<i64> {
    Some(i64::try_from(value).unwrap_or(i64::MAX))
}
