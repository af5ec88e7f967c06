//! Tests `report` on a data set that a replay wrote. Its figures are those of plain SQL, to the
//! microjoule, in every table and under every filter, and other programs read what it writes for
//! machines.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use joular_tests::{dataset::DataSet, process::Finished, python};
use serde_json::Value;
use tempfile::TempDir;

use crate::{expect_usage_error, joular_bpf, replay::recording};

const TABLES: [&str; 13] = [
    "method",
    "class",
    "package",
    "branch",
    "thread",
    "category",
    "kind",
    "process",
    "service",
    "container",
    "pod",
    "host",
    "line",
];

/// A data set that all tests read.
fn data() -> DataSet {
    static DIR: OnceLock<TempDir> = OnceLock::new();
    let dir = DIR.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        replay(&dir.path().join("out"));
        dir
    });
    DataSet::at(dir.path().join("out"))
}

fn replay(output: &Path) {
    let output = output.to_str().unwrap();
    let finished = joular_bpf(&["--replay", &recording(), "--quiet", "--output", output]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
}

fn report_on(dir: &Path, options: &[&str]) -> Finished {
    joular_bpf(&[&["report", dir.to_str().unwrap()], options].concat())
}

fn expect_report(options: &[&str]) -> String {
    let finished = report_on(data().dir(), options);
    assert_eq!(finished.code(), Some(0), "{options:?}: {finished:?}");
    assert!(finished.stderr.is_empty(), "{options:?}: {finished:?}");
    finished.stdout
}

/// All rows of tables as they were recorded, which is what SQL sees.
fn json(options: &[&str]) -> Value {
    serde_json::from_str(&expect_report(&[options, &["--json", "--top", "0", "--no-infer"]].concat())).unwrap()
}

/// Microjoules of each row of a table, by what the rows' keys say.
fn sums(table: &Value, keys: &[&str], figure: &str) -> BTreeMap<Vec<String>, u64> {
    let rows = table["rows"].as_array().unwrap();
    let mut sums = BTreeMap::new();
    for row in rows {
        let key = keys.iter().map(|key| row[*key].to_string()).collect();
        *sums.entry(key).or_default() += row[figure].as_u64().unwrap();
    }
    sums
}

/// The same by SQL; the last column is the figure.
fn by_sql(sql: &str, keys: &[&str]) -> BTreeMap<Vec<String>, u64> {
    let rows = data().rows(sql).unwrap();
    assert!(!rows.is_empty(), "{sql}");
    let key = |row: &Value| keys.iter().map(|key| row[*key].to_string()).collect();
    rows.iter().map(|row| (key(row), row["uj"].as_u64().unwrap())).collect()
}

fn energy(report: &Value) -> u64 {
    report["selection"]["energy_uj"].as_u64().unwrap()
}

#[test]
fn every_table_sums_to_the_selection_however_it_is_cut() {
    let attributed = data().number("SELECT sum(attributed_uj)::BIGINT AS x FROM windows").unwrap();
    for top in ["0", "1", "3"] {
        let text = expect_report(&["--by", &TABLES.join(","), "--top", top, "--json"]);
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(energy(&report) as f64, attributed);
        let recorded: Value = serde_json::from_str(&expect_report(&["--json", "--top", top, "--no-infer"])).unwrap();
        assert_eq!((energy(&recorded), &recorded["selection"]["inferred_uj"]), (energy(&report), &Value::from(0)));
        let tables = report["tables"].as_array().unwrap();
        assert_eq!(tables.iter().map(|table| table["by"].as_str().unwrap()).collect::<Vec<_>>(), TABLES);
        for table in tables {
            for (figure, whole) in [("self_uj", "energy_uj"), ("self_cpu_ns", "cpu_ns"), ("self_samples", "samples")] {
                let rows = table["rows"].as_array().unwrap().iter().chain([&table["others"]]);
                let sum: u64 = rows.filter_map(|row| row[figure].as_u64()).sum();
                assert_eq!(Some(sum), report["selection"][whole].as_u64(), "{} {figure} top {top}", table["by"]);
            }
        }
    }
}

/// Table `methods` with class and package, as docs/schema.md gives them.
const JAVA: &str = r"(
    SELECT *, CASE WHEN contains(class, '.') THEN regexp_replace(class, '[.][^.]*$', '') ELSE left(class, 0) END AS package
    FROM (
        SELECT *, CASE WHEN kind IN ('interpreted', 'compiled', 'compiled-c1', 'compiled-c2', 'inlined', 'native-wrapper')
                       THEN regexp_replace(method, '[.][^.]*$', '') END AS class
        FROM methods))";

