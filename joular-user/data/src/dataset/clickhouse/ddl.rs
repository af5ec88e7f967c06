//! Prints the SQL that makes tables, views and roles in ClickHouse.
//!
//! It can be run again whenever the program or an option changes: what is there stays, and columns are only added. Views
//! are changed in place, so that bundles can arrive meanwhile. The last statement marks the table `bundles` with
//! [`VERSION`]: whoever loads asks for the mark ([`mark`]).

use std::time::Duration;

use super::columns::{self, TARGETS};

/// The version of the tables. It rises when a loader needs what the SQL of the version before did not make.
pub const VERSION: u32 = 2;

/// The database, unless another one is named.
pub const DATABASE: &str = "joular";

/// Blocks that each table remembers, so that a batch which is sent again is left out.
const BLOCKS: u32 = 10_000;

const TEMPLATE: &str = include_str!("schema.sql");

/// What the SQL is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ddl {
    /// A name as [`is_name`] has it.
    pub database: String,
    /// How long rows of windows are kept; `None`: for ever.
    pub keep: Option<Duration>,
    /// The same of hourly sums and call paths.
    pub keep_hourly: Option<Duration>,
}

/// Whether a database may have this name: what SQL takes without quotes.
pub fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The comment of the table `bundles` that the SQL of this version leaves.
pub fn mark() -> String {
    format!("joular-bpf {VERSION}")
}

impl Ddl {
    /// The SQL, statements that end with `;` and a new line.
    pub fn sql(&self) -> String {
        TEMPLATE.split_inclusive(";\n").map(|statement| self.statement(statement)).collect()
    }

    /// A view is made if it is not there, and changed if it is.
    fn statement(&self, template: &str) -> String {
        let Some((head, view)) = template.split_once("{view ") else { return self.filled(template) };
        let Some((names, select)) = view.split_once("}\n") else { return self.filled(template) };
        let (view, table) = names.split_once(" to ").unwrap_or((names, names));
        let (head, select, db) = (self.filled(head), self.filled(select), &self.database);
        format!(
            "{head}CREATE MATERIALIZED VIEW IF NOT EXISTS {db}.{view} TO {db}.{table} AS\n{select}\n\
             ALTER TABLE {db}.{view} MODIFY QUERY\n{select}"
        )
    }

    /// A text with values in place of what stands in braces.
    fn filled(&self, template: &str) -> String {
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            filled.push_str(before);
            filled.push_str(&self.value(name));
            rest = after;
        }
        filled + rest
    }

    fn value(&self, name: &str) -> String {
        match name.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["db"] => self.database.clone(),
            ["blocks"] => BLOCKS.to_string(),
            ["mark"] => mark(),
            ["bundle"] => columns::bundle().join(",\n    "),
            ["changed", "bundle"] => {
                let change =
                    |column: &String| format!("ADD COLUMN IF NOT EXISTS {column},\n    MODIFY COLUMN {column}");
                let changes: Vec<String> = columns::bundle().iter().map(change).collect();
                format!("ALTER TABLE {}.bundles\n    {};", self.database, changes.join(",\n    "))
            }
            ["targets"] => TARGETS.to_owned(),
            ["identity", "of", table] => columns::identity(table).join(", "),
            ["columns", "of", table] => columns::definitions(table).join(",\n    "),
            ["values", "of", table] => columns::values(table).join(",\n    "),
            ["more", "columns", "of", table] => {
                let add = |column: &String| format!("ADD COLUMN IF NOT EXISTS {column}");
                let more: Vec<String> = columns::definitions(table).iter().map(add).collect();
                format!("ALTER TABLE {}.{table}\n    {};", self.database, more.join(",\n    "))
            }
            ["delete", "by", column, "after", "keep"] => deleted(column, self.keep),
            ["delete", "by", column, "after", "keep", "hourly"] => deleted(column, self.keep_hourly),
            // A test looks for what is left.
            _ => format!("{{{name}}}"),
        }
    }
}

fn deleted(column: &str, keep: Option<Duration>) -> String {
    let of = |keep: Duration| format!("TTL toDateTime({column}) + INTERVAL {} SECOND DELETE\n", keep.as_secs());
    keep.map(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(keep: Option<u64>, keep_hourly: Option<u64>) -> String {
        let [keep, keep_hourly] = [keep, keep_hourly].map(|seconds| seconds.map(Duration::from_secs));
        Ddl { database: "energy".to_owned(), keep, keep_hourly }.sql()
    }

    #[test]
    fn nothing_of_the_template_is_left() {
        let sql = sql(Some(60), Some(61));
        assert!(!sql.contains(['{', '}']), "{sql}");
        assert_eq!(sql.matches("joular").count(), 1, "the database has its own name");
        assert!(sql.ends_with(&format!("MODIFY COMMENT '{}';\n", mark())), "the mark comes last");
    }

    #[test]
    fn statements_can_be_run_again() {
        for statement in sql(None, None).split(";\n") {
            let lines = statement.lines().filter(|line| !line.starts_with("--") && !line.is_empty());
            let Some(first) = lines.clone().next() else { continue };
            let is_again =
                first.contains("IF NOT EXISTS") || ["ALTER TABLE", "GRANT"].iter().any(|word| first.starts_with(word));
            assert!(is_again && !statement.contains("DROP"), "{statement}");
        }
    }

    #[test]
    fn rows_are_kept_as_long_as_is_said() {
        assert!(!sql(None, None).contains("TTL"));
        let kept = sql(Some(2_592_000), None);
        assert_eq!(kept.matches("TTL toDateTime(window_start) + INTERVAL 2592000 SECOND DELETE").count(), 3);
        let kept = sql(None, Some(7));
        assert_eq!(kept.matches(" + INTERVAL 7 SECOND DELETE").count(), 3);
    }

    #[test]
    fn a_database_has_a_name_that_needs_no_quotes() {
        for name in ["joular", "_x", "A1_b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "1x", "a-b", "a b", "a`b", "a'b", "é"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(!is_name(&"x".repeat(65)));
    }
}
