//! What a loader says to a database and asks of it, in ClickHouse's SQL.

use std::collections::{BTreeMap, HashMap};

use serde::de::DeserializeOwned;
use thiserror::Error;

use super::{batch::Batch, listing::GroupHour};
use crate::dataset::clickhouse::{self, Amount, RunFigures};

/// Settings of the `INSERT` of a batch. Without that of dependent views, tables behind them would take a batch again; blocks
/// of asynchronous inserts may be others; and a view that fails must not be passed over. The last two have
/// blocks come in the same order, as a token tells them apart by their order.
const EXACTLY_ONCE: [(&str, &str); 6] = [
    ("insert_deduplicate", "1"),
    ("deduplicate_blocks_in_dependent_materialized_views", "1"),
    ("async_insert", "0"),
    ("materialized_views_ignore_errors", "0"),
    ("max_insert_threads", "1"),
    ("input_format_parquet_preserve_order", "1"),
];

/// A database does not do what it is told.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WarehouseError {
    /// It may do so later.
    #[error("{0}")]
    Later(String),
    /// It needs a change.
    #[error("{0}")]
    Refused(String),
}

type Result<T, E = WarehouseError> = std::result::Result<T, E>;

/// A database that takes SQL.
pub trait Warehouse {
    /// The answer to a question.
    ///
    /// # Errors
    /// If there is none.
    fn ask(&self, sql: &str) -> Result<String>;

    /// Has the data of a statement taken, with these settings. It returns when all of it has arrived.
    ///
    /// # Errors
    /// If that is not certain.
    fn insert(&self, sql: &str, settings: &[(&str, &str)], data: Vec<u8>) -> Result<()>;
}

/// A database of a warehouse.
pub(super) struct Database<'a> {
    pub(super) warehouse: &'a dyn Warehouse,
    pub(super) name: &'a str,
}

