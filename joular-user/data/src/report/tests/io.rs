//! Energy that goes by bytes is in every view, to the microjoule, and no part of the error of sampling.

use std::path::Path;

use serde_json::Value;

use crate::{
    dataset::fixture_io::write_with_devices,
    model::{policy::Policy, units::MicroJoules},
    redact::Redaction,
    report::{
        Format,
        profile::{Filter, Profile},
        ranking::{By, Look, Request, Sort, TableOf, command},
    },
    rollup,
};

fn data_set() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write_with_devices(root.path(), Policy::default());
    root
}

fn written(root: &Path, format: Format) -> String {
    let request = Request {
        filter: Filter::default(),
        app: None,
        tables: [By::Method, By::Thread].map(TableOf::of_energy).to_vec(),
        top: 3,
        sort: Sort::Own,
        activations: false,
        footprint: None,
        format,
    };
    let mut out = Vec::new();
    command::run(root, &request, Look::default(), &mut out).unwrap().written.unwrap();
    String::from_utf8(out).unwrap()
}

/// Of the targets, of both domains, as windows have it.
fn attributed(root: &Path) -> u64 {
    let profile = Profile::read(root, &Filter::default(), None).unwrap();
    let all: u64 = profile.entries.iter().map(|entry| entry.by_bytes.0).sum();
    assert_eq!(profile.entries.iter().map(|entry| entry.energy).sum::<MicroJoules>(), profile.overview.attributed);
    all
}

#[test]
fn rows_of_tables_and_what_was_cut_sum_to_all_energy_of_network_and_disk() {
    let root = data_set();
    let all = attributed(root.path());
    assert!(all > 0);
    let json: Value = serde_json::from_str(&written(root.path(), Format::Json)).unwrap();
    for table in json["tables"].as_array().unwrap() {
        let rows = table["rows"].as_array().unwrap().iter().chain([&table["others"]]);
        let own: u64 = rows.map(|row| row["self_by_bytes_uj"].as_u64().unwrap()).sum();
        assert_eq!(own, all, "{}", table["by"]);
    }
    let csv = written(root.path(), Format::Csv);
    assert!(csv.lines().next().unwrap().contains(",self_by_bytes_uj,total_by_bytes_uj,self_sent_bytes,"), "{csv}");
    let text = written(root.path(), Format::Text);
    assert!(text.contains("SELF BYTES J") && text.contains("TOTAL BYTES J"), "{text}");
}

#[test]
fn windows_of_a_minute_have_the_same() {
    let (recorded, rolled_up) = (data_set(), tempfile::tempdir().unwrap());
    rollup::run(recorded.path(), rolled_up.path(), 10_000_000_000, None, &Redaction::default()).unwrap();
    assert_eq!(attributed(rolled_up.path()), attributed(recorded.path()));
    let audits = crate::dataset::audit::run(rolled_up.path()).unwrap();
    assert!(crate::dataset::audit::is_well(&audits), "{:?}", audits[0].told);
}

/// The fixture without the devices has the same samples, which stand for the same energy.
#[test]
fn samples_stand_for_what_they_stand_for_without_it() {
    let (with, without) = (data_set(), tempfile::tempdir().unwrap());
    crate::dataset::fixture::write(without.path(), Policy::default());
    let sampled = |root: &Path| {
        let profile = Profile::read(root, &Filter::default(), None).unwrap();
        let entries = profile.entries.iter().map(|entry| (entry.thread, entry.sampled()));
        entries
            .filter(|(_, sampled)| sampled.samples > 0)
            .map(|(thread, sampled)| (thread, sampled.energy, sampled.samples))
            .collect::<Vec<_>>()
    };
    assert_eq!(sampled(with.path()), sampled(without.path()));
}
