//! Says how columns of the data set are written in ClickHouse's SQL: as they arrive, as they are stored, and how the one
//! becomes the other.
//!
//! Texts that are null arrive as such and are stored as empty ones: sorting keys have no nulls, and texts are grouped by.
//! Other values that are null stay null.

use super::each;
use crate::dataset::{
    column::{ColumnOf, Get, Table},
    tables::{ForTable, FrameTable},
};

/// Columns that a table gets from the row of its process, unless it has them itself, with their places in [`TARGETS`].
const OF_PROCESS: [(&str, u8); 3] = [("service", 3), ("version", 4), ("namespace", 5)];

/// The targets of a run as tuples. A view that needs all of `processes` for each of its rows would copy them for each.
pub(super) const TARGETS: &str = "arrayMap(p -> (p.pid, p.process_start, ifNull(p.service, ''), ifNull(p.version, ''), \
                                  ifNull(p.namespace, '')), arrayFilter(p -> p.is_target, processes)) AS targets";

/// A column in SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InSql {
    pub(super) name: String,
    /// The type in which it arrives.
    arrives: String,
    /// The type in which it is stored, with its codec.
    stored: String,
    /// Its value, of a row `r` that has arrived.
    value: String,
}

impl InSql {
    fn of<T: Table>(column: &ColumnOf<T>) -> Self {
        let name = column.name().into_owned();
        let is_null = column.null().is_some();
        // Rows are kept by it. A process of a run without windows has none.
        let is_run_start = name == "window_start" && is_null;
        let arrives = arrives(column);
        let of_number = |codec: &str| {
            let kind =
                if is_null && !is_run_start { format!("Nullable({})", scalar(column)) } else { scalar(column).into() };
            format!("{kind}{codec}")
        };
        let stored = match column.get {
            // Amounts need few of their bits. What has no unit may be a hash.
            Get::Int(_) | Get::Item(..) if column.unit().is_empty() => of_number(" CODEC(ZSTD(1))"),
            Get::Int(_) | Get::Item(..) => of_number(" CODEC(T64, ZSTD(1))"),
            Get::Time(_) => of_number(" CODEC(Delta, ZSTD(1))"),
            Get::Flag(_) => of_number(""),
            Get::Name(_) | Get::Text(_) => "LowCardinality(String)".to_owned(),
            Get::TextList(_) => "Array(LowCardinality(String))".to_owned(),
            Get::Frames(_) => arrives.clone(),
        };
        let value = match column.get {
            Get::Name(_) | Get::Text(_) if is_null => format!("ifNull(r.{name}, '')"),
            _ if is_run_start => format!("ifNull(r.{name}, runs.started[1])"),
            _ => format!("r.{name}"),
        };
        Self { name, arrives, stored, value }
    }

    /// Texts that come from elsewhere than the row itself.
    fn added(name: &str, value: String) -> Self {
        let stored = "LowCardinality(String)".to_owned();
        Self { name: name.to_owned(), arrives: String::new(), stored, value }
    }
}

/// The type without null.
fn scalar<T: Table>(column: &ColumnOf<T>) -> &'static str {
    match column.get {
        Get::Int(_) | Get::Item(..) => "Int64",
        Get::Flag(_) => "Bool",
        Get::Time(_) => "DateTime64(6, 'UTC')",
        Get::Name(_) | Get::Text(_) | Get::TextList(_) | Get::Frames(_) => "String",
    }
}

fn arrives<T: Table>(column: &ColumnOf<T>) -> String {
    match column.get {
        Get::TextList(_) => "Array(String)".to_owned(),
        Get::Frames(_) => format!("Array({})", tuple(&of::<FrameTable>())),
        _ if column.null().is_some() => format!("Nullable({})", scalar(column)),
        _ => scalar(column).to_owned(),
    }
}

fn of<T: Table>() -> Vec<InSql> {
    T::columns().iter().map(InSql::of).collect()
}

/// The type of a row.
fn tuple(columns: &[InSql]) -> String {
    let fields: Vec<String> = columns.iter().map(|column| format!("`{}` {}", column.name, column.arrives)).collect();
    format!("Tuple({})", fields.join(", "))
}

/// The columns of a table as they arrive; none of one that ClickHouse does not get.
fn of_table(name: &str) -> Vec<InSql> {
    struct Find<'a>(&'a str, Vec<InSql>);
    impl ForTable for Find<'_> {
        fn table<T: Table>(&mut self) {
            if T::NAME == self.0 {
                self.1 = of::<T>();
            }
        }
    }
    let mut find = Find(name, Vec::new());
    each(&mut find);
    find.1
}

