//! Tests from what questions to a fleet's place are answered: by themselves they take sums that have the same answer as the
//! runs, and say so; in a share and in a bucket, from the command line and from servers.

use std::path::Path;

use jiff::Timestamp;
use joular_tests::{dataset::share, s3::S3};
use serde_json::{Value, json};

use crate::{
    expect_usage_error, joular_bpf,
    mcp::{Transcript, call},
    serve::Served,
    shipping::{done, with},
    tiers::{HOUR, around, with_services},
};

/// Tables that sums have.
const TABLES: &str = "service,method,class,package,branch,category,kind,namespace,line";

/// A place with sums of all that was shipped to it, and the two hours before and after it.
struct Fleet {
    place: String,
    environment: Vec<(&'static str, String)>,
    first: Timestamp,
}

impl Fleet {
    fn of(data: &str, place: &str, environment: &[(&'static str, String)]) -> Self {
        let environment = environment.to_vec();
        done(&with(&environment, &["ship", data, place, "--json"]));
        let [since, until] = around(&environment, place);
        done(&with(&environment, &["compact", place, "--since", &since, "--until", &until, "--json"]));
        Self { place: place.to_owned(), environment, first: since.parse::<Timestamp>().unwrap() + HOUR }
    }

    fn in_share(parent: &Path) -> Self {
        let directory = parent.join("share");
        share(&directory).unwrap();
        Self::of(&with_services(parent), directory.to_str().unwrap(), &[])
    }

    /// A time of so many hours that begins an hour before the first run does.
    fn hours(&self, hours: u32) -> [String; 2] {
        let begin = self.first - HOUR;
        [begin, begin + HOUR * hours].map(|time| time.to_string())
    }

    fn report(&self, hours: u32, flags: &[&str]) -> Value {
        let [since, until] = self.hours(hours);
        let all =
            [&["report", &self.place, "--json", "--top", "0", "--since", &since, "--until", &until], flags].concat();
        done(&with(&self.environment, &all))
    }
}

/// Energy, CPU time and samples of all rows, in order; what else a report says is of sums.
fn rows(report: &Value) -> Vec<Vec<Value>> {
    let tables = report["tables"].as_array().unwrap();
    let keys = [
        "name",
        "self_uj",
        "total_uj",
        "self_cpu_ns",
        "total_cpu_ns",
        "self_samples",
        "total_samples",
        "self_inferred_uj",
    ];
    let of_table = |table: &Value| {
        let rows = table["rows"].as_array().unwrap().iter();
        let mut rows: Vec<Value> = rows.map(|row| keys.iter().map(|key| row[*key].clone()).collect()).collect();
        rows.sort_by_key(Value::to_string);
        rows
    };
    tables.iter().map(of_table).collect()
}

/// Checks that a report of this time is read from a tier, and is the report of the runs.
fn expect(fleet: &Fleet, hours: u32, tier: &str, resolution: &Value, flags: &[&str]) {
    let found = fleet.report(hours, &[&["--by", TABLES], flags].concat());
    let runs = fleet.report(hours, &[&["--by", TABLES, "--tier", "raw"], flags].concat());
    assert_eq!((&found["tier"], &found["resolution"]), (&json!(tier), resolution), "{hours} {flags:?}");
    assert_eq!((&runs["tier"], &runs["resolution"]), (&json!("raw"), &Value::Null));
    assert!(found["selection"]["energy_uj"].as_u64() > Some(0), "{}", found["selection"]);
    assert_eq!(found["selection"], runs["selection"], "{hours} {flags:?}");
    assert_eq!(rows(&found), rows(&runs), "{hours} {flags:?}");
    if flags.is_empty() {
        assert_eq!(found["audit"], runs["audit"]);
    }
}

#[test]
fn reports_are_those_of_the_runs_whatever_they_are_read_from() {
    let parent = tempfile::tempdir().unwrap();
    let data = with_services(parent.path());
    let directory = parent.path().join("share");
    share(&directory).unwrap();
    let server = S3::with_bucket("fleet").unwrap();
    for (place, environment) in [(directory.to_str().unwrap(), vec![]), ("s3://fleet/energy", server.environment())] {
        let fleet = Fleet::of(&data, place, &environment);
        let service = fleet.report(49, &["--by", "service"])["tables"][0]["rows"][0]["name"].clone();
        let of_service = ["--service", service.as_str().unwrap()];
        for flags in [&[] as &[&str], &of_service, &["--category", "java"]] {
            expect(&fleet, 2, "raw", &Value::Null, flags);
            expect(&fleet, 5, "minutes", &json!("5m"), flags);
            expect(&fleet, 49, "hourly", &json!("1h"), flags);
        }
    }
}

#[test]
fn what_sums_lack_is_read_from_the_runs_and_that_is_said() {
    let parent = tempfile::tempdir().unwrap();
    let fleet = Fleet::in_share(parent.path());
    for (flags, word) in [
        (&["--by", "host"] as &[&str], "hosts"),
        (&["--by", "thread"], "threads"),
        (&["--by", "service,pod"], "pods"),
        (&["--by", "label:cluster"], "labels"),
        (&["--by", "method", "--activations"], "calls"),
        (&["--host", "*"], "hosts"),
        (&["--process", "*"], "processes"),
        (&["--run", "last"], "runs"),
        (&["--thread", "*"], "threads"),
    ] {
        let found = fleet.report(49, flags);
        let reason = found["tier_reason"].as_str().unwrap_or_else(|| panic!("{flags:?}: {found}"));
        assert!(found["tier"] == "raw" && reason.contains(word), "{flags:?}: {reason}");
    }
    let [since, until] = fleet.hours(49);
    let text = |flags: &[&str]| {
        let all = [&["report", &fleet.place, "--since", &since, "--until", &until], flags].concat();
        let finished = joular_bpf(&all);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        finished.stdout
    };
    assert!(text(&[]).contains("read from hourly sums; --tier raw reads the runs"));
    assert!(!text(&["--tier", "raw"]).contains("read from"));
}

#[test]
fn runs_that_came_later_are_joined_with_sums_and_counted_once() {
    let parent = tempfile::tempdir().unwrap();
    let fleet = Fleet::in_share(parent.path());
    let before = fleet.report(49, &[]);
    // An hour that is not summed any more is as one that is not summed yet.
    let [since, _] = around(&[], &fleet.place);
    let begun = since.parse::<Timestamp>().unwrap() + HOUR;
    let folder = begun.strftime("done/date=%Y-%m-%d/hour=%H").to_string();
    std::fs::remove_dir_all(Path::new(&fleet.place).join("minutes").join(folder)).unwrap();
    std::fs::remove_dir_all(Path::new(&fleet.place).join("hourly/done")).unwrap();
    let after = fleet.report(49, &[]);
    assert_eq!(after["selection"], before["selection"]);
    assert_eq!(rows(&after), rows(&before));
    // The next hour, in which a run may have gone on, is summed.
    assert_eq!((&after["tier"], &after["is_joined"]), (&json!("minutes"), &json!(true)));
    assert_eq!((&before["tier"], &before["is_joined"]), (&json!("hourly"), &json!(false)));
}

#[test]
fn pictures_say_what_they_were_read_from() {
    let parent = tempfile::tempdir().unwrap();
    let fleet = Fleet::in_share(parent.path());
    let [since, until] = fleet.hours(49);
    let drawn = |flags: &[&str]| {
        let all =
            [&["flamegraph", &fleet.place, "--output", "-", "--since", &since, "--until", &until], flags].concat();
        let finished = joular_bpf(&all);
        assert_eq!(finished.code(), Some(0), "{finished:?}");
        finished.stdout
    };
    assert!(drawn(&[]).contains("read from hourly sums"));
    assert!(drawn(&["--tier", "minutes"]).contains("read from minutes sums"));
    for flags in [&["--tier", "raw"] as &[&str], &["--by-thread"]] {
        assert!(!drawn(flags).contains("read from"), "{flags:?}");
    }
}

#[test]
fn a_data_set_of_one_host_has_no_tiers() {
    let parent = tempfile::tempdir().unwrap();
    let data = with_services(parent.path());
    let found = done(&joular_bpf(&["report", &data, "--json"]));
    assert!(found.get("tier").is_none() && found.get("resolution").is_none(), "{found}");
    let refused = joular_bpf(&["report", &data, "--tier", "hourly"]);
    assert!(refused.code() == Some(1) && refused.stderr.contains("leave --tier out"), "{refused:?}");
    expect_usage_error(&["report", &data, "--tier", "daily"], &["--tier", "hourly"]);
    expect_usage_error(&["report", &data, "--watts", "--tier", "raw"], &["--tier", "--watts"]);
}

#[test]
fn servers_answer_from_sums_what_they_answer_from_runs() {
    let parent = tempfile::tempdir().unwrap();
    let data = with_services(parent.path());
    let directory = parent.path().join("share");
    share(&directory).unwrap();
    let server = S3::with_bucket("fleet").unwrap();
    for (place, environment) in [(directory.to_str().unwrap(), vec![]), ("s3://fleet/energy", server.environment())] {
        let fleet = Fleet::of(&data, place, &environment);
        let served = Served::place(place, &environment, &[]);
        let [since, until] = fleet.hours(49);
        let asked = |path: &str, tier: &str| {
            let and = if path.contains('?') { '&' } else { '?' };
            served.json(&format!("{path}{and}from={since}&until={until}{tier}"))
        };
        for path in ["/api/v1/top?by=service,method&top=0", "/api/v1/flame", "/api/v1/labels/service/values"] {
            let [found, runs] = [asked(path, ""), asked(path, "&tier=raw")];
            assert_eq!((&found["tier"], &found["resolution"]), (&json!("hourly"), &json!("1h")), "{place} {path}");
            assert_eq!(runs["tier"], "raw", "{place} {path}");
            match path {
                "/api/v1/flame" => assert_eq!(found["nodes"], runs["nodes"], "{place}"),
                "/api/v1/labels/service/values" => assert_eq!(found["values"], runs["values"], "{place}"),
                _ => assert_eq!(rows(&found), rows(&runs), "{place}"),
            }
        }
        let energies = |answer: &Value| {
            answer["series"].as_array().unwrap().iter().map(|one| one["energy_uj"].clone()).collect::<Vec<_>>()
        };
        let [found, runs] = [asked("/api/v1/series?by=service", ""), asked("/api/v1/series?by=service", "&tier=raw")];
        assert_eq!((&found["tier"], energies(&found)), (&json!("hourly"), energies(&runs)), "{place}");
        for path in ["/api/v1/top?by=host", "/api/v1/series?by=pod", "/api/v1/labels/process/values"] {
            assert_eq!(asked(path, "")["tier"], "raw", "{place} {path}");
        }
        for page in ["/", "/part"] {
            let page = String::from_utf8(served.get(&format!("{page}?from={since}&until={until}")).2).unwrap();
            assert!(page.contains("read from hourly sums") && page.contains("read the runs"), "{place}: {page}");
        }
        let (status, _, body) = served.get("/api/v1/top?tier=daily");
        let body = String::from_utf8(body).unwrap();
        assert!(status == 400 && body.contains("hourly"), "{status} {body}");
        assert_eq!(served.get("/api/v1/diff?tier=hourly").0, 400, "comparisons are of runs");
    }
}

#[test]
fn grafana_gets_from_sums_what_it_gets_from_runs() {
    let parent = tempfile::tempdir().unwrap();
    let fleet = Fleet::in_share(parent.path());
    let served = Served::place(&fleet.place, &[], &[]);
    let [since, until] = fleet.hours(49).map(|time| time.parse::<Timestamp>().unwrap());
    let hour = |time: Timestamp| time.as_second() / 3600 * 3_600_000;
    let call = |method: &str, message: &Value| {
        let body = message.to_string();
        let head = format!(
            "POST /querier.v1.QuerierService/{method} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let (status, _, answer) = served.ask([head.as_bytes(), body.as_bytes()].concat());
        assert_eq!(status, 200, "{method}: {}", String::from_utf8_lossy(&answer));
        serde_json::from_slice::<Value>(&answer).unwrap()
    };
    let energy = "joular:energy:microjoules:cpu:nanoseconds";
    // What asks about hosts is read from the runs, and any host will do.
    let asked = |selector: &str, step: u32| {
        let (start, end) = (hour(since).to_string(), hour(until).to_string());
        let graph = json!({ "profileTypeID": energy, "labelSelector": selector, "start": start, "end": end });
        let mut series = graph.clone();
        series["groupBy"] = json!(["service_name"]);
        series["step"] = json!(step);
        [call("SelectMergeStacktraces", &graph), call("SelectSeries", &series)]
    };
    let report = fleet.report(49, &["--by", "service"]);
    let whole = report["selection"]["energy_uj"].to_string();
    for (sums, runs) in
        [("{}", r#"{host=~".+"}"#), (r#"{service_name!="java"}"#, r#"{service_name!="java", host=~".+"}"#)]
    {
        assert_eq!(asked(sums, 3600), asked(runs, 3600), "{sums}");
        assert_eq!(asked(sums, 60), asked(runs, 60), "{sums}: steps that are too short for hours");
    }
    assert_eq!(asked("{}", 3600)[0]["flamegraph"]["total"], json!(whole));
}

#[test]
fn calls_of_tools_are_answered_from_sums_unless_they_are_about_processes() {
    let parent = tempfile::tempdir().unwrap();
    let fleet = Fleet::in_share(parent.path());
    let [since, until] = fleet.hours(49);
    let asked = |more: Value| {
        let mut arguments = json!({ "from": since, "until": until });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let transcript = Transcript::begun(
        Path::new(&fleet.place),
        vec![
            call(1, "top", &asked(json!({ "by": "service" }))),
            call(2, "top", &asked(json!({ "by": "service", "tier": "raw" }))),
            call(3, "flame", &asked(json!({ "lines": 5 }))),
            call(4, "flame", &asked(json!({ "lines": 5, "tier": "raw" }))),
            call(5, "services", &asked(json!({}))),
        ],
    );
    for (sums, runs) in [(1, 2), (3, 4)] {
        let [sums, runs] = [sums, runs].map(|id| transcript.found(id));
        assert_eq!(
            (&sums["tier"], &sums["resolution"], &runs["tier"]),
            (&json!("hourly"), &json!("1h"), &json!("raw"))
        );
        assert_eq!(sums["selection"], runs["selection"]);
    }
    assert_eq!(transcript.found(5)["tier"], "raw", "it has a table of processes");
}