#[test]
fn every_figure_is_that_of_plain_sql() {
    for (by, keys, figure, sql) in [
        (
            "method",
            &["method", "signature", "module"][..],
            "self_uj",
            "SELECT method, signature, module, sum(self_uj)::BIGINT AS uj FROM methods GROUP BY ALL",
        ),
        ("class", &["class"], "self_uj", &format!("SELECT class, sum(self_uj)::BIGINT AS uj FROM {JAVA} GROUP BY ALL")),
        (
            "package",
            &["package"],
            "self_uj",
            &format!("SELECT package, sum(self_uj)::BIGINT AS uj FROM {JAVA} GROUP BY ALL"),
        ),
        ("kind", &["kind"], "self_uj", "SELECT kind, sum(self_uj)::BIGINT AS uj FROM methods GROUP BY ALL"),
        ("process", &["pid"], "self_uj", "SELECT pid, sum(energy_uj)::BIGINT AS uj FROM threads GROUP BY ALL"),
        (
            "thread",
            &["pid", "tid"],
            "total_uj",
            "SELECT pid, tid, sum(energy_uj)::BIGINT AS uj FROM threads GROUP BY ALL HAVING sum(cpu_ns) > 0",
        ),
        (
            "category",
            &["category"],
            "self_uj",
            "SELECT category, sum(energy_uj)::BIGINT AS uj FROM threads GROUP BY ALL HAVING sum(cpu_ns) > 0",
        ),
        (
            "branch",
            &["branch_id"],
            "self_uj",
            "SELECT branch_id, sum(energy_uj)::BIGINT AS uj FROM branches GROUP BY ALL",
        ),
        ("host", &["host"], "self_uj", "SELECT host, sum(energy_uj)::BIGINT AS uj FROM branches GROUP BY ALL"),
    ] {
        let report = json(&["--by", by]);
        assert_eq!(sums(&report["tables"][0], keys, figure), by_sql(sql, keys), "{by}");
    }
}

#[test]
fn a_methods_total_is_that_of_plain_sql() {
    // A method is one row here, in table methods one for each kind of code; only
    // paths tell how they overlap.
    let sql = "WITH methods_of AS (
            SELECT DISTINCT stack_id, f.class AS class, f.method AS name, f.signature AS signature, f.module AS module
            FROM (SELECT stack_id, unnest(frames) AS f FROM stacks))
        SELECT CASE WHEN class IS NULL THEN name ELSE class || '.' || name END AS method, signature, module,
            sum(energy_uj)::BIGINT AS uj
        FROM branches JOIN methods_of USING (stack_id) GROUP BY ALL";
    let keys = ["method", "signature", "module"];
    assert_eq!(sums(&json(&["--by", "method"])["tables"][0], &keys, "total_uj"), by_sql(sql, &keys));
}

#[test]
fn filters_are_conditions_of_sql() {
    let number = |sql: &str| data().number(sql).unwrap();
    let pid = number("SELECT pid FROM branches GROUP BY 1 ORDER BY sum(energy_uj) DESC LIMIT 1").to_string();
    let from = "SELECT coalesce(sum(energy_uj), 0)::BIGINT AS x FROM branches WHERE ";
    for (options, condition) in [
        (vec!["--pid", &pid], format!("pid = {pid}")),
        (vec!["--category", "java"], "category = 'java'".to_owned()),
        (vec!["--category", "gc,jit"], "category IN ('gc', 'jit')".to_owned()),
        (vec!["--thread", "GC*"], "thread_name GLOB 'GC*'".to_owned()),
        (vec!["--pid", &pid, "--category", "java"], format!("pid = {pid} AND category = 'java'")),
        (vec!["--since", "3s"], "window_start >= (SELECT min(started) FROM runs) + INTERVAL 3 SECOND".to_owned()),
        (vec!["--until", "3s"], "window_start < (SELECT min(started) FROM runs) + INTERVAL 3 SECOND".to_owned()),
        (
            vec!["--method", "Hot.light"],
            "stack_id IN (SELECT stack_id FROM stacks WHERE list_contains(string_split(folded, ';'), 'Hot.light'))"
                .to_owned(),
        ),
    ] {
        let report = json(&options);
        let expected = number(&format!("{from}{condition}"));
        assert!(expected > 0.0, "{condition}");
        assert_eq!(energy(&report) as f64, expected, "{options:?}");
        let of_rows: u64 = sums(&report["tables"][0], &["name"], "self_uj").values().sum();
        assert_eq!(of_rows, energy(&report), "{options:?}");
    }
}

#[test]
fn processes_chosen_do_not_divide_the_machine() {
    let (all, java) = (json(&[]), json(&["--category", "java"]));
    assert!(energy(&java) < energy(&all));
    assert_eq!(java["audit"], all["audit"]);
    let audit = &all["audit"];
    let uj = |name: &str| audit[name].as_u64().unwrap();
    assert_eq!(uj("measured_uj"), uj("attributed_uj") + uj("static_uj") + uj("unattributed_uj"));
    let items: u64 = audit["unattributed"].as_object().unwrap().values().map(|item| item.as_u64().unwrap()).sum();
    assert_eq!(items, uj("unattributed_uj"));
    assert_eq!(uj("attributed_uj"), energy(&all));
}

