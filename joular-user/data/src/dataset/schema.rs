//! Holds the data set's schema as a whole: its version, its tables, and the text of docs/schema.md,
//! which a test compares with the file.

use std::ops::RangeInclusive;

use super::{
    column::{ColumnOf, Get, Table},
    tables::{ForTable, RollupBranches, RollupMethods, list},
};

/// The version that is written. It rises by one when columns or tables are added, and by two when anything else changes: a
/// column's name, type, meaning, or the names that it may have. So the versions beside it can be read ([`read_versions`]).
pub const SCHEMA_VERSION: i64 = 11;

/// The first version that later ones follow in this way.
const FIRST_FOLLOWED: i64 = 10;

/// The versions that a program reads which writes this one. Of a later one, columns that it does not know are ignored. A
/// column that an earlier one lacks is null there, or 0, or false, or empty ([`super::column::Column::since`]).
pub(crate) fn read_versions(written: i64) -> RangeInclusive<i64> {
    written.saturating_sub(1).max(FIRST_FOLLOWED)..=written.saturating_add(1)
}

/// The versions that are read, for people.
pub(crate) fn known_versions() -> String {
    let versions = read_versions(SCHEMA_VERSION);
    format!("versions {} to {}", versions.start(), versions.end())
}

/// Keys of the files' own metadata.
pub mod key {
    pub const SCHEMA_VERSION: &str = "joular_bpf.schema_version";
    pub const TABLE: &str = "joular_bpf.table";
    pub const RUN_ID: &str = "joular_bpf.run_id";
    /// The host's own name; the `host` partition is made from it.
    pub const HOST: &str = "joular_bpf.host";
    /// In files of `runs`: comments of all columns, as JSON by table and column.
    pub const COMMENTS: &str = "joular_bpf.comments";
}

/// The generated part of docs/schema.md.
pub fn document() -> String {
    struct Sections(Vec<String>);
    impl ForTable for Sections {
        fn table<T: Table>(&mut self) {
            self.0.push(section::<T>());
        }
    }
    let mut sections = Sections(Vec::new());
    list::each(&mut sections);
    let of_rollups = [of_rollup(section::<RollupBranches>()), of_rollup(section::<RollupMethods>())];
    sections.0.into_iter().chain(of_rollups).collect::<Vec<_>>().join("\n")
}

/// Marks a section as that of a table of rollups, which has the name of another.
fn of_rollup(section: String) -> String {
    section.replacen("\n\n", " of a rollup\n\n", 1)
}

/// Comments of all columns, as JSON by table and column.
pub(crate) fn comments() -> String {
    struct Comments(serde_json::Map<String, serde_json::Value>);
    impl ForTable for Comments {
        fn table<T: Table>(&mut self) {
            let columns = T::columns();
            let comments = columns.iter().map(|column| (column.name().to_string(), column.comment().into())).collect();
            self.0.insert(T::NAME.to_owned(), serde_json::Value::Object(comments));
        }
    }
    let mut comments = Comments(serde_json::Map::new());
    list::each(&mut comments);
    serde_json::Value::Object(comments.0).to_string()
}

/// How the columns of a table are encoded, for callers that know only its name.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    /// Columns with numbers that hardly repeat.
    pub(crate) quantities: Vec<String>,
    /// Columns with text that repeats.
    pub(crate) names: Vec<String>,
}

impl Kinds {
    pub(crate) fn of<T: Table>() -> Self {
        let mut kinds = Self::default();
        for column in T::columns() {
            if column.hardly_repeats() {
                kinds.quantities.push(column.name().into_owned());
            }
            if matches!(column.get, Get::Name(_)) {
                kinds.names.push(column.name().into_owned());
            }
        }
        kinds
    }

    /// None for a table that is not known.
    pub(crate) fn of_table(name: &str) -> Self {
        struct Find<'a>(&'a str, Kinds);
        impl ForTable for Find<'_> {
            fn table<T: Table>(&mut self) {
                if T::NAME == self.0 {
                    self.1 = Kinds::of::<T>();
                }
            }
        }
        let mut find = Find(name, Self::default());
        list::each(&mut find);
        find.1
    }
}

fn section<T: Table>() -> String {
    let rows: String = T::columns().iter().map(line).collect();
    format!(
        "### {}\n\nA row is {}.\n\n| column | type | unit | source | meaning | null |\n|---|---|---|---|---|---|\n{rows}",
        T::NAME,
        T::ROW
    )
}

fn line<T: Table>(column: &ColumnOf<T>) -> String {
    let cells = [
        format!("`{}`", column.name()),
        column.type_name().to_owned(),
        column.unit().to_owned(),
        column.source().to_owned(),
        column.meaning().to_owned(),
        column.null().unwrap_or("never").to_owned(),
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
        assert!(
            before.contains(&format!("version of this schema, now {SCHEMA_VERSION}.")),
            "docs/schema.md: its version"
        );
    }

    #[test]
    fn versions_beside_the_one_that_is_written_are_read() {
        for (written, read) in [(10, 10..=11), (11, 10..=12), (12, 11..=13), (30, 29..=31)] {
            assert_eq!(read_versions(written), read);
        }
    }

    #[test]
    fn columns_that_came_later_came_with_the_version_before_or_this_one() {
        struct Check;
        impl ForTable for Check {
            fn table<T: Table>(&mut self) {
                for column in T::columns() {
                    let since = column.since();
                    assert!(since == 0 || read_versions(SCHEMA_VERSION).contains(&since), "{}", column.name());
                }
            }
        }
        list::each(&mut Check);
    }

    #[test]
    fn column_names_are_unique_and_say_their_unit() {
        struct Check;
        impl ForTable for Check {
            fn table<T: Table>(&mut self) {
                let columns = T::columns();
                for (index, column) in columns.iter().enumerate() {
                    assert!(
                        columns.iter().skip(index + 1).all(|other| other.name() != column.name()),
                        "{}",
                        column.name()
                    );
                    for (suffix, unit) in [("_uj", "µJ"), ("_ns", "ns"), ("_bytes", "bytes"), ("_hz", "Hz")] {
                        assert_eq!(
                            column.name().ends_with(suffix),
                            column.unit() == unit,
                            "{}.{}",
                            T::NAME,
                            column.name()
                        );
                    }
                    assert!(column.comment().len() < 160, "{}: files carry the comment", column.name());
                }
            }
        }
        list::each(&mut Check);
        Check.table::<RollupBranches>();
        Check.table::<RollupMethods>();
    }
}
