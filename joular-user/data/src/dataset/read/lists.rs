//! Reads columns of lists of texts.

use arrow_array::{Array as _, ListArray, StringArray, cast::AsArray};

use super::columns::Columns;
use crate::dataset::{
    column::{Column, Named as _, kind},
    error::Result,
};

impl Columns<'_> {
    /// The texts of a list column, row after row.
    pub(crate) fn text_lists(&self, column: Column<kind::TextList>) -> Result<StringArray> {
        let name = column.name();
        let values = self.list(&name)?.values();
        values.as_string_opt::<i32>().cloned().ok_or_else(|| self.wrong(&name, "is no list of texts"))
    }

    /// A list column that files from before it lack: there its lists are empty.
    pub(crate) fn text_lists_if_any(&self, column: Column<kind::TextList>) -> Result<TextLists> {
        if !self.has(&column) {
            return Ok(TextLists(None));
        }
        let values = self.text_lists(column)?;
        Ok(TextLists(Some((self.list(&column.name())?.clone(), values))))
    }
}

/// A column of lists of texts.
pub(crate) struct TextLists(Option<(ListArray, StringArray)>);

impl TextLists {
    /// The list of a row; a null is an empty one.
    pub(crate) fn of(&self, row: usize) -> Vec<&str> {
        let Some((lists, values)) = self.0.as_ref().filter(|(lists, _)| lists.is_valid(row)) else { return Vec::new() };
        let offsets = lists.value_offsets();
        let (begin, end) = (offsets[row], offsets[row + 1]);
        let places = usize::try_from(begin).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
        places.filter(|place| values.is_valid(*place)).map(|place| values.value(place)).collect()
    }
}