#[test]
fn a_jvms_tax_and_parts_are_those_of_plain_sql() {
    let report = json(&[]);
    let jvms = report["jvms"].as_array().unwrap();
    let expected = by_sql("SELECT pid, sum(vm_tax_uj)::BIGINT AS uj FROM jvms GROUP BY ALL", &["pid"]);
    assert_eq!(jvms.len(), 2);
    for jvm in jvms {
        assert_eq!(jvm["vm_tax_uj"].as_u64().unwrap(), expected[&vec![jvm["pid"].to_string()]]);
        let parts = jvm["parts"].as_object().unwrap().values().map(|part| part.as_u64().unwrap());
        assert_eq!(parts.sum::<u64>(), jvm["energy_uj"].as_u64().unwrap());
    }
}

#[test]
fn the_apps_view_has_the_same_sum_and_other_rows() {
    let (all, app) = (json(&[]), json(&["--app", "Hot"]));
    assert_eq!(energy(&app), energy(&all));
    assert_eq!(app["is_app_view"], true);
    let rows = sums(&app["tables"][0], &["name"], "self_uj");
    assert_eq!(rows.values().sum::<u64>(), energy(&all));
    let is_app = |name: &str| name.starts_with("\"Hot") || name == "\"[outside of the app]\"";
    assert!(rows.keys().flatten().all(|name| is_app(name)), "{rows:?}");
    let of_code = |rows: &BTreeMap<Vec<String>, u64>| rows[&vec!["\"Hot.heavy\"".to_owned()]];
    assert!(of_code(&rows) >= of_code(&sums(&all["tables"][0], &["name"], "self_uj")));
}

#[test]
fn the_apps_packages_are_found_and_auto_stands_for_them() {
    let (all, auto) = (json(&[]), json(&["--app", "auto"]));
    let [package] = all["app"].as_array().unwrap().as_slice() else { panic!("{}", all["app"]) };
    assert_eq!(package["package"], "(unnamed package)");
    assert_eq!((&auto["app"], energy(&auto)), (&all["app"], energy(&all)));
    assert_eq!(auto["tables"], json(&["--app", "(unnamed package)"])["tables"]);
    let rows = sums(&auto["tables"][0], &["name"], "self_uj");
    let of_app = rows.iter().filter(|(name, _)| name[0] != "\"[outside of the app]\"").map(|(_, uj)| uj).sum::<u64>();
    assert_eq!(package["self_uj"].as_u64(), Some(of_app));
    for options in [&[][..], &["--markdown"]] {
        let text = expect_report(options).replace('\\', "");
        assert!(text.contains("App: (unnamed package); ") && text.contains("--app auto shows it alone"), "{text}");
    }
}

#[test]
fn where_no_package_is_found_auto_is_refused() {
    let gc = report_on(data().dir(), &["--app", "auto", "--category", "gc"]);
    assert_eq!(gc.code(), Some(1), "{gc:?}");
    assert!(gc.stderr.contains("--app auto") && gc.stdout.is_empty(), "{gc:?}");
    let data = data();
    let data = data.dir().to_str().unwrap();
    expect_usage_error(&["report", data, "--library", "com.vendor"], &["--app"]);
    expect_usage_error(&["report", data, "--app", "Hot", "--library", "com.vendor"], &["--library", "--app auto"]);
}

#[test]
fn calls_are_counted_where_something_is_called() {
    let report = json(&["--by", "method,thread", "--activations"]);
    let windows = report["extent"]["windows"].as_u64().unwrap();
    let heavy = report["tables"][0]["rows"].as_array().unwrap().iter().find(|row| row["name"] == "Hot.heavy").unwrap();
    let calls = heavy["activations"].as_u64().unwrap();
    // Two threads have it, and every window could show one call of each.
    assert!((2..=2 * windows).contains(&calls), "{heavy}");
    assert_eq!(heavy["activation_uj"].as_u64().unwrap(), heavy["total_uj"].as_u64().unwrap().div_ceil(calls));
    assert!(report["tables"][1]["rows"][0].get("activations").is_none());
}

