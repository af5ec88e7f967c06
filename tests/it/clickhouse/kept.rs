//! Rows are kept as long as is said, tables take new columns, and services can be forgotten.

use std::fs;

use joular_tests::paths;

use super::{Loaded, attributed, bundle, recorded};
use crate::fleet;

/// Windows of the first hosts are 40 days old, those of the last one an hour less.
const OLD_HOURS: u32 = 40 * 24;

#[test]
fn windows_go_after_their_time_and_hourly_sums_stay() {
    let Some(mut loaded) = Loaded::prepare(2, &["--keep", "30d"]) else { return };
    let old = loaded.folder.path().join("old");
    bundle(&old, OLD_HOURS);
    for place in [&old, &loaded.place()] {
        let finished = loaded.load_of(place, &[]);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
    }
    let tables = ["windows", "methods", "processes", "runs"];
    for table in tables {
        loaded.server.rows(&format!("OPTIMIZE TABLE joular.{table} FINAL")).unwrap();
    }
    for (table, start) in tables.into_iter().zip(["window_start", "window_start", "window_start", "started"]) {
        let [young, aged] = [">=", "<"].map(|is| {
            loaded.figure(&format!("count() FROM joular.{table} WHERE {start} {is} now() - INTERVAL 30 DAY"))
        });
        assert!(young > 0 && aged == 0, "{table}: {young} rows, and {aged} that should be gone");
    }
    let attributed = attributed();
    assert_eq!(loaded.sums(), [attributed, attributed, 2 * attributed, 2 * attributed]);
}

#[test]
fn hourly_sums_go_after_a_time_of_their_own() {
    let Some(mut loaded) = Loaded::prepare(OLD_HOURS, &["--keep-hourly", "30d"]) else { return };
    loaded.load_all();
    for table in ["methods_hourly", "paths_hourly", "stacks"] {
        loaded.server.rows(&format!("OPTIMIZE TABLE joular.{table} FINAL")).unwrap();
    }
    assert_eq!(loaded.figure("count() FROM joular.stacks"), 0);
    let attributed = attributed();
    assert_eq!(loaded.sums(), [attributed, attributed, 0, 0]);
}

#[test]
fn tables_that_lack_columns_get_them_by_the_same_sql() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    // As an earlier version may have made them.
    for (table, column) in [("methods", "self_sigma_uj"), ("windows", "switches")] {
        loaded.server.rows(&format!("ALTER TABLE joular.{table} DROP COLUMN {column}")).unwrap();
    }
    loaded.make_tables(&[]);
    loaded.load_all();
    assert_eq!(loaded.sums(), [attributed(); 4]);
    for sum in ["sum(self_sigma_uj)", "sum(switches)"] {
        let table = if sum.contains("sigma") { "methods" } else { "windows" };
        let expected = recorded(&format!("{sum}::BIGINT FROM {table}"));
        assert!(expected > 0 && loaded.figure(&format!("{sum} FROM joular.{table}")) == expected, "{sum}: {expected}");
    }
}

/// The document's own statements, by their headings.
fn statements(heading: &str) -> Vec<String> {
    let document = fs::read_to_string(paths::root().join("docs/fleet/clickhouse.md")).unwrap();
    let section = document.split_once(&format!("\n## {heading}\n")).unwrap().1.split("\n## ").next().unwrap();
    let blocks = section.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let statements = blocks.flat_map(|block| block.split(";\n")).map(|text| text.trim().to_owned());
    statements.filter(|text| !text.is_empty()).collect()
}

#[test]
fn a_service_is_forgotten_by_the_statements_of_the_document() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.load_all();
    let erasing = statements("Erasure");
    assert!(erasing.len() >= 4, "{erasing:?}");
    for statement in &erasing {
        loaded.server.rows(statement).unwrap();
    }
    for table in ["methods", "processes", "methods_hourly", "paths_hourly"] {
        let [erased, kept] = ["checkout", fleet::EVIL_SERVICE].map(|service| {
            let service = service.replace('\\', r"\\").replace('\'', r"\'");
            loaded.figure(&format!("count() FROM joular.{table} WHERE service = '{service}'"))
        });
        assert!(erased == 0 && kept > 0, "{table}: {erased}, {kept}");
    }
}

#[test]
fn a_database_is_loaded_anew_by_the_statements_of_the_document() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.load_all();
    loaded.server.rows("DELETE FROM joular.windows WHERE 1").unwrap();
    for statement in statements("Anew") {
        loaded.server.rows(&statement).unwrap();
    }
    loaded.make_tables(&[]);
    assert_eq!(loaded.load_all(), 3);
    assert_eq!(loaded.sums(), [attributed(); 4]);
}

#[test]
fn the_document_has_sql_that_clickhouse_parses() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    let statements = statements("S3Queue");
    assert!(!statements.is_empty());
    for statement in statements {
        let quoted = statement.replace('\\', r"\\").replace('\'', r"\'");
        let formatted = loaded.server.rows(&format!("SELECT formatQuery('{quoted}') AS sql"));
        assert!(formatted.is_ok(), "{statement}: {formatted:?}");
    }
}
