//! The data set's schema as a whole: its version, its tables, and the text of
//! docs/schema.md, which a test holds against the file.

use super::{
    column::{Column, Table},
    tables::{Branches, FrameTable, Jvms, Methods, Processes, Quality, Runs, Stacks, Threads, Weights, Windows},
};
use crate::dataset::write::encode;

/// Raised when a column changes its name, its type or its meaning. A new
/// column does not raise it: readers select columns by name.
pub const SCHEMA_VERSION: i64 = 3;

/// Keys of the files' own metadata.
pub mod key {
    pub const SCHEMA_VERSION: &str = "joular_bpf.schema_version";
    pub const TABLE: &str = "joular_bpf.table";
    pub const RUN_ID: &str = "joular_bpf.run_id";
    /// Host as it names itself; the `host` partition is made from it.
    pub const HOST: &str = "joular_bpf.host";
}

/// The generated part of docs/schema.md.
pub fn document() -> String {
    let tables = [
        section::<Runs>(),
        section::<Windows>(),
        section::<Processes>(),
        section::<Threads>(),
        section::<Methods>(),
        section::<Branches>(),
        section::<Jvms>(),
        section::<Quality>(),
        section::<Weights>(),
        section::<Stacks>(),
        section::<FrameTable>(),
    ];
    tables.join("\n")
}

/// Columns of the table of this name with numbers that hardly repeat.
pub fn quantities(table: &str) -> Vec<String> {
    fn of<T: Table>(table: &str) -> Option<Vec<String>> {
        (T::NAME == table).then(|| encode::quantities::<T>().collect())
    }
    let all = [
        of::<Windows>,
        of::<Processes>,
        of::<Threads>,
        of::<Methods>,
        of::<Branches>,
        of::<Jvms>,
        of::<Quality>,
        of::<Weights>,
        of::<Stacks>,
    ];
    all.into_iter().find_map(|of| of(table)).unwrap_or_default()
}

fn section<T: Table>() -> String {
    let rows: String = T::columns().iter().map(line).collect();
    format!(
        "### {}\n\nA row is {}.\n\n| column | type | unit | source | meaning | null |\n|---|---|---|---|---|---|\n{rows}",
        T::NAME,
        T::ROW
    )
}

fn line<T: Table>(column: &Column<T>) -> String {
    let cells = [
        format!("`{}`", column.name),
        column.type_name().to_owned(),
        column.unit.to_owned(),
        column.source.to_owned(),
        column.meaning.to_owned(),
        column.null.unwrap_or("never").to_owned(),
    ];
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "<!-- generated from the code: UPDATE_DOCS=1 cargo test -p joular-data schema -->\n";
    const END: &str = "<!-- end of the generated part -->\n";

    #[test]
    fn the_documentation_lists_exactly_the_columns_of_the_code() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("docs/schema.md has the begin marker");
        let (generated, after) = rest.split_once(END).expect("docs/schema.md has the end marker");
        let expected = format!("\n{}\n", document());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
            return;
        }
        assert_eq!(generated, expected, "docs/schema.md is out of date: run the command that it names");
    }

    #[test]
    fn column_names_are_unique_and_say_their_unit() {
        fn check<T: Table>() {
            let columns = T::columns();
            for (index, column) in columns.iter().enumerate() {
                assert!(columns.iter().skip(index + 1).all(|other| other.name != column.name), "{}", column.name);
                for (suffix, unit) in [("_uj", "µJ"), ("_ns", "ns"), ("_bytes", "bytes"), ("_hz", "Hz")] {
                    assert_eq!(column.name.ends_with(suffix), column.unit == unit, "{}.{}", T::NAME, column.name);
                }
                assert!(column.comment().len() < 160, "{}: files carry the comment", column.name);
            }
        }
        check::<Runs>();
        check::<Windows>();
        check::<Weights>();
        check::<Processes>();
        check::<Threads>();
        check::<Methods>();
        check::<Branches>();
        check::<Jvms>();
        check::<Quality>();
        check::<Stacks>();
        check::<FrameTable>();
    }
}
