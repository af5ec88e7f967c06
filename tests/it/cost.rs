//! Tests what docs/fleet/cost.md says: its tables are the script's, the script's counts are what the program asks of a
//! bucket, and its policies are policies.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use joular_tests::{paths, process::Running, s3::S3};
use serde_json::Value;

use crate::{
    LIMIT,
    shipping::{done, recorded, with},
};

/// Actions that the page may name. Those of S3 are in AWS's service authorization reference, "Actions, resources, and
/// condition keys for Amazon S3".
const ACTIONS: [&str; 6] =
    ["s3:PutObject", "s3:GetObject", "s3:ListBucket", "s3:DeleteObject", "kms:GenerateDataKey", "kms:Decrypt"];

fn script(arguments: &[&str]) -> String {
    let mut command = Command::new("python3");
    command.env("PYTHONDONTWRITEBYTECODE", "1").arg(paths::root().join("docs/fleet/cost.py")).args(arguments);
    let finished = Running::spawn("cost.py", &mut command).unwrap().finish(LIMIT).unwrap();
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    finished.stdout
}

fn page() -> String {
    fs::read_to_string(paths::root().join("docs/fleet/cost.md")).unwrap()
}

#[test]
fn the_tables_are_those_of_the_script() {
    let page = page();
    let (_, rest) = page.split_once("<!-- made by cost.py -->\n").unwrap();
    let (tables, _) = rest.split_once("\n<!-- end of what cost.py made -->").unwrap();
    assert_eq!(tables.trim_end(), script(&[]).trim_end());
    let other = script(&["2000", "--objects", "1", "--keep", "7"]);
    assert!(other.contains("| 2 000 | 192 000 PUT, $0.9600 |"), "{other}");
}

#[test]
fn requests_are_as_many_as_the_script_counts() {
    let facts: Value = serde_json::from_str(&script(&["--facts"])).unwrap();
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    let mut server = S3::with_bucket("fleet").unwrap();
    let environment = server.environment();
    for layout in ["bundles", "tables"] {
        let of = |name: &str| facts[name][layout].as_u64().unwrap();
        let place = format!("s3://fleet/{layout}");
        fs::remove_dir_all(Path::new(&data).join(".shipped")).ok();
        server.count().unwrap();
        let shipped = done(&with(&environment, &["ship", &data, &place, "--layout", layout, "--json"]));
        let runs = shipped["runs"].as_u64().unwrap();
        assert!(runs > 1, "{shipped}");
        let counted = server.count().unwrap();
        assert_eq!(counted["PUT"], runs * of("objects_of_a_run"), "{layout}: {counted:?}");
        // Whether hosts are in groups is asked once.
        assert!(counted.values().sum::<u64>() <= counted["PUT"] + 2, "{layout}: {counted:?}");

        let report = with(&environment, &["report", &place, "--json", "--tier", "raw"]);
        assert_eq!(report.code(), Some(0), "{report:?}");
        let counted = server.count().unwrap();
        assert_eq!(counted["GET"], runs * of("gets_of_a_run"), "{layout}: {counted:?}");
        assert!(counted["LIST"] > 0 && counted.len() == 2, "{layout}: {counted:?}");
    }
}

#[test]
fn policies_name_real_actions_and_hosts_may_create_their_own_runs_only() {
    let page = page();
    let blocks = page.split("```json\n").skip(1).map(|block| block.split("```").next().unwrap());
    let blocks: Vec<Value> = blocks.map(|block| serde_json::from_str(block).unwrap()).collect();
    let statements: Vec<&Value> = blocks.iter().filter_map(|block| block["Statement"].as_array()).flatten().collect();
    let rules = blocks.iter().filter(|block| block["Rules"].is_array()).count();
    let policies = blocks.iter().filter(|block| block["Version"] == "2012-10-17").count();
    assert_eq!((policies, rules, policies + rules), (5, 2, blocks.len()));
    for statement in &statements {
        assert_eq!(statement["Effect"], "Allow");
        for action in texts(&statement["Action"]) {
            assert!(ACTIONS.contains(&action), "{action}");
        }
        assert!(texts(&statement["Resource"]).iter().all(|resource| resource.starts_with("arn:aws:")), "{statement}");
    }
    let hosts = statements.iter().find(|statement| statement["Principal"].is_object()).unwrap();
    assert_eq!(texts(&hosts["Action"]), ["s3:PutObject"]);
    assert_eq!(hosts["Condition"]["Null"]["s3:if-none-match"], "false");

    let bundles = "arn:aws:s3:::fleet/energy/raw/date=????-??-??/hour=??/group=*/host=${aws:PrincipalTag/host}/*";
    let (raw, tables): (Vec<&str>, Vec<&str>) =
        texts(&hosts["Resource"]).into_iter().partition(|resource| *resource == bundles);
    assert_eq!(raw.len(), 1);
    let of_table = |resource: &str| {
        let table = resource.strip_prefix("arn:aws:s3:::fleet/energy/").unwrap();
        let table = table.strip_suffix("/date=????-??-??/host=${aws:PrincipalTag/host}/*").unwrap();
        table.to_owned()
    };
    let tables: BTreeSet<String> = tables.into_iter().map(of_table).collect();
    let schema = fs::read_to_string(paths::root().join("docs/schema.md")).unwrap();
    for table in &tables {
        assert!(schema.contains(&format!("\n### {table}\n")), "docs/schema.md has no table {table}");
    }
    let parent = tempfile::tempdir().unwrap();
    let (data, to) = (recorded(parent.path()), parent.path().join("to"));
    joular_tests::dataset::share(&to).unwrap();
    done(&crate::joular_bpf(&["ship", &data, to.to_str().unwrap(), "--layout", "tables", "--json"]));
    for table in folders(&to) {
        assert!(tables.contains(&table), "hosts may not ship {table}");
    }
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}

/// Names of the folders of tables.
fn folders(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).collect()
}
