//! Writes the files of one number together; they hold the same windows.

use arrow_array::RecordBatch;

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
    publish(store, info, place, rows, encode::file::<T>)
}

/// The same for rows of long windows.
pub(crate) fn write_long<T: Table>(
    store: &dyn Store,
    info: &RunInfo,
    place: &FilePlace,
    rows: &mut Buffer<T>,
) -> Result<()> {
    publish(store, info, place, rows, encode::long_file::<T>)
}

fn publish<T: Table>(
    store: &dyn Store,
    info: &RunInfo,
    place: &FilePlace,
    rows: &mut Buffer<T>,
    encode: impl Fn(&RecordBatch, &RunInfo) -> Result<Vec<u8>>,
) -> Result<()> {
    if rows.load() == 0 {
        return Ok(());
    }
    let batch = rows.finish().map_err(OutputError::encode(T::NAME))?;
    store.publish(&place.folder(T::NAME), &place.name, &encode(&batch, info)?)
}
