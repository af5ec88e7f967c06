//! What cannot be loaded is said with what to do about it.

use std::{fs, os::unix::fs::PermissionsExt as _};

use joular_tests::clickhouse::ClickHouse;

use super::{Loaded, bundles};
use crate::{expect_usage_error, joular_bpf};

#[test]
fn errors_of_the_server_say_what_to_do() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    let file = loaded.folder.path().join("user");
    fs::write(&file, "loader:secret:7\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap().to_owned();
    loaded.server.tell("user loader secret:7").unwrap();
    let without = loaded.load(&[]);
    assert!(without.code() == Some(1) && without.stderr.contains("CLICKHOUSE_PASSWORD"), "{without:?}");
    let with = loaded.load(&["--user-file", &file]);
    assert_eq!(with.code(), Some(0), "{with:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let readable = loaded.load(&["--user-file", &file]);
    assert!(readable.code() == Some(2) && readable.stderr.contains("chmod 600"), "{readable:?}");
    loaded.server.tell("well").unwrap();
    let elsewhere = loaded.load(&["--database", "elsewhere"]);
    assert!(
        elsewhere.code() == Some(1) && elsewhere.stderr.contains("load --schema --database elsewhere"),
        "{elsewhere:?}"
    );
    for finished in [without, readable, elsewhere] {
        assert_eq!(finished.stderr.trim_end().lines().count(), 1, "{finished:?}");
        assert!(!finished.stderr.contains("secret:7"), "{finished:?}");
    }
}

#[test]
fn a_server_that_is_away_and_places_that_are_none_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let away = joular_bpf(&["load", place, "http://127.0.0.1:9"]);
    assert!(away.code() == Some(1) && away.stderr.contains("that ClickHouse runs there"), "{away:?}");
    let absent = joular_bpf(&["load", "absent", "http://127.0.0.1:9"]);
    assert!(absent.code() == Some(1) && absent.stderr.contains("absent"), "{absent:?}");
    expect_usage_error(&["load", place, "http://u:p@127.0.0.1"], &["--user-file"]);
    expect_usage_error(&["load", place], &["URL"]);
    let file = folder.path().join("user");
    fs::write(&file, "a:b").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let words = &["load", place, "http://clickhouse.invalid:8123", "--user-file", file.to_str().unwrap()];
    expect_usage_error(words, &["others could read the password", "https://"]);
}

#[test]
fn a_bundle_that_cannot_be_read_is_named_and_keeps_no_other_back() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    let bad = bundles(&loaded.place()).remove(0);
    let bytes = fs::read(&bad).unwrap();
    fs::write(&bad, &bytes[..bytes.len() / 2]).unwrap();
    let name = bad.file_name().unwrap().to_str().unwrap().to_owned();
    for flags in [&[] as &[&str], &["--check"]] {
        let finished = loaded.load(flags);
        let said = finished.stdout.clone() + &finished.stderr;
        assert!(finished.code() == Some(1) && said.contains(&name), "{flags:?}: {finished:?}");
    }
    assert_eq!(loaded.figure("count() FROM joular.runs"), 2);
}

#[test]
fn tables_of_an_earlier_version_are_refused() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.server.rows("ALTER TABLE joular.bundles MODIFY COMMENT 'joular-bpf 0'").unwrap();
    let finished = loaded.load(&[]);
    assert!(finished.code() == Some(1) && finished.stderr.contains("tables of an earlier version"), "{finished:?}");
    loaded.make_tables(&[]);
    assert_eq!(loaded.load_all(), 3);
}

/// The other tests here would prove nothing if it took whatever it is told.
#[test]
fn the_server_of_these_tests_refuses_what_it_does_not_know() {
    if joular_tests::python::ENGINES.interpreter().is_err() {
        return;
    }
    let mut server = ClickHouse::start().unwrap();
    assert!(server.rows("SELECT nothing").is_err());
    assert_eq!(server.rows("SELECT 1 AS one").unwrap(), [serde_json::json!({"one": 1})]);
}
