//! Tests `erase` as its users have it: a service is gone from a share and from a bucket, every sum stays, and neither compact
//! nor a late run brings it back.

use std::fs;

use joular_tests::{dataset::share, s3::S3};
use serde_json::Value;

use crate::{
    joular_bpf,
    shipping::{done, with},
    tiers::{around, services, with_services},
};

/// Energy, CPU time and samples of all services together.
fn total(services: &[(String, u64, u64, u64)]) -> (u64, u64, u64) {
    services.iter().fold((0, 0, 0), |sum, (_, energy, time, samples)| (sum.0 + energy, sum.1 + time, sum.2 + samples))
}

#[test]
fn a_service_is_gone_from_a_share_and_a_bucket_and_every_sum_stays() {
    let parent = tempfile::tempdir().unwrap();
    let data = with_services(parent.path());
    let directory = parent.path().join("share");
    share(&directory).unwrap();
    let server = S3::with_bucket("fleet").unwrap();
    let environment = server.environment();
    for place in [directory.to_str().unwrap(), "s3://fleet/energy"] {
        done(&with(&environment, &["ship", &data, place, "--json"]));
        let [since, until] = around(&environment, place);
        let compact = || done(&with(&environment, &["compact", place, "--since", &since, "--until", &until, "--json"]));
        compact();
        let places = [place.to_owned(), format!("{place}/minutes"), format!("{place}/hourly")];
        let before = services(&environment, place);
        let (service, energy, ..) = before.iter().max_by_key(|service| service.1).unwrap();
        let erase = |more: &[&str]| done(&with(&environment, &[&["erase", place, "--json"], more].concat()));
        let trial = erase(&["--service", service, "--dry-run"]);
        assert!(trial["runs"].as_u64() > Some(0) && trial["is_trial"] == true, "{place}: {trial}");
        assert_eq!(services(&environment, place), before, "{place}: a trial only looks");
        let erased = erase(&["--service", service]);
        assert_eq!(erased["runs"], trial["runs"], "{place}: {erased}");
        assert!(erased["rows"].as_u64() > Some(0), "{place}: {erased}");
        assert!(erased["record"].as_str().unwrap().ends_with("erasures/0001.json"), "{place}: {erased}");
        for round in ["erased", "compacted again"] {
            for part in &places {
                let after = services(&environment, part);
                assert!(!after.iter().any(|(name, ..)| name == service), "{part} {round}: {after:?}");
                let found = after.iter().find(|(name, ..)| name == "[erased]").map(|found| found.1);
                assert_eq!(found, Some(*energy), "{part} {round}");
                assert_eq!(total(&after), total(&before), "{part} {round}");
                let audit = with(&environment, &["audit", part]);
                assert_eq!(audit.code(), Some(0), "{part} {round}: {audit:?}");
            }
            compact();
        }
        let again = with(&environment, &["erase", place, "--again"]);
        assert!(again.code() == Some(0) && again.stdout == "there is nothing to erase", "{place}: {again:?}");
    }
    // No name of a file has it either, and every file is there once.
    let listed = fs::read_dir(directory.join("erasures")).unwrap().count();
    assert_eq!(listed, 1);
}

#[test]
fn a_host_goes_with_its_runs_and_what_is_not_there_is_said() {
    let parent = tempfile::tempdir().unwrap();
    let data = with_services(parent.path());
    let directory = parent.path().join("share");
    share(&directory).unwrap();
    let place = directory.to_str().unwrap();
    done(&joular_bpf(&["ship", &data, place, "--json"]));
    let runs = done(&joular_bpf(&["runs", place, "--json"]));
    let host = runs[0]["host"].as_str().unwrap();
    let none = joular_bpf(&["erase", place, "--host", "nobody"]);
    assert!(none.code() == Some(0) && none.stdout == "there is nothing to erase", "{none:?}");
    assert!(!directory.join("erasures").exists());
    let recorded = done(&joular_bpf(&["erase", place, "--pod", "p-1", "--record", "--json"]));
    assert!(recorded["record"].is_string() && recorded["runs"] == 0, "{recorded}");
    let erased = done(&joular_bpf(&["erase", place, "--host", host, "--json"]));
    assert_eq!(erased["runs"], Value::from(runs.as_array().unwrap().len()), "{erased}");
    let left = joular_bpf(&["runs", place]);
    assert!(left.stderr.contains("there is no run in it"), "{left:?}");
}

#[test]
fn what_is_not_clear_or_is_no_place_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let data = with_services(parent.path());
    let refused = joular_bpf(&["erase", &data, "--service", "x"]);
    assert!(refused.code() != Some(0) && refused.stderr.contains(".joular-bpf-share"), "{refused:?}");
    for (flags, words) in [
        (&[] as &[_], "--service"),
        (&["--service", "x", "--host", "y"], "--host"),
        (&["--again", "--before", "2026-03-01T00:00:00Z"], "--before"),
        (&["--service", "x", "--before", "yesterday"], "--before"),
    ] {
        let refused = joular_bpf(&[&["erase", &data], flags].concat());
        assert!(refused.code() == Some(2) && refused.stderr.contains(words), "{refused:?}");
    }
}
