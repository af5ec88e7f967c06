//! Tests places of bundles as their users have them: every command and every engine finds in them what is in the files of
//! tables, to the microjoule.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use joular_tests::{
    dataset::{DataSet, share},
    notes, paths,
    process::{Finished, Running},
    python::{COMMON, ENGINES, Environment},
    shared::Shared,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{joular_bpf, replay::recording};

/// An engine takes seconds to start on a busy machine. This only bounds a hang.
const LIMIT: Duration = Duration::from_secs(120);

/// A folder with the same runs as `tables` and as `fleet`, which has bundles.
fn shipped() -> Arc<TempDir> {
    static SHIPPED: Shared<TempDir> = Shared::new();
    let ship = || {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (data, tables, fleet) = (path("recorded"), path("tables"), path("fleet"));
        let recorded = ["--replay", &recording(), "--quiet", "--flush", "1s", "--rotate", "10s", "--output", &data];
        assert_eq!(joular_bpf(&recorded).code(), Some(0));
        let layouts: [(&String, &[&str]); 2] = [(&tables, &["--layout", "tables"]), (&fleet, &[])];
        for (to, layout) in layouts {
            share(to)?;
            let done = joular_bpf(&[&["ship", &data, to, "--json"], layout].concat());
            assert_eq!(done.code(), Some(0), "{done:?}");
        }
        Ok(folder)
    };
    SHIPPED.get(ship).unwrap()
}

fn bundles(root: &Path) -> Vec<PathBuf> {
    DataSet::at(root).files().unwrap().into_keys().filter(|file| file.extension().is_some()).collect()
}

fn said(arguments: &[&str], place: &Path) -> Finished {
    let place = place.to_str().unwrap();
    let named: Vec<&str> = arguments.iter().map(|word| if *word == "PLACE" { place } else { word }).collect();
    joular_bpf(&named)
}

#[test]
fn a_run_is_one_file_with_a_key_that_begins_with_date_hour_and_group() {
    let shipped = shipped();
    let (fleet, tables) = (shipped.path().join("fleet"), shipped.path().join("tables"));
    let runs = DataSet::at(&tables).rows("SELECT count(*) AS runs FROM runs").unwrap();
    let files = bundles(&fleet);
    assert!(files.len() > 1 && runs[0]["runs"] == json!(files.len()), "{files:?}");
    for file in &files {
        let parts: Vec<&str> = file.iter().map(|part| part.to_str().unwrap()).collect();
        let [raw, date, hour, group, host, run] = parts[..] else { panic!("{file:?}") };
        assert_eq!((raw, group, host), ("raw", "group=00", "host=example"));
        assert!(date.starts_with("date=2") && hour.starts_with("hour="), "{file:?}");
        assert!(run.starts_with("example-") && run.ends_with(".parquet"), "{file:?}");
    }
    let bytes = |root: &Path| DataSet::at(root).parquet_bytes().unwrap();
    assert!(bytes(&fleet) * 10 < bytes(&tables) * 8, "{} bytes, {} in tables", bytes(&fleet), bytes(&tables));
}

#[test]
fn every_command_says_of_bundles_what_it_says_of_tables() {
    let shipped = shipped();
    for arguments in [
        &["report", "PLACE", "--by", "method,process,host", "--json"] as &[_],
        &["report", "PLACE", "--csv", "--by", "thread"],
        &["report", "PLACE", "--json", "--since", "2020-01-01T00:00:00Z", "--host", "example"],
        &["runs", "PLACE", "--json"],
        &["audit", "PLACE", "--json"],
        &["export", "PLACE", "--format", "collapsed"],
        &["flamegraph", "PLACE", "--output", "-"],
        &["diff", "PLACE", "PLACE"],
    ] {
        let of = |name: &str| {
            let place = shipped.path().join(name);
            let finished = said(arguments, &place);
            assert_eq!(finished.code(), Some(0), "{arguments:?}: {finished:?}");
            finished.stdout.replace(place.to_str().unwrap(), "PLACE")
        };
        assert_eq!(of("fleet"), of("tables"), "{arguments:?}");
    }
    // What says how many files there are, or when it was made.
    for arguments in [&["audit", "PLACE", "--secrets"] as &[_], &["html", "PLACE", "--output", "-"]] {
        let finished = said(arguments, &shipped.path().join("fleet"));
        assert_eq!(finished.code(), Some(0), "{arguments:?}: {finished:?}");
    }
}

#[test]
fn what_is_made_of_tables_says_what_it_needs() {
    let shipped = shipped();
    let fleet = shipped.path().join("fleet");
    let out = shipped.path().join("out").to_str().unwrap().to_owned();
    for (arguments, words) in [
        (vec!["compact", "PLACE", "--output", &*out], ["compacting", "one file already"]),
        (vec!["compact", "PLACE"], ["compacting", "one file already"]),
        (vec!["rollup", "PLACE", "--output", &*out], ["it is a rollup already", "roll up what was recorded"]),
        (vec!["reattribute", "PLACE", "--output", &*out, "--idle", "spread"], ["table weights", "raw/"]),
    ] {
        let finished = said(&arguments, &fleet);
        assert_ne!(finished.code(), Some(0), "{finished:?}");
        assert!(words.iter().all(|word| finished.stderr.contains(word)), "{finished:?}");
        let _ = fs::remove_dir_all(&out);
    }
    assert!(bundles(&fleet).len() > 1, "nothing was changed");
}

