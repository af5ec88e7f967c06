//! Reads columns of lists of texts.

use arrow_array::{Array as _, ListArray, StringArray, cast::AsArray};

use super::columns::Columns;
use crate::dataset::{
    column::{Column, Named as _, kind},
    error::Result,
};

impl Columns<'_> {
    pub(crate) fn text_lists(&self, column: Column<kind::TextList>) -> Result<TextLists> {
        let name = column.name();
        let lists = self.list(&name)?.clone();
        let values = lists.values().as_string_opt::<i32>().cloned();
        let values = values.ok_or_else(|| self.wrong(&name, "is not a list of texts"))?;
        Ok(TextLists { lists, values })
    }
}

/// A column of lists of texts.
pub(crate) struct TextLists {
    lists: ListArray,
    values: StringArray,
}

impl TextLists {
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
