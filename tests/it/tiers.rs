//! Tests `compact` of a place that hosts ship to: services have in the tiers what all hosts shipped, in a share and in a
//! bucket, and every command reads them.

use std::{path::Path, time::Duration};

use jiff::Timestamp;
use joular_tests::{dataset::share, paths, s3::S3};
use serde_json::Value;

use crate::{
    joular_bpf,
    shipping::{done, with},
};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);

/// A table of a report, by service: energy, CPU time and samples.
pub(crate) fn services(environment: &[(&str, String)], place: &str) -> Vec<(String, u64, u64, u64)> {
    let report = ["report", place, "--by", "service", "--top", "0", "--tier", "raw", "--json"];
    let report = done(&with(environment, &report));
    let rows = report["tables"][0]["rows"].as_array().unwrap();
    let figure = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let one = |row: &Value| {
        let name = row["name"].as_str().unwrap().to_owned();
        (name, figure(row, "self_uj"), figure(row, "self_cpu_ns"), figure(row, "self_samples"))
    };
    let mut services: Vec<_> = rows.iter().map(one).collect();
    services.sort();
    services
}

/// From an hour before the first run until three hours later.
pub fn around(environment: &[(&str, String)], place: &str) -> [String; 2] {
    let runs = done(&with(environment, &["runs", place, "--json"]));
    let started = |run: &Value| run["started"].as_str().unwrap().parse::<Timestamp>().unwrap();
    let first = runs.as_array().unwrap().iter().map(started).min().unwrap();
    [first - HOUR, first + 3 * HOUR].map(|time| time.to_string())
}

/// A data set of two runs that have ended, of processes that have services.
pub fn with_services(parent: &Path) -> String {
    let recording = paths::root().join("tests/fixtures/recordings/jmh.jrec");
    let path = parent.join("recorded").to_str().unwrap().to_owned();
    let (recording, path) = (recording.to_str().unwrap(), path);
    let arguments = ["--replay", recording, "--quiet", "--flush", "1s", "--rotate", "10s", "--output", &path];
    let finished = joular_bpf(&arguments);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    path
}

#[test]
fn services_have_in_the_tiers_what_hosts_shipped() {
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
        let first = compact();
        assert!(first["minutes"]["runs"].as_u64() > Some(0), "{place}: {first}");
        assert_eq!(first["minutes"]["left_out"], serde_json::json!([]), "{place}");
        assert_eq!(compact()["minutes"]["units"], 0, "{place}: nothing is new");
        let shipped = services(&environment, place);
        assert!(shipped.iter().any(|service| service.1 > 0), "{place}: {shipped:?}");
        for tier in ["minutes", "hourly"] {
            let tier = format!("{place}/{tier}");
            assert_eq!(services(&environment, &tier), shipped, "{tier}");
            let audit = with(&environment, &["audit", &tier]);
            assert_eq!(audit.code(), Some(0), "{tier}: {audit:?}");
            let (service, energy, ..) = shipped.iter().max_by_key(|service| service.1).unwrap();
            let of_one = ["report", &tier, "--service", service, "--since", &since, "--by", "service", "--json"];
            let read = &done(&with(&environment, &of_one))["tables"][0]["rows"];
            assert_eq!(
                (read.as_array().unwrap().len(), read[0]["self_uj"].as_u64()),
                (1, Some(*energy)),
                "{tier}: {read}"
            );
            for arguments in [
                &["flamegraph", &tier, "--output", "-"] as &[_],
                &["export", &tier, "--format", "pprof", "--output", "-"],
            ] {
                let finished = with(&environment, arguments);
                assert_eq!(finished.code(), Some(0), "{finished:?}");
            }
        }
    }
}

#[test]
fn what_is_for_one_host_is_refused_for_a_place() {
    let parent = tempfile::tempdir().unwrap();
    let place = parent.path().join("share");
    share(&place).unwrap();
    let place = place.to_str().unwrap();
    for (flags, words) in
        [(&["--redact"] as &[_], "--redact"), (&["--output", "x"], "--output"), (&["--until", "now"], "--until")]
    {
        let refused = with(&[], &[&["compact", place], flags].concat());
        assert!(refused.code() == Some(2) && refused.stderr.contains(words), "{refused:?}");
    }
    assert_eq!(done(&with(&[], &["compact", place, "--json"]))["minutes"]["units"], 0, "nothing was shipped");
}
