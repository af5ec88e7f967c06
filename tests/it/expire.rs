//! Tests `expire` as its users have it: old runs go from a share and from a bucket, and what is kept stays as it was.

use std::{fs, path::Path};

use joular_tests::{dataset::share, s3::S3};
use serde_json::Value;

use crate::{
    joular_bpf,
    shipping::{done, recorded, with},
};

/// Runs of a place, as `runs` lists them.
fn runs(environment: &[(&str, String)], place: &str) -> usize {
    let listed = with(environment, &["runs", place, "--json"]);
    if listed.stderr.contains("there is no run in it") {
        return 0;
    }
    let runs: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    runs.len()
}

#[test]
fn old_runs_go_from_a_share_and_from_a_bucket_and_the_rest_stays_as_it_was() {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    let directory = parent.path().join("share");
    share(&directory).unwrap();
    let server = S3::with_bucket("fleet").unwrap();
    let environment = server.environment();
    for place in [directory.to_str().unwrap(), "s3://fleet/energy/prod", "s3://fleet"] {
        done(&with(&environment, &["ship", &data, place, "--json"]));
        let shipped = runs(&environment, place);
        assert!(shipped > 1, "{place}");
        let report = || with(&environment, &["report", place, "--by", "method", "--json"]).stdout;
        let before = report();
        let expire = |days: &str, more: &[&str]| {
            done(&with(&environment, &[&["expire", place, "--keep-days", days, "--json"], more].concat()))
        };
        let kept = expire("36600", &[]);
        assert_eq!((&kept["runs"], &kept["files"]), (&Value::from(0), &Value::from(0)), "{place}: {kept}");
        // The recording is from before this month.
        let trial = expire("1", &["--dry-run"]);
        assert_eq!(
            (&trial["runs"], &trial["is_trial"]),
            (&Value::from(shipped), &Value::from(true)),
            "{place}: {trial}"
        );
        assert_eq!(report(), before, "{place}");
        let removed = expire("1", &[]);
        assert_eq!((&removed["runs"], &removed["files"]), (&trial["runs"], &trial["files"]), "{place}: {removed}");
        assert_eq!(runs(&environment, place), 0, "{place}");
        assert_eq!(expire("1", &[])["runs"], 0, "{place}: there is nothing more");
    }
    assert!(directory.join(".joular-bpf-share").exists());
}

#[test]
fn what_hosts_do_not_ship_to_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    let refused = joular_bpf(&["expire", &data, "--keep-days", "1"]);
    assert!(refused.code() != Some(0) && refused.stderr.contains(".joular-bpf-share"), "{refused:?}");
    assert!(fs::read_dir(Path::new(&data).join("runs")).unwrap().count() > 0);
    for (place, expected) in [("s3://fleet/energy", Some("energy/windows/")), (data.as_str(), None)] {
        let rules = joular_bpf(&["expire", place, "--keep-days", "30", "--lifecycle"]);
        match expected {
            Some(prefix) => {
                let rules: Value = serde_json::from_str(&rules.stdout).unwrap();
                assert!(
                    rules["Rules"].as_array().unwrap().iter().any(|rule| rule["Filter"]["Prefix"] == prefix),
                    "{rules}"
                );
            }
            None => assert!(rules.code() == Some(1) && rules.stderr.contains("only buckets"), "{rules:?}"),
        }
    }
}
