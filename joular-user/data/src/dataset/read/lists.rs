//! Reads columns of lists of texts.

use arrow_array::{
    Array, ListArray, StringArray,
    builder::{ListBuilder, StringBuilder},
    cast::AsArray as _,
};

/// A column of lists of texts.
pub(crate) struct TextLists {
    lists: ListArray,
    values: StringArray,
}

impl TextLists {
    /// Of so many rows, without any text.
    pub(super) fn absent(rows: usize) -> Self {
        let mut lists = ListBuilder::new(StringBuilder::new());
        (0..rows).for_each(|_| lists.append(true));
        Self { lists: lists.finish(), values: StringArray::new_null(0) }
    }

    /// `None`: it is not one.
    pub(super) fn of_column(column: &dyn Array) -> Option<Self> {
        let lists: ListArray = column.as_list_opt()?.clone();
        let values = lists.values().as_string_opt::<i32>()?.clone();
        Some(Self { lists, values })
    }

    /// The list of a row; a null is an empty one.
    pub(crate) fn of(&self, row: usize) -> Vec<&str> {
        if self.lists.is_null(row) {
            return Vec::new();
        }
        let offsets = self.lists.value_offsets();
        let (begin, end) = (offsets[row], offsets[row + 1]);
        let places = usize::try_from(begin).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
        places.filter(|place| self.values.is_valid(*place)).map(|place| self.values.value(place)).collect()
    }
}
