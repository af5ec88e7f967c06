//! Reads what a file says of itself, without its rows.

use arrow_schema::SchemaRef;
use parquet::{
    arrow::ARROW_SCHEMA_META_KEY,
    basic::Type,
    file::{
        metadata::{KeyValue, ParquetMetaData, RowGroupMetaData},
        statistics::Statistics,
    },
};

use super::{builder::builder, nested};
use crate::dataset::{
    column::Table as _,
    error::Result,
    schema::key,
    store::StoredFile,
    tables::{Windows, shared::WINDOW_START},
};

/// A file's footer, as far as merging and copying need it; of a table in a bundle, as its own file would have it.
pub(crate) struct Footer {
    pub(crate) schema: SchemaRef,
    /// Without the library's own key.
    pub(crate) metadata: Vec<(String, String)>,
    /// Of a bundle, at most.
    pub(crate) rows: u64,
    /// Number of values of the longest column: rows, or frames of stacks.
    pub(crate) load: u64,
    /// First and last `window_start`.
    pub(crate) windows: Option<(i64, i64)>,
}

impl Footer {
    pub(crate) fn read(file: &StoredFile) -> Result<Self> {
        let (builder, _) = builder(file)?;
        let table = file.table();
        let of_file = builder.metadata().file_metadata();
        let pairs = of_file.key_value_metadata().into_iter().flatten();
        let own = pairs.filter(|pair| pair.key != ARROW_SCHEMA_META_KEY);
        let value = |pair: &KeyValue| match table {
            Some(table) if pair.key == key::TABLE => table.to_owned(),
            _ => pair.value.clone().unwrap_or_default(),
        };
        let groups = builder.metadata().row_groups();
        let natural = |count: i64| u64::try_from(count).unwrap_or(0);
        let values = |group: &RowGroupMetaData| {
            let columns = group.columns().iter();
            let of_table = columns.filter(|column| nested::within(column.column_path().parts(), table).is_some());
            of_table.map(|column| natural(column.num_values())).max()
        };
        let load = groups.iter().filter_map(values).fold(0, u64::saturating_add);
        let ranges = || groups.iter().filter_map(|group| windows_of(file, group));
        Ok(Self {
            schema: nested::schema(builder.schema(), table),
            metadata: own.map(|pair| (pair.key.clone(), value(pair))).collect(),
            rows: if table.is_some() { load } else { natural(of_file.num_rows()) },
            load,
            windows: ranges().map(|(first, _)| first).min().zip(ranges().map(|(_, last)| last).max()),
        })
    }
}

/// First and last `window_start` of a row group of a file, if they are known.
pub(super) fn windows_of(file: &StoredFile, group: &RowGroupMetaData) -> Option<(i64, i64)> {
    windows(group, file.table()).or_else(|| file.near()?.windows())
}

/// First and last `window_start` of a row group, if it has them; of any table in a bundle, those of its windows.
pub(crate) fn windows(group: &RowGroupMetaData, table: Option<&str>) -> Option<(i64, i64)> {
    let start = WINDOW_START.name();
    let name = table.map_or_else(|| start.to_string(), |_| nested::path(Windows::NAME, &start));
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