/// The columns of `bundles`.
pub(super) fn bundle() -> Vec<String> {
    struct Tables(Vec<String>);
    impl ForTable for Tables {
        fn table<T: Table>(&mut self) {
            self.0.push(format!("`{}` Array({})", T::NAME, tuple(&of::<T>())));
        }
    }
    let mut tables = Tables(Vec::new());
    each(&mut tables);
    tables.0
}

/// The columns of a table as it is stored: its host's name, what its rows' processes say, and its own.
fn whole(table: &str) -> Vec<InSql> {
    let own = of_table(table);
    let mut columns = vec![InSql::added("host", "runs.hostname[1]".to_owned())];
    let has = |name: &str| own.iter().any(|column| column.name == name);
    if has("method") {
        columns.extend(
            OF_PROCESS.iter().filter(|(name, _)| !has(name)).map(|pair| InSql::added(pair.0, of_process(*pair))),
        );
    }
    columns.extend(own);
    columns
}

/// The last row of a process counts.
fn of_process((_, place): (&str, u8)) -> String {
    format!("arrayLast(t -> t.1 = r.pid AND t.2 = r.process_start, targets).{place}")
}

/// Definitions of a stored table's columns.
pub(super) fn definitions(table: &str) -> Vec<String> {
    whole(table).iter().map(|column| format!("`{}` {}", column.name, column.stored)).collect()
}

/// Their values, of a row `r` that has arrived.
pub(super) fn values(table: &str) -> Vec<String> {
    whole(table).iter().map(|column| format!("{} AS {}", column.value, column.name)).collect()
}

/// Service, version and namespace of a row `r` of a table: its own, or its process's.
pub(super) fn identity(table: &str) -> Vec<String> {
    let own = of_table(table);
    let value = |pair: &(&str, u8)| match own.iter().find(|column| column.name == pair.0) {
        Some(column) => format!("{} AS {}", column.value, pair.0),
        None => format!("{} AS {}", of_process(*pair), pair.0),
    };
    OF_PROCESS.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(table: &str, name: &str) -> String {
        let start = format!("`{name}` ");
        definitions(table).into_iter().find(|text| text.starts_with(&start)).unwrap_or_default()
    }

    #[test]
    fn kinds_of_columns_have_their_types_and_codecs() {
        for (table, name, expected) in [
            ("methods", "method", "LowCardinality(String)"),
            ("methods", "signature", "LowCardinality(String)"),
            ("methods", "service", "LowCardinality(String)"),
            ("methods", "self_uj", "Int64 CODEC(T64, ZSTD(1))"),
            ("methods", "window_start", "DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1))"),
            ("methods", "ambiguous", "Bool"),
            ("windows", "measured_uj", "Nullable(Int64) CODEC(T64, ZSTD(1))"),
            ("processes", "pid", "Int64 CODEC(ZSTD(1))"),
            ("processes", "window_start", "DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1))"),
            ("processes", "labels", "Array(LowCardinality(String))"),
            ("runs", "ended_at", "Nullable(DateTime64(6, 'UTC')) CODEC(Delta, ZSTD(1))"),
        ] {
            assert_eq!(definition(table, name), format!("`{name}` {expected}"), "{table}");
        }
    }

    #[test]
    fn each_stored_column_has_one_value_and_no_name_is_twice() {
        for table in ["runs", "windows", "processes", "methods"] {
            let columns = whole(table);
            assert!(columns.len() > 10, "{table}");
            for (index, column) in columns.iter().enumerate() {
                assert!(columns.iter().skip(index + 1).all(|other| other.name != column.name), "{}", column.name);
            }
        }
        let values = values("methods").join(", ");
        assert!(values.starts_with("runs.hostname[1] AS host, "), "{values}");
        assert!(values.contains("ifNull(r.signature, '') AS signature, r.kind AS kind"), "{values}");
    }

    #[test]
    fn a_bundle_has_every_table_with_its_own_nulls() {
        let bundle = bundle().join("\n");
        assert_eq!(bundle.lines().count(), 6);
        assert!(bundle.contains("`frames` Array(Tuple(`class` Nullable(String), `method` String"), "{bundle}");
        assert!(bundle.contains("`command_line` Array(String)"), "{bundle}");
    }
}
