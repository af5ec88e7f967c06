//! Tests Pyroscope's query API of `serve` from the command line: Grafana's calls on replayed recordings, against what
//! `report --json` says of the same services.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _};

use joular_tests::paths;
use serde_json::{Value, json};

use crate::{html::Set, joular_bpf, serve::Served};

const ENERGY: &str = "joular:energy:microjoules:cpu:nanoseconds";
const CPU: &str = "joular:cpu:nanoseconds:cpu:nanoseconds";

fn set(name: &str) -> Set {
    Set::of(paths::root().join("tests/fixtures/recordings").join(name).to_str().unwrap())
}

fn request(method: &str, kind: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /querier.v1.QuerierService/{method} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n{headers}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn call(served: &Served, method: &str, message: &Value) -> (u16, Value) {
    let body = message.to_string();
    let (status, head, body) = served.ask(request(method, "application/json", "", body.as_bytes()));
    let value = serde_json::from_slice(&body);
    (status, value.unwrap_or_else(|error| panic!("{method}: {error}: {head}\n{}", String::from_utf8_lossy(&body))))
}

pub(crate) fn answer(served: &Served, method: &str, message: &Value) -> Value {
    let (status, value) = call(served, method, message);
    assert_eq!(status, 200, "{method} {message}: {value}");
    value
}

/// What a flame graph has in all. Integers of 64 bits are texts.
fn drawn(served: &Served, kind: &str, selector: &str) -> u64 {
    let message = json!({ "profileTypeID": kind, "labelSelector": selector, "maxNodes": "50" });
    let graph = answer(served, "SelectMergeStacktraces", &message);
    let total = graph["flamegraph"]["total"].as_str().unwrap_or_else(|| panic!("{graph}")).parse().unwrap();
    let first = &graph["flamegraph"]["levels"][0]["values"];
    assert_eq!(first, &json!(["0", graph["flamegraph"]["total"], first[2], "0"]), "the root is the first bar");
    total
}

/// Sums of all points, by the value of a label.
fn over_time(served: &Served, kind: &str, selector: &str, by: &str) -> BTreeMap<String, u64> {
    let message = json!({ "profileTypeID": kind, "labelSelector": selector, "groupBy": [by], "step": 2 });
    let found = answer(served, "SelectSeries", &message);
    let series = found["series"].as_array().unwrap().iter();
    let one = |series: &Value| {
        let points = series["points"].as_array().unwrap();
        assert!(!points.is_empty() && points.iter().all(|point| point["timestamp"].is_string()), "{series}");
        let whole = |point: &Value| format!("{:.0}", point["value"].as_f64().unwrap()).parse::<u64>().unwrap();
        (series["labels"][0]["value"].as_str().unwrap().to_owned(), points.iter().map(whole).sum())
    };
    series.map(one).collect()
}

/// A column of `report --by service`, by service.
fn reported(set: &Set, column: &str) -> BTreeMap<String, u64> {
    let data = set.data();
    let report = joular_bpf(&["report", data.to_str().unwrap(), "--json", "--by", "service", "--top", "0"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let rows = report["tables"][0]["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["service"].as_str().unwrap().to_owned(), row[column].as_u64().unwrap())).collect()
}

#[test]
fn totals_are_those_of_the_report_to_the_microjoule() {
    let set = set("jmh.jrec");
    let served = Served::of(&set, &[]);
    for (kind, column) in [(ENERGY, "self_uj"), (CPU, "self_cpu_ns")] {
        let services = reported(&set, column);
        assert!(services.len() > 2, "{services:?}");
        let whole: u64 = services.values().sum();
        assert_eq!(drawn(&served, kind, ""), whole, "{kind}");
        assert_eq!(over_time(&served, kind, "{}", "service_name"), services, "{kind}");
        for (service, amount) in &services {
            let of_service = format!("{{service_name=\"{service}\"}}");
            assert_eq!(drawn(&served, kind, &of_service), *amount, "{kind} {service}");
            let of_others = format!("{{service_name!=\"{service}\"}}");
            assert_eq!(drawn(&served, kind, &of_others), whole - amount, "{kind} {service}");
        }
        let two = services["java"] + services["benchmarks"];
        assert_eq!(drawn(&served, kind, r#"{service_name=~"ja.a|bench.*"}"#), two, "{kind}");
        assert_eq!(drawn(&served, kind, r#"{service_name!~"ja.a|bench.*"}"#), whole - two, "{kind}");
        assert_eq!(drawn(&served, kind, r#"{service_name=~"ench"}"#), 0, "{kind}");
        let parts = over_time(&served, kind, r#"{jvm_part=~"jit|gc"}"#, "jvm_part");
        assert_eq!(parts.keys().collect::<Vec<_>>(), ["gc", "jit"], "{kind}");
        assert_eq!(drawn(&served, kind, r#"{jvm_part!~"jit|gc"}"#), whole - parts.values().sum::<u64>(), "{kind}");
    }
    let values = answer(&served, "LabelValues", &json!({ "name": "service_name", "matchers": ["{}"] }));
    assert_eq!(values["names"], json!(reported(&set, "self_uj").keys().collect::<Vec<_>>()));
    let labels = json!({ "labelNames": ["service_name", "__profile_type__"], "matchers": [] });
    let sets = answer(&served, "Series", &labels);
    assert_eq!(sets["labelsSet"].as_array().unwrap().len(), 3 * 3, "energy, CPU time and samples of three: {sets}");
    let stats = answer(&served, "GetProfileStats", &json!({}));
    let time = |name: &str| stats[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(stats["dataIngested"] == true && time("oldestProfileTime") < time("newestProfileTime"), "{stats}");
}

#[test]
fn bytes_are_there_if_they_were_recorded() {
    for (recording, kind, column) in [
        ("allocations.jrec", "joular:alloc_space:bytes:cpu:nanoseconds", "self_allocated_bytes"),
        ("io.jrec", "joular:written:bytes:cpu:nanoseconds", "self_written_bytes"),
    ] {
        let set = set(recording);
        let served = Served::of(&set, &[]);
        let types = answer(&served, "ProfileTypes", &json!({}));
        let ids: Vec<&str> =
            types["profileTypes"].as_array().unwrap().iter().map(|one| one["ID"].as_str().unwrap()).collect();
        assert!(ids.contains(&kind) && ids.contains(&ENERGY), "{recording}: {ids:?}");
        assert_eq!(ids.iter().any(|id| id.contains("alloc_space")), recording == "allocations.jrec", "{ids:?}");
        let services = reported(&set, column);
        assert_eq!(drawn(&served, kind, "{}"), services.values().sum::<u64>(), "{recording}");
        assert_eq!(over_time(&served, kind, "{}", "service_name"), services, "{recording}");
    }
}

#[test]
fn messages_of_protocol_buffers_are_answered_in_kind() {
    let set = set("two_jvms.jrec");
    let served = Served::of(&set, &[]);
    let (status, head, body) = served.ask(request("ProfileTypes", "application/proto", "", b""));
    assert!(status == 200 && head.contains("content-type: application/proto"), "{head}");
    // The first type: a message in field 1, whose field 1 is its id.
    let id = [&[0x0a, u8::try_from(ENERGY.len()).unwrap()][..], ENERGY.as_bytes()].concat();
    assert!(body.first() == Some(&0x0a) && body.get(2..).unwrap().starts_with(&id), "{body:?}");
    // Fields 1 and 2: the type, and a selector.
    let selector = br#"{service_name="Hot"}"#;
    let fields = [(0x0a, ENERGY.as_bytes()), (0x12, selector.as_slice())];
    let message = fields.map(|(tag, text)| [&[tag, u8::try_from(text.len()).unwrap()][..], text].concat()).concat();
    let (status, _, body) = served.ask(request("SelectMergeStacktraces", "application/proto", "", &message));
    // Names are in the flame graph: of the root, and of both methods.
    for name in ["\x05total", "\x09Hot.heavy", "\x09Hot.light"] {
        assert!(status == 200 && body.windows(name.len()).any(|part| part == name.as_bytes()), "{name}: {body:?}");
    }
    let (status, head, body) = served.ask(request("SelectMergeProfile", "application/proto", "", &message));
    assert!(status == 200 && head.contains("application/proto") && body.len() > 1000, "{head}");
}

#[test]
fn what_does_not_fit_is_refused_as_clients_of_connect_expect() {
    let set = set("two_jvms.jrec");
    let served = Served::of(&set, &[]);
    for (method, message, status, code) in [
        ("SelectMergeStacktraces", json!({ "profileTypeID": ENERGY, "labelSelector": "{a=" }), 400, "invalid_argument"),
        (
            "SelectMergeStacktraces",
            json!({ "profileTypeID": ENERGY, "labelSelector": "{a=~\"(\"}" }),
            400,
            "invalid_argument",
        ),
        ("SelectSeries", json!({ "profileTypeID": "energy", "step": 15 }), 400, "invalid_argument"),
        ("SelectSeries", json!({ "profileTypeID": ENERGY }), 400, "invalid_argument"),
        ("SelectHeatmap", json!({}), 501, "unimplemented"),
        ("SelectMergeSpanProfile", json!({}), 501, "unimplemented"),
        ("Moon", json!({}), 501, "unimplemented"),
    ] {
        let (found, said) = call(&served, method, &message);
        assert_eq!((found, &said["code"]), (status, &json!(code)), "{method} {message}: {said}");
        assert!(said["message"].as_str().is_some_and(|text| !text.is_empty()), "{said}");
    }
    let (status, head, _) = served.ask(request("ProfileTypes", "application/grpc", "", b""));
    assert_eq!(status, 415, "{head}");
    let (status, _, _) = served.ask(request("ProfileTypes", "application/json", "", &vec![b' '; 70_000]));
    // It may be cut off before it reads why.
    assert!([413, 0].contains(&status), "{status}");
    let (status, head, _) = served.ask(
        "POST /querier.v1.QuerierService/ProfileTypes HTTP/1.1\r\nHost: localhost\r\n\
         Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    );
    assert_eq!(status, 408, "a body that does not come is waited for five seconds: {head}");
    let get = served.get("/querier.v1.QuerierService/ProfileTypes");
    assert!(get.0 == 405 && get.1.contains("allow: POST"), "{}", get.1);
    let (status, _, body) = served.get(&format!("/pyroscope/render?query={ENERGY}%7B%7D"));
    let shown: Value = serde_json::from_slice(&body).unwrap();
    assert!(status == 200 && shown["flamebearer"]["names"][0] == "total", "{shown}");
    assert_eq!(served.get("/pyroscope/render-diff").0, 400);
}

#[test]
fn a_token_is_needed_and_equal_questions_are_one_reading() {
    let set = set("two_jvms.jrec");
    let token = set.data().with_file_name("token");
    fs::write(&token, "secret\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let served = Served::of(&set, &["--token-file", token.to_str().unwrap()]);
    let body = format!("{{\"profileTypeID\":\"{ENERGY}\",\"step\":1}}");
    let ask = |header: &str| served.ask(request("SelectSeries", "application/json", header, body.as_bytes()));
    for header in ["", "Authorization: Bearer wrong\r\n"] {
        assert_eq!(ask(header).0, 401, "{header}");
    }
    let shown = "Authorization: Bearer secret\r\n";
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..10).map(|_| scope.spawn(|| ask(shown))).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|(status, _, body)| *status == 200 && *body == answers[0].2), "{answers:?}");
    // As the password of anybody, which is what a data source of Grafana can have.
    assert_eq!(ask("Authorization: Basic bWU6c2VjcmV0\r\n").0, 200);
    let (_, _, metrics) = served.ask(format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{shown}\r\n"));
    let metrics = String::from_utf8(metrics).unwrap();
    let line = "joular_serve_requests_total{path=\"/querier.v1.QuerierService/SelectSeries\",status=\"200\"} 11";
    assert!(metrics.contains(line) && metrics.contains("joular_serve_scans_total 1\n"), "{metrics}");
}
