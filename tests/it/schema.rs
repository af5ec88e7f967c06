//! Tests data sets of the schema before: this joular-bpf reads, audits, compacts and attributes
//! them again, with the same sums as those that it writes itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

use joular_tests::{dataset::DataSet, paths};
use serde_json::Value;
use tempfile::TempDir;

use crate::{joular_bpf, replay::recording};

/// A copy of the committed data set of schema 3, and a replay of the same recording.
fn both() -> (TempDir, PathBuf, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let (before, now) = (parent.path().join("before"), parent.path().join("now"));
    copy(&paths::fixtures().join("schema-3/two_jvms"), &before);
    expect_success(&["--replay", &recording(), "--quiet", "--flush", "4s", "--output", text(&now)]);
    (parent, before, now)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn expect_success(arguments: &[&str]) -> String {
    let finished = joular_bpf(arguments);
    assert_eq!(finished.code(), Some(0), "{arguments:?}: {finished:?}");
    finished.stdout
}

/// Schema versions of all files and of the run's row.
fn versions(data: &Path) -> Vec<Value> {
    DataSet::at(data)
        .rows(
            "SELECT DISTINCT decode(value) AS version FROM parquet_kv_metadata('*/**/*.parquet') \
             WHERE decode(key) = 'joular_bpf.schema_version' \
             UNION SELECT schema_version::VARCHAR FROM runs ORDER BY 1",
        )
        .unwrap()
}

/// Every table by what tells its rows apart, with all figures of the rows.
const QUERIES: &[&str] = &[
    "SELECT pid, method, signature, kind, module, sum(self_uj)::BIGINT, sum(total_uj)::BIGINT, sum(self_cpu_ns)::BIGINT, \
     sum(total_cpu_ns)::BIGINT, sum(self_samples)::BIGINT, sum(total_samples)::BIGINT \
     FROM methods GROUP BY ALL ORDER BY ALL",
    "SELECT pid, tid, branch_id, stack_id, sum(energy_uj)::BIGINT, sum(cpu_ns)::BIGINT, sum(samples)::BIGINT \
     FROM branches GROUP BY ALL ORDER BY ALL",
    "SELECT pid, tid, thread_name, category, sum(energy_uj)::BIGINT, sum(cpu_ns)::BIGINT FROM threads GROUP BY ALL ORDER BY ALL",
    "SELECT domain, sum(measured_uj)::BIGINT, sum(attributed_uj)::BIGINT, sum(unattributed_uj)::BIGINT \
     FROM windows GROUP BY ALL ORDER BY ALL",
    "SELECT pid, sum(energy_uj)::BIGINT, sum(gc_uj)::BIGINT, sum(c2_cpu_ns)::BIGINT FROM jvms GROUP BY ALL ORDER BY ALL",
    "SELECT pid, walk_end, sum(samples)::BIGINT FROM quality GROUP BY ALL ORDER BY ALL",
    "SELECT claimant, tid, sum(cpu_ns)::BIGINT, sum(switches)::BIGINT FROM weights GROUP BY ALL ORDER BY ALL",
    "SELECT stack_id, folded, frames FROM stacks ORDER BY ALL",
    "SELECT pid, comm, command_line, main_class FROM processes ORDER BY ALL",
];

#[test]
fn the_same_query_gives_the_same_on_both_schemas() {
    let (_parent, before, now) = both();
    assert_eq!(versions(&before), [serde_json::json!({"version": "3"})]);
    assert_eq!(versions(&now), [serde_json::json!({"version": "4"})]);
    for query in QUERIES {
        let rows = DataSet::at(&now).rows(query).unwrap();
        assert!(!rows.is_empty(), "{query}");
        assert_eq!(DataSet::at(&before).rows(query).unwrap(), rows, "{query}");
    }
}

/// What older rows of methods lack is in their branches: the squares that errors are computed from.
#[test]
fn squares_of_methods_are_those_of_branches() {
    let (_parent, before, now) = both();
    let number = |data: &Path, query: &str| {
        let rows = DataSet::at(data).rows(&format!("SELECT ({query})::DOUBLE AS squares")).unwrap();
        rows[0]["squares"].as_f64().unwrap()
    };
    let of_branches = "SELECT sum(energy_uj::DOUBLE ** 2 / samples) FROM branches WHERE samples > 0";
    let of_methods = "SELECT sum(self_squares_uj2) FROM methods";
    let (old, new, rows) = (number(&before, of_branches), number(&now, of_branches), number(&now, of_methods));
    assert!(old > 0.0 && old == new, "{old} {new}");
    // Two digits of each row are off by 5 % at most.
    assert!((old - rows).abs() <= 0.05 * old, "{old} {rows}");
}

/// The SQL of docs/schema.md that gives methods by window, against rows that were by window.
#[test]
fn branches_give_the_methods_of_each_window() {
    let (_parent, before, now) = both();
    let document = fs::read_to_string(paths::root().join("docs/schema.md")).unwrap();
    let query = document.split("```sql\n").find(|part| part.starts_with("WITH paths")).unwrap();
    let mut query = query.split("```").next().unwrap().trim_end().trim_end_matches(';').to_owned();
    for table in ["stacks", "branches"] {
        let files = format!("'{}/{table}/**/*.parquet'", text(&now));
        query = query.replace(&format!("'out/{table}/**/*.parquet'"), &files);
    }
    let figures = "method, sum(self_uj)::BIGINT AS self_uj, sum(total_uj)::BIGINT AS total_uj";
    let of_rows =
        format!("SELECT window_start, pid, {figures} FROM methods GROUP BY ALL HAVING sum(self_uj) > 0 ORDER BY ALL");
    let of_branches =
        format!("SELECT window_start, pid, {figures} FROM ({query}) GROUP BY ALL HAVING sum(self_uj) > 0 ORDER BY ALL");
    let (rows, derived) = (DataSet::at(&before).rows(&of_rows).unwrap(), DataSet::at(&now).rows(&of_branches).unwrap());
    let own = |rows: &[Value]| -> Vec<Value> {
        rows.iter()
            .map(|row| serde_json::json!([row["window_start"], row["pid"], row["method"], row["self_uj"]]))
            .collect()
    };
    assert!(rows.len() > 10, "{rows:?}");
    assert_eq!(own(&rows), own(&derived));
}

/// The SQL of docs/schema.md, on a data set that still has the columns.
#[test]
fn the_documented_view_gives_class_and_package_back() {
    let (_parent, before, now) = both();
    let document = fs::read_to_string(paths::root().join("docs/schema.md")).unwrap();
    let view = document.split("```sql\n").find_map(|part| part.strip_prefix("CREATE VIEW")).unwrap();
    let view = format!("CREATE VIEW{}", view.split("```").next().unwrap());
    let select = view.split_once(" AS\n").unwrap().1.trim_end().trim_end_matches(';');
    let of = |data: &Path, what: &str| {
        let files = format!("'{}/methods/**/*.parquet'", text(data));
        DataSet::at(data).rows(&what.replace("'out/methods/**/*.parquet'", &files)).unwrap()
    };
    let columns = "SELECT DISTINCT method, kind, class, package FROM";
    let old = of(&before, &format!("{columns} methods ORDER BY ALL"));
    assert!(
        old.iter().any(|row| row["class"].is_null()) && old.iter().any(|row| row["package"] == "java.lang"),
        "{old:?}"
    );
    assert_eq!(of(&now, &format!("{columns} ({select}) ORDER BY ALL")), old);
    // Names that a recording need not have.
    let names = "SELECT unnest([
        {'method': 'a.B$C.<init>', 'kind': 'inlined', 'class': 'a.B$C', 'package': 'a'},
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
    assert_eq!(DataSet::at(&now).rows(&wrong).unwrap(), Vec::<Value>::new());
    assert_eq!(DataSet::at(&now).rows(&select).unwrap().len(), 6);
}

#[test]
fn a_data_set_of_schema_3_is_reported_audited_and_compacted_as_it_is() {
    let (parent, before, now) = both();
    let reported = |data: &Path| {
        let report: Value = serde_json::from_str(&expect_success(&[
            "report",
            text(data),
            "--by",
            "method,class,package,branch,thread",
            "--json",
        ]))
        .unwrap();
        report["tables"].clone()
    };
    assert!(!reported(&now).is_null());
    assert_eq!(reported(&before), reported(&now));
    expect_success(&["audit", text(&before)]);
    let compacted = parent.path().join("compacted");
    expect_success(&["compact", text(&before), "--output", text(&compacted)]);
    expect_success(&["audit", text(&compacted)]);
    assert_eq!(versions(&compacted), [serde_json::json!({"version": "3"})]);
    assert!(DataSet::at(&compacted).parquet_files().unwrap() < DataSet::at(&before).parquet_files().unwrap());
    for query in QUERIES {
        assert_eq!(DataSet::at(&compacted).rows(query).unwrap(), DataSet::at(&before).rows(query).unwrap(), "{query}");
    }
    let classes = "SELECT count(class) AS n FROM methods";
    assert_eq!(DataSet::at(&compacted).rows(classes).unwrap(), DataSet::at(&before).rows(classes).unwrap());
}

#[test]
fn a_data_set_of_schema_3_attributed_again_is_of_the_present_schema() {
    let (parent, before, now) = both();
    let again = |data: &Path, name: &str| {
        let output = parent.path().join(name);
        expect_success(&["reattribute", text(data), "--idle", "spread", "--output", text(&output)]);
        expect_success(&["audit", text(&output)]);
        output
    };
    let (before, now) = (again(&before, "before-again"), again(&now, "now-again"));
    assert_eq!(versions(&before), [serde_json::json!({"version": "4"})]);
    for query in QUERIES {
        assert_eq!(DataSet::at(&before).rows(query).unwrap(), DataSet::at(&now).rows(query).unwrap(), "{query}");
    }
}
