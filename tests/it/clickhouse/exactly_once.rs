//! Whatever ends a load in the middle, sums are right after the next one.

use std::{fs, process::Command, time::Duration};

use joular_tests::{paths, process::Running};
use rustix::process::Signal;

use super::{Loaded, attributed, bundles, recorded};
use crate::LIMIT;

const RUNS: i64 = 3;

#[test]
fn each_run_is_there_once_whatever_cuts_a_load() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.server.tell("cut before").unwrap();
    let cut = loaded.load(&[]);
    assert!(cut.code() == Some(1) && cut.stderr.contains("check the address"), "{cut:?}");
    assert_eq!(loaded.figure("count() FROM joular.runs"), 0);
    // A table does not take its part of a batch that others take theirs of.
    loaded.server.rows("ALTER TABLE joular.paths_hourly ADD CONSTRAINT broken CHECK energy_uj < 0").unwrap();
    let broken = loaded.load(&[]);
    assert!(broken.code() == Some(1) && broken.stderr.contains("Constraint"), "{broken:?}");
    loaded.server.rows("ALTER TABLE joular.paths_hourly DROP CONSTRAINT broken").unwrap();
    // It arrives, and nobody learns of it.
    loaded.server.tell("cut after").unwrap();
    assert_eq!(loaded.load(&[]).code(), Some(1));
    let arrived = loaded.figure("count() FROM joular.runs");
    assert!((1..RUNS).contains(&arrived), "{arrived} runs are one batch of two");
    loaded.load_all();
    assert_eq!(loaded.load_all(), 0, "all has arrived");
    let attributed = attributed();
    assert!(attributed > 0);
    assert_eq!(loaded.sums(), [attributed; 4]);
    for (table, rows) in
        [("runs", RUNS), ("windows", recorded("count(*) FROM windows")), ("methods", recorded("count(*) FROM methods"))]
    {
        assert_eq!(loaded.figure(&format!("count() FROM joular.{table}")), rows, "{table}");
    }
    let measured = recorded("sum(measured_uj)::BIGINT FROM windows");
    assert_eq!(loaded.figure("sum(measured_uj) FROM joular.loads FINAL"), measured);
    let checked = loaded.load(&["--check"]);
    assert!(checked.code() == Some(0) && checked.stdout.contains(&format!("3 runs of {measured} µJ")), "{checked:?}");
}

#[test]
fn a_load_after_a_lost_answer_says_that_it_sent_all_and_doubles_nothing() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.server.tell("cut after").unwrap();
    assert_eq!(loaded.load(&[]).code(), Some(1));
    assert_eq!(loaded.load_all(), 3);
    assert_eq!(loaded.sums(), [attributed(); 4]);
}

/// The setting is needed: a server whose default is another one, as earlier versions have it, takes the batch again.
#[test]
fn without_the_setting_of_dependent_views_hourly_sums_have_a_batch_twice() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    // The server is told the opposite of what the loader says.
    loaded.server.tell("instead deduplicate_blocks_in_dependent_materialized_views 0").unwrap();
    loaded.server.tell("cut after").unwrap();
    assert_eq!(loaded.load(&[]).code(), Some(1));
    let first = loaded.sums()[2];
    assert!(first > 0);
    loaded.load_all();
    assert_eq!(loaded.sums()[2], attributed() + first);
    let checked = loaded.load(&["--check"]);
    assert_eq!(checked.code(), Some(1), "{checked:?}");
}

#[test]
fn services_and_versions_are_those_of_the_processes() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.load_all();
    let by_service = "SELECT service, version, sum(self_uj) AS uj FROM joular.methods_hourly GROUP BY ALL ORDER BY ALL";
    let found = loaded.server.rows(by_service).unwrap();
    assert!(found.iter().any(|row| row["service"] == "checkout" && row["version"] == "2.0"), "{found:?}");
    assert!(found.iter().any(|row| row["service"] == crate::fleet::EVIL_SERVICE && row["version"] == ""), "{found:?}");
    for row in &found {
        let service = row["service"].as_str().unwrap().replace('\'', "''");
        let version = row["version"].as_str().unwrap();
        let of_processes = format!(
            "sum(m.self_uj + m.inferred_self_uj)::BIGINT FROM methods AS m JOIN (SELECT DISTINCT run_id, pid, process_start, \
             service, version FROM processes WHERE is_target) AS p USING (run_id, pid, process_start) \
             WHERE p.service = '{service}' AND coalesce(p.version, '') = '{version}'"
        );
        assert_eq!(row["uj"], recorded(&of_processes), "{row}");
    }
}

#[test]
fn what_arrives_later_is_loaded_by_who_follows() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    let late = bundles(&loaded.place()).pop().unwrap();
    let aside = loaded.folder.path().join("aside.parquet");
    fs::rename(&late, &aside).unwrap();
    let mut command = Command::new(paths::joular_bpf());
    command.arg("load").arg(loaded.place()).arg(loaded.server.url()).args(["--follow", "--every", "1s"]);
    let mut following = Running::spawn("joular-bpf load", &mut command).unwrap();
    let limit = Duration::from_secs(60);
    following.wait_stderr_with("loaded 2 runs", limit).unwrap();
    fs::rename(&aside, &late).unwrap();
    following.wait_stderr_with("loaded 1 run in 1 batch", limit).unwrap();
    following.signal(Signal::TERM).unwrap();
    assert_eq!(following.finish(LIMIT).unwrap().code(), Some(0));
    assert_eq!(loaded.sums(), [attributed(); 4]);
}

#[test]
fn a_check_names_the_run_that_lacks_a_row_and_no_other() {
    let Some(mut loaded) = Loaded::prepare(2, &[]) else { return };
    loaded.load_all();
    let rows =
        loaded.server.rows("SELECT run_id, pid, self_uj FROM joular.methods ORDER BY self_uj DESC LIMIT 1").unwrap();
    let [run, pid, uj] = ["run_id", "pid", "self_uj"].map(|column| rows[0][column].to_string().replace('"', ""));
    let methods = loaded.figure("count() FROM joular.methods");
    loaded
        .server
        .rows(&format!("DELETE FROM joular.methods WHERE run_id = '{run}' AND pid = {pid} AND self_uj = {uj}"))
        .unwrap();
    assert_eq!(loaded.figure("count() FROM joular.methods"), methods - 1);
    let checked = loaded.load(&["--check"]);
    assert_eq!(checked.code(), Some(1), "{checked:?}");
    let runs: Vec<&str> = checked.stdout.lines().filter(|line| line.starts_with("run ")).collect();
    assert!(matches!(runs.as_slice(), [line] if line.starts_with(&format!("run {run}: methods has "))), "{checked:?}");
    let hours = checked.stdout.lines().filter(|line| line.starts_with("hour ") && line.contains("methods_hourly"));
    assert_eq!(hours.count(), 1, "{checked:?}");
    let json = loaded.load(&["--check", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(said["runs"] == 3 && said["differing"][0]["run"] == run.as_str(), "{said}");
}