#[test]
fn a_csv_is_read_by_pythons_reader() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("methods.csv");
    for by in TABLES {
        fs::write(&path, expect_report(&["--by", by, "--csv", "--top", "3"])).unwrap();
        let script = "import csv, json, sys; print(json.dumps(list(csv.DictReader(open(sys.argv[1], newline='')))))";
        let output = Command::new(python::interpreter().unwrap()).args(["-c", script]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let rows: Vec<BTreeMap<String, Option<String>>> = serde_json::from_slice(&output.stdout).unwrap();
        let sum: u64 = rows.iter().map(|row| row["self_uj"].as_ref().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(sum, energy(&json(&[])), "{by}");
        assert!(rows.iter().all(|row| row["energy_label"].as_deref() == Some("modelled")), "{by}: {rows:?}");
    }
}

#[test]
fn every_format_says_how_the_energy_came_about() {
    for options in [&[][..], &["--markdown"], &["--csv"], &["--json"]] {
        assert!(expect_report(options).contains("modelled"), "{options:?}");
    }
    assert!(!expect_report(&[]).contains('\x1b'), "colours where there is no terminal");
}

#[test]
fn a_selection_that_nothing_matches_is_a_report_of_nothing() {
    for options in [&["--pid", "1"][..], &["--since", "1h"], &["--method", "no.such.Method"], &["--host", "nowhere"]] {
        let text = expect_report(options);
        assert!(text.contains("nothing in the data set matches this selection"), "{options:?}: {text}");
        assert_eq!(energy(&json(options)), 0);
    }
}

fn table_file(dir: &Path, table: &str) -> PathBuf {
    let files = DataSet::at(dir).files().unwrap();
    dir.join(files.keys().find(|path| path.starts_with(table)).unwrap())
}

#[test]
fn what_is_no_data_set_or_a_damaged_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let absent = report_on(&dir.path().join("absent"), &[]);
    assert!(absent.code() == Some(1) && absent.stderr.contains("--output"), "{absent:?}");
    let empty = report_on(dir.path(), &[]);
    assert!(empty.code() == Some(1) && empty.stderr.contains("there is no run in it"), "{empty:?}");
    let out = dir.path().join("out");
    replay(&out);
    for table in ["runs", "windows", "branches", "stacks", "processes", "jvms", "quality"] {
        let path = table_file(&out, table);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let finished = report_on(&out, &[]);
        assert_eq!(finished.code(), Some(1), "{table}: {finished:?}");
        let said = &finished.stderr;
        assert!(said.contains(path.to_str().unwrap()) && said.contains("damaged"), "{table}: {said}");
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn a_data_set_of_a_later_joular_bpf_is_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    replay(&out);
    let script = "import sys, pyarrow.parquet as pq
table = pq.ParquetFile(sys.argv[1]).read()
later = {**table.schema.metadata, b'joular_bpf.schema_version': b'99'}
pq.write_table(table.replace_schema_metadata(later), sys.argv[1])";
    for table in ["runs", "branches", "stacks"] {
        let path = table_file(&out, table);
        let whole = fs::read(&path).unwrap();
        let python = python::interpreter().unwrap();
        let output = Command::new(python).args(["-c", script]).arg(&path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let finished = report_on(&out, &[]);
        assert_eq!(finished.code(), Some(1), "{table}: {finished:?}");
        for word in [path.to_str().unwrap(), "schema version 99", "use "] {
            assert!(finished.stderr.contains(word), "{table}: the message lacks '{word}': {finished:?}");
        }
        fs::write(&path, &whole).unwrap();
    }
}

#[test]
fn energy_without_a_name_is_that_of_plain_sql() {
    let report = json(&[]);
    let unnamed = report["unnamed_uj"].as_object().unwrap();
    let sql = "SELECT CASE WHEN starts_with(method, '[unresolved') THEN '[unresolved]' ELSE method END AS marker,
        sum(self_uj)::BIGINT AS uj FROM methods WHERE kind = 'marker' OR starts_with(method, '[unresolved')
        GROUP BY 1 HAVING sum(self_cpu_ns) > 0";
    let said = unnamed.iter().map(|(name, uj)| (vec![format!("\"{name}\"")], uj.as_u64().unwrap())).collect();
    assert_eq!(by_sql(sql, &["marker"]), said);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = data().dir().to_owned();
    let binary = joular_tests::paths::joular_bpf();
    let line = "\"$0\" report \"$1\" --by branch --top 0 --json | head -c 1; test ${PIPESTATUS[0]} = 0";
    let output = Command::new("bash").args(["-c", line]).arg(binary).arg(dir).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn wrong_use_is_named() {
    let dir = data().dir().to_owned();
    let dir = dir.to_str().unwrap();
    expect_usage_error(&["report", dir, "--by", "color"], &["--by", "color", "method"]);
    expect_usage_error(&["report", dir, "--csv", "--by", "method,thread"], &["--csv", "one table"]);
    expect_usage_error(&["report", dir, "--csv", "--json"], &["--csv", "--json"]);
    expect_usage_error(&["report", dir, "--since", "noon"], &["--since", "noon"]);
}