impl Database<'_> {
    /// Checks that its tables are those that this program fills.
    pub(super) fn check_schema(&self) -> Result<()> {
        let sql = format!("SELECT comment FROM system.tables WHERE database = '{}' AND name = 'bundles'", self.name);
        let marks: Vec<(String,)> = self.rows(&sql)?;
        let version = |mark: &str| mark.strip_prefix("joular-bpf ").and_then(|version| version.parse::<u32>().ok());
        let found = marks.first().and_then(|(mark,)| version(mark));
        if found.is_some_and(|found| found >= clickhouse::VERSION) {
            return Ok(());
        }
        let what = match found {
            Some(_) => "tables of an earlier version",
            None => "no tables of joular-bpf, or they may not be read",
        };
        Err(WarehouseError::Refused(format!(
            "database {0} has {what}: run joular-bpf load --schema --database {0} | clickhouse client, as a user who may \
             create tables, and grant {0}_loader",
            self.name
        )))
    }

    /// Batches of an hour that have arrived, each with the sum of its bundles' names.
    pub(super) fn loaded(&self, group: &GroupHour) -> Result<HashMap<String, u64>> {
        let hour = group.hour.0 / 1_000_000;
        let sql =
            format!("SELECT batch, max(names) FROM {}.loads WHERE hour = toDateTime({hour}) GROUP BY batch", self.name);
        Ok(self.rows::<(String, u64)>(&sql)?.into_iter().collect())
    }

    /// How many batches have arrived since one was made.
    pub(super) fn loaded_since(&self, batch: &Batch) -> Result<u64> {
        let sql =
            format!("SELECT count() FROM {}.loads WHERE loaded_at >= toDateTime({})", self.name, batch.claimed_at);
        Ok(self.rows::<(u64,)>(&sql)?.first().map_or(0, |(count,)| *count))
    }

    pub(super) fn insert(&self, batch: &Batch, file: Vec<u8>) -> Result<()> {
        let token = batch.token();
        let settings = [&EXACTLY_ONCE[..], &[("insert_deduplication_token", token.as_str())]].concat();
        self.warehouse.insert(&format!("INSERT INTO {}.bundles FORMAT Parquet", self.name), &settings, file)
    }

    /// Notes that a batch has arrived as a whole.
    pub(super) fn note(&self, group: &GroupHour, batch: &Batch, runs: &[RunFigures], names: u64) -> Result<()> {
        let measured_uj = runs.iter().fold(0_i64, |sum, run| sum.saturating_add(run.windows.energy_uj));
        let row = serde_json::json!({
            "batch": batch.name,
            "hour": group.hour.0 / 1_000_000,
            "token": batch.token(),
            "bundles": runs.len(),
            "names": names,
            "measured_uj": measured_uj,
        });
        let columns = "batch, hour, token, bundles, names, measured_uj";
        let sql = format!("INSERT INTO {}.loads ({columns}) FORMAT JSONEachRow", self.name);
        self.warehouse.insert(&sql, &[("async_insert", "0")], row.to_string().into_bytes())
    }

    /// What there is of these runs.
    pub(super) fn figures(&self, runs: &[RunFigures]) -> Result<BTreeMap<String, RunFigures>> {
        let ids: Vec<String> = runs.iter().map(|run| quoted(&run.run_id)).collect();
        let all = format!("run_id IN ({})", ids.join(", "));
        let first = runs.iter().filter_map(|run| run.span).map(|(first, _)| first.0).min();
        let last = runs.iter().filter_map(|run| run.span).map(|(_, last)| last.0).max();
        // Of tables with a partition a day, only those days are read.
        let in_span = match (first, last) {
            (Some(first), Some(last)) => format!(
                "{all} AND window_start BETWEEN fromUnixTimestamp64Micro({first}, 'UTC') AND fromUnixTimestamp64Micro({last}, 'UTC')"
            ),
            _ => all.clone(),
        };
        let mut found: BTreeMap<String, RunFigures> = BTreeMap::new();
        for (table, energy, filter) in [
            ("runs", "toInt64(0)", &all),
            ("processes", "toInt64(0)", &all),
            ("windows", "sum(ifNull(measured_uj, 0))", &in_span),
            ("methods", "sum(self_uj + inferred_self_uj)", &in_span),
        ] {
            let sql =
                format!("SELECT run_id, count(), {energy} FROM {}.{table} WHERE {filter} GROUP BY run_id", self.name);
            for (run_id, rows, energy_uj) in self.rows::<(String, u64, i64)>(&sql)? {
                let run = found.entry(run_id).or_default();
                match table {
                    "runs" => run.runs = rows,
                    "processes" => run.processes = rows,
                    "windows" => run.windows = Amount { rows, energy_uj },
                    _ => run.methods = Amount { rows, energy_uj },
                }
            }
        }
        Ok(found)
    }

    /// Hours from this one on whose sums differ between tables: the hour, and µJ in `methods`, `methods_hourly`, `windows`
    /// and `paths_hourly`.
    pub(super) fn differing_hours(&self, since_s: i64) -> Result<Vec<DifferingHour>> {
        let part = |table: &str, hour: &str, energy: &str, place: usize| {
            let sums: Vec<String> =
                (0..4).map(|at| if at == place { format!("sum({energy})") } else { "toInt64(0)".to_owned() }).collect();
            format!(
                "SELECT {hour} AS hour, {} AS sums FROM {}.{table} WHERE hour >= toDateTime({since_s}) GROUP BY hour",
                format_args!("[{}]", sums.join(", ")),
                self.name
            )
        };
        let of_window = "toStartOfHour(toDateTime(window_start, 'UTC'))";
        let parts = [
            part("methods", of_window, "self_uj + inferred_self_uj", 0),
            part("methods_hourly", "toDateTime(hour, 'UTC')", "self_uj", 1),
            part("windows", of_window, "ifNull(attributed_uj, 0)", 2),
            part("paths_hourly", "toDateTime(hour, 'UTC')", "energy_uj", 3),
        ];
        let sql = format!(
            "SELECT formatDateTime(hour, '%FT%TZ', 'UTC') AS start, sumForEach(sums) AS uj FROM ({}) GROUP BY hour \
             HAVING uj[1] != uj[2] OR uj[3] != uj[4] ORDER BY hour",
            parts.join(" UNION ALL ")
        );
        self.rows(&sql)
    }

    fn rows<R: DeserializeOwned>(&self, sql: &str) -> Result<Vec<R>> {
        let question = format!("{sql} FORMAT JSONCompactEachRow SETTINGS output_format_json_quote_64bit_integers = 0");
        let answer = self.warehouse.ask(&question)?;
        let row = |line: &str| {
            serde_json::from_str(line)
                .map_err(|error| WarehouseError::Refused(format!("it answers what nobody asked for ({error}): {sql}")))
        };
        answer.lines().filter(|line| !line.is_empty()).map(row).collect()
    }
}

/// An hour, and its µJ in four tables.
pub(super) type DifferingHour = (String, [i64; 4]);

/// A text in SQL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_quotes() {
        for (text, expected) in [("a", "'a'"), ("a'b", r"'a\'b'"), (r"a\", r"'a\\'"), (r"\'; --", r"'\\\'; --'")] {
            assert_eq!(quoted(text), expected);
        }
    }
}
