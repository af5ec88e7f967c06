//! Writes the files of one number together; they hold the same windows.

use super::encode;
use crate::{
    dataset::{buffer::Buffer, column::Table, layout::FilePlace, store::Store, tables::ForRows},
    events::RunInfo,
    output::{OutputError, Result},
};

/// Writes the files of one number.
pub(crate) struct FlushWriter<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) info: &'a RunInfo,
    pub(crate) place: &'a FilePlace,
}

impl ForRows for FlushWriter<'_> {
    type Error = OutputError;

    fn rows<T: Table>(&mut self, rows: &mut Buffer<T>) -> Result<()> {
        write(self.store, self.info, self.place, rows)
    }
}

/// Publishes rows as a file, unless there are none.
pub(crate) fn write<T: Table>(
    store: &dyn Store,
    info: &RunInfo,
    place: &FilePlace,
    rows: &mut Buffer<T>,
) -> Result<()> {
    if rows.load() == 0 {
        return Ok(());
    }
    let batch = rows.finish().map_err(OutputError::encode(T::NAME))?;
    store.publish(&place.folder(T::NAME), &place.name, &encode::file::<T>(&batch, info)?)
}
