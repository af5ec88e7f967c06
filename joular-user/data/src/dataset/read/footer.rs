//! Reads what a file says of itself, without its rows.

use arrow_schema::SchemaRef;
use parquet::{
    arrow::ARROW_SCHEMA_META_KEY,
    basic::Type,
    file::{
        metadata::{ParquetMetaData, RowGroupMetaData},
        statistics::Statistics,
    },
};

use super::builder::builder;
use crate::dataset::{error::Result, store::StoredFile, tables::shared::WINDOW_START};

/// A file's footer, as far as merging and copying need it.
pub(crate) struct Footer {
    pub(crate) schema: SchemaRef,
    /// Without the library's own key.
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) rows: u64,
    /// Number of values of the longest column: rows, or frames of stacks.
    pub(crate) load: u64,
    /// First and last `window_start`.
    pub(crate) windows: Option<(i64, i64)>,
}

impl Footer {
    pub(crate) fn read(file: &StoredFile) -> Result<Self> {
        let (builder, _) = builder(file)?;
        let file = builder.metadata().file_metadata();
        let pairs = file.key_value_metadata().into_iter().flatten();
        let own = pairs.filter(|pair| pair.key != ARROW_SCHEMA_META_KEY);
        let groups = builder.metadata().row_groups();
        let natural = |count: i64| u64::try_from(count).unwrap_or(0);
        let loads = groups.iter().map(|group| group.columns().iter().map(|column| natural(column.num_values())).max());
        let ranges = || groups.iter().filter_map(windows);
        Ok(Self {
            schema: builder.schema().clone(),
            metadata: own.map(|pair| (pair.key.clone(), pair.value.clone().unwrap_or_default())).collect(),
            rows: natural(file.num_rows()),
            load: loads.flatten().fold(0, u64::saturating_add),
            windows: ranges().map(|(first, _)| first).min().zip(ranges().map(|(_, last)| last).max()),
        })
    }
}

/// First and last `window_start` of a row group, if it has them.
pub(crate) fn windows(group: &RowGroupMetaData) -> Option<(i64, i64)> {
    let name = WINDOW_START.name();
    let column = group.columns().iter().find(|column| column.column_path().string() == name)?;
    match column.statistics()? {
        Statistics::Int64(values) => values.min_opt().copied().zip(values.max_opt().copied()),
        _ => None,
    }
}

/// Whether a column of texts is known to be null everywhere.
pub(crate) fn has_no_text(metadata: &ParquetMetaData, column: usize) -> bool {
    metadata.row_groups().iter().all(|group| {
        group.columns().get(column).is_some_and(|column| {
            let nulls = column.statistics().and_then(Statistics::null_count_opt);
            column.column_type() == Type::BYTE_ARRAY && nulls == u64::try_from(column.num_values()).ok()
        })
    })
}
