//! Tests the SQL of docs/schema.md on a replay: what the document says that a query gives, it gives.

use std::{
    fs,
    path::{Path, PathBuf},
};

use joular_tests::{dataset::DataSet, paths};
use serde_json::Value;
use tempfile::TempDir;

use crate::{joular_bpf, replay::recording};

/// A replay whose files hold windows of this time.
fn replayed(flush: &str) -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let finished =
        joular_bpf(&["--replay", &recording(), "--quiet", "--flush", flush, "--output", data.to_str().unwrap()]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    (parent, data)
}

/// The statement of the document that begins with these words.
fn documented(begin: &str) -> String {
    let document = fs::read_to_string(paths::root().join("docs/schema.md")).unwrap();
    let statement = document.split("```sql\n").find(|part| part.starts_with(begin)).unwrap();
    statement.split("```").next().unwrap().trim_end().trim_end_matches(';').to_owned()
}

/// A statement of the document, on the tables of this data set.
fn on(data: &Path, statement: &str) -> String {
    statement.replace("'out/", &format!("'{}/", data.display()))
}

#[test]
fn squares_of_methods_are_those_of_branches() {
    let (_parent, data) = replayed("4s");
    let number = |query: &str| DataSet::at(&data).number(&format!("SELECT ({query})::DOUBLE AS squares")).unwrap();
    let of_branches = number("SELECT sum(energy_uj::DOUBLE ** 2 / samples) FROM branches WHERE samples > 0");
    let of_methods = number("SELECT sum(self_squares_uj2) FROM methods");
    // Two digits of each row are off by 5 % at most.
    assert!(of_branches > 0.0 && (of_branches - of_methods).abs() <= 0.05 * of_branches, "{of_branches} {of_methods}");
}

/// With a file for each window, `methods` has rows by window.
#[test]
fn branches_give_the_methods_of_each_window() {
    let ((_one, by_window), (_other, data)) = (replayed("1s"), replayed("4s"));
    let query = on(&data, &documented("WITH paths"));
    let figures = "method, sum(self_uj)::BIGINT AS self_uj, sum(total_uj)::BIGINT AS total_uj";
    let select = |from: &str| {
        format!("SELECT window_start, pid, {figures} FROM {from} GROUP BY ALL HAVING sum(self_uj) > 0 ORDER BY ALL")
    };
    let rows = DataSet::at(&by_window).rows(&select("methods")).unwrap();
    let derived = DataSet::at(&data).rows(&select(&format!("({query})"))).unwrap();
    let own = |rows: &[Value]| -> Vec<Value> {
        rows.iter()
            .map(|row| serde_json::json!([row["window_start"], row["pid"], row["method"], row["self_uj"]]))
            .collect()
    };
    assert!(rows.len() > 10, "{rows:?}");
    assert_eq!(own(&rows), own(&derived));
    let spans = |data: &Path| DataSet::at(data).number("SELECT count(DISTINCT window_start) FROM methods").unwrap();
    assert!(spans(&by_window) > spans(&data), "the rows of the other data set are sums of windows");
}

/// Classes as the frames of `stacks` have them, which is a column there.
#[test]
fn the_documented_view_gives_class_and_package_back() {
    let (_parent, data) = replayed("4s");
    let view = documented("CREATE VIEW");
    let select = view.split_once(" AS\n").unwrap().1;
    let rows = |sql: &str| DataSet::at(&data).rows(sql).unwrap();
    let found = rows(&format!("SELECT DISTINCT method, kind, class FROM ({}) ORDER BY ALL", on(&data, select)));
    let frames = "SELECT DISTINCT coalesce(f.class || '.', '') || f.method AS method, f.kind AS kind, f.class AS class \
                  FROM (SELECT unnest(frames) AS f FROM stacks) ORDER BY ALL";
    assert!(
        found.iter().any(|row| row["class"].is_null()) && found.iter().any(|row| row["class"] == "Hot"),
        "{found:?}"
    );
    assert_eq!(found, rows(frames));
    // Names that a recording need not have.
    let names = "SELECT unnest([
        {'method': 'a.B$C.<init>', 'kind': 'inlined', 'class': 'a.B$C', 'package': 'a'},
        {'method': 'java.lang.Thread.run', 'kind': 'interpreted', 'class': 'java.lang.Thread', 'package': 'java.lang'},
        {'method': 'Main.main', 'kind': 'compiled-c2', 'class': 'Main', 'package': ''},
        {'method': 'a.Main$$Lambda.run', 'kind': 'interpreted', 'class': 'a.Main$$Lambda', 'package': 'a'},
        {'method': E'a.odd\\nname.x', 'kind': 'compiled', 'class': E'a.odd\\nname', 'package': 'a'},
        {'method': 'std::io::Read.part.0', 'kind': 'native', 'class': NULL, 'package': NULL},
        {'method': '[no sample]', 'kind': 'marker', 'class': NULL, 'package': NULL}], recursive := true)";
    let select = select.replace(
        "'out/methods/**/*.parquet'",
        &format!("(SELECT method, kind, class AS c, package AS p FROM ({names}))"),
    );
    let wrong = format!("SELECT * FROM ({select}) WHERE class IS DISTINCT FROM c OR package IS DISTINCT FROM p");
    assert_eq!(rows(&wrong), Vec::<Value>::new());
    assert_eq!(rows(&select).len(), 7);
}
