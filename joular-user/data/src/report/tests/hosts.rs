//! Hosts with the same name are told apart, and labels of hosts choose and group what ran there.

use std::path::Path;

use serde_json::Value;

use crate::{
    dataset::{OutputDirectory, ParquetOutput, fixture},
    events::{Event, HostIdentity},
    model::policy::Policy,
    report::{
        Format,
        profile::{Filter, Labels},
        ranking::{By, Look, Request, Sort, TableOf, command},
    },
};

/// A data set with a run of a host of this identity. All hosts have one name, and record at the same time.
fn record(root: &Path, run_id: &str, identity: &HostIdentity) {
    let output = ParquetOutput::new(OutputDirectory::create(root, None).unwrap(), fixture::FLUSH_NS);
    fixture::play_changed(output, Policy::default(), |event| {
        if let Event::RunStarted(run) = event {
            (run.run_id, run.identity) = (run_id.to_owned(), identity.clone());
        }
    });
}

fn identity(machine: Option<&str>, instance: Option<&str>, labels: &[&str]) -> HostIdentity {
    HostIdentity {
        machine_id: machine.map(Into::into),
        instance_id: instance.map(Into::into),
        labels: labels.iter().copied().map(Into::into).collect(),
    }
}

/// A copied disk has the machine id of its original.
fn namesakes() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    record(root.path(), "run-a", &identity(Some("b08dfa60"), Some("i-1"), &["cluster=eu1", "team=shop"]));
    record(root.path(), "run-b", &identity(Some("b08dfa60"), Some("i-2"), &["cluster=us1", "team=shop"]));
    record(root.path(), "run-c", &identity(None, None, &[]));
    root
}

fn report(root: &Path, by: By, labels: &[&str]) -> Value {
    let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
    let request = Request {
        filter: Filter { labels: Labels::parse(&labels).unwrap(), ..Filter::default() },
        app: None,
        tables: vec![TableOf::of_energy(by)],
        top: 0,
        sort: Sort::Own,
        activations: false,
        footprint: None,
        format: Format::Json,
    };
    let mut out = Vec::new();
    command::run(root, &request, Look::default(), &mut out).unwrap().written.unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// Names and energies of rows, by name.
fn rows(report: &Value) -> Vec<(String, u64)> {
    let rows = report["tables"][0]["rows"].as_array().unwrap().iter();
    let mut rows: Vec<_> =
        rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row["self_uj"].as_u64().unwrap())).collect();
    rows.sort();
    rows
}

#[test]
fn hosts_of_one_name_are_rows_of_their_own_and_record_side_by_side() {
    let root = namesakes();
    let all = report(root.path(), By::Host, &[]);
    let [(first, energy), (second, _), (third, _)] = &rows(&all)[..] else { panic!("{all}") };
    assert!(first.ends_with("(i-1)") && second.ends_with("(i-2)") && third.ends_with("(machine unknown)"), "{all}");
    assert_eq!(rows(&all).iter().map(|(_, energy)| energy).sum::<u64>(), 3 * energy);
    let alone = tempfile::tempdir().unwrap();
    record(alone.path(), "run-a", &HostIdentity::default());
    let alone = report(alone.path(), By::Host, &[]);
    assert_eq!(all["extent"]["duration_ns"], alone["extent"]["duration_ns"], "no time is there twice");
    assert!(!rows(&alone)[0].0.contains('('), "{alone}");
}

#[test]
fn labels_of_hosts_are_rows_and_conditions() {
    let root = namesakes();
    let by = |name: &str| By::named(name).unwrap();
    let names = |by: By, labels: &[&str]| {
        rows(&report(root.path(), by, labels)).into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(by("label:cluster"), &[]), ["[no label cluster]", "eu1", "us1"]);
    assert_eq!(names(by("label:team"), &[]), ["[no label team]", "shop"]);
    assert_eq!(names(by("label:cluster"), &["team=shop", "cluster=eu*"]), ["eu1"]);
    for name in ["label:", "label:a=b", "label"] {
        assert_eq!(By::named(name), None, "{name}");
    }
}