#[test]
fn a_damaged_bundle_is_left_out_and_named_and_strict_fails() {
    let (shipped, copy) = (shipped(), tempfile::tempdir().unwrap());
    for file in bundles(&shipped.path().join("fleet")) {
        let to = copy.path().join(&file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(shipped.path().join("fleet").join(&file), to).unwrap();
    }
    let all = bundles(copy.path());
    let damaged = copy.path().join(&all[0]);
    let whole = fs::read(&damaged).unwrap();
    fs::write(&damaged, &whole[..whole.len() / 2]).unwrap();
    let report = said(&["report", "PLACE", "--json"], copy.path());
    assert_eq!(report.code(), Some(0), "{report:?}");
    let expected = format!("1 of {} runs was left out: {}: ", all.len(), damaged.display());
    assert!((report.stdout.clone() + &report.stderr).contains(&expected), "{report:?}");
    for arguments in [&["report", "PLACE", "--strict"] as &[_], &["audit", "PLACE"]] {
        let failed = said(arguments, copy.path());
        assert!(failed.code() == Some(1) && failed.stderr.contains(damaged.to_str().unwrap()), "{failed:?}");
    }
}

#[test]
fn a_fleet_is_given_groups_once() {
    let parent = tempfile::tempdir().unwrap();
    let place = parent.path().join("place");
    share(&place).unwrap();
    let init = || said(&["ship", "--init", "--hosts", "2000", "PLACE", "--json"], &place);
    let made = init();
    assert_eq!(made.code(), Some(0), "{made:?}");
    let made: Value = serde_json::from_str(&made.stdout).unwrap();
    assert_eq!(made["groups"], 63);
    let fleet: Value = serde_json::from_slice(&fs::read(place.join("fleet.json")).unwrap()).unwrap();
    assert_eq!(fleet, json!({"format": 1, "groups": [{"since": made["since"], "n": 63}]}));
    let again = init();
    assert!(again.code() != Some(0) && again.stderr.contains("it is there already"), "{again:?}");
}

/// Shell blocks of the document's section about bundles.
fn one_liners() -> Vec<String> {
    let text = fs::read_to_string(paths::root().join("docs/fleet/reading.md")).unwrap();
    let section =
        text.split("\n## Bundles in other engines\n").nth(1).unwrap().split("\n## ").next().unwrap().to_owned();
    let blocks = section.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next().map(str::to_owned));
    blocks.collect()
}

/// What an example prints, in the folder that has `fleet`.
fn printed(example: &str, environment: &Environment) -> String {
    let shipped = shipped();
    let mut command = std::process::Command::new(environment.interpreter().unwrap());
    command.args(["-c", example]).current_dir(shipped.path());
    let finished = Running::spawn("python", &mut command).unwrap().finish(LIMIT).unwrap();
    assert_eq!(finished.code(), Some(0), "{example}: {finished:?}");
    finished.stdout
}

#[test]
fn every_engine_finds_in_bundles_the_sums_of_the_tables() {
    let tables = shipped().path().join("tables");
    let sql = "SELECT sum(self_uj + inferred_self_uj)::BIGINT AS uj FROM methods";
    let rows = DataSet::at(&tables).rows(sql).unwrap();
    let expected = rows[0]["uj"].as_i64().unwrap().to_string();
    let examples = one_liners();
    assert_eq!(examples.len(), 5, "DuckDB, polars, pandas, pyarrow and ClickHouse");
    for example in examples {
        let environment = if example.contains("chdb") { &ENGINES } else { &COMMON };
        if example.contains("chdb") && ENGINES.interpreter().is_err() {
            notes::skipped("PyPI's packages of ClickHouse cannot be installed");
            continue;
        }
        let printed = printed(&example, environment);
        let numbers: Vec<&str> = printed.split(|c: char| !c.is_ascii_digit()).collect();
        assert!(numbers.contains(&expected.as_str()), "{example}: {printed}, not {expected}");
    }
}

#[test]
fn duckdb_finds_every_row_of_every_table() {
    let shipped = shipped();
    let (fleet, tables) = (shipped.path().join("fleet"), shipped.path().join("tables"));
    let folders: Vec<String> = fs::read_dir(&tables)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    assert!(folders.len() >= 9, "{folders:?}");
    for table in &folders {
        let bundled =
            format!("SELECT unnest({table}, max_depth := 2) FROM read_parquet('{}/raw/**/*.parquet')", fleet.display());
        let flat = format!(
            "SELECT * FROM read_parquet('{}/{table}/**/*.parquet', hive_partitioning = false)",
            tables.display()
        );
        for (left, right) in [(&bundled, &flat), (&flat, &bundled)] {
            let more = format!("SELECT count(*) AS more FROM (({left}) EXCEPT ALL ({right}))");
            assert_eq!(DataSet::at(&tables).rows(&more).unwrap(), [json!({"more": 0})], "{table}");
        }
        let rows = format!("SELECT count(*) > 0 AS has_rows FROM ({bundled})");
        assert_eq!(DataSet::at(&tables).rows(&rows).unwrap(), [json!({"has_rows": true})], "{table}");
    }
}
