//! What was moved through sockets and files is in every view, to the byte.

use std::path::Path;

use joular_ebpf::abi::IoKind;
use serde_json::Value;

use super::inference::{did, write};
use crate::{
    dataset::{DataSetError, fixture, fixture_io::moved_in_all},
    model::policy::Policy,
    report::{
        Format,
        footprint::FootprintError,
        measure::{Measure, Way},
        profile::{Filter, Names, Profile},
        ranking::{By, Look, Request, Sort, TableOf, command},
    },
};

const NAMES: [&str; 8] = [
    "sent_bytes",
    "received_bytes",
    "local_sent_bytes",
    "local_received_bytes",
    "read_bytes",
    "written_bytes",
    "device_read_bytes",
    "device_written_bytes",
];

fn data_set() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    root
}

fn written(root: &Path, by: &[By], sort: Sort, top: usize, format: Format) -> String {
    tried(root, by, sort, top, format).unwrap()
}

fn tried(root: &Path, by: &[By], sort: Sort, top: usize, format: Format) -> Result<String, FootprintError> {
    let request = Request {
        filter: Filter::default(),
        app: None,
        tables: by.iter().copied().map(TableOf::of_energy).collect(),
        top,
        sort,
        activations: false,
        footprint: None,
        format,
    };
    let mut out = Vec::new();
    command::run(root, &request, Look::default(), &mut out)?.written.unwrap();
    Ok(String::from_utf8(out).unwrap())
}

/// What targets' threads moved, by kind.
fn expected() -> [u64; 8] {
    let mut all = [0; 8];
    for ((claimant, _), bytes) in moved_in_all() {
        if claimant == "thread" {
            all.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes);
        }
    }
    all
}

#[test]
fn every_table_sums_to_what_threads_moved() {
    let root = data_set();
    let all = expected();
    for top in [0, 2] {
        let json: Value = serde_json::from_str(&written(root.path(), &By::ALL, Sort::Own, top, Format::Json)).unwrap();
        assert!(NAMES.iter().zip(all).all(|(name, bytes)| json["moved"][name] == bytes), "{}", json["moved"]);
        for table in json["tables"].as_array().unwrap() {
            let rows: Vec<&Value> = table["rows"]
                .as_array()
                .unwrap()
                .iter()
                .chain([&table["others"]])
                .filter(|row| row.is_object())
                .collect();
            for (name, bytes) in NAMES.iter().zip(all) {
                let own: u64 = rows.iter().map(|row| row[format!("self_{name}")].as_u64().unwrap()).sum();
                assert_eq!(own, bytes, "{name} of {}", table["by"]);
                let is_whole = |row: &&Value| {
                    let of = |which: &str| row[format!("{which}_{name}")].as_u64();
                    of("total") >= of("self") && of("total") <= Some(bytes)
                };
                assert!(rows.iter().all(is_whole), "{name} of {}", table["by"]);
            }
        }
    }
}

#[test]
fn threads_have_the_bytes_that_they_moved() {
    let root = data_set();
    let json: Value = serde_json::from_str(&written(root.path(), &[By::Thread], Sort::Own, 0, Format::Json)).unwrap();
    for ((_, tid), bytes) in moved_in_all().into_iter().filter(|((claimant, _), _)| *claimant == "thread") {
        let row = json["tables"][0]["rows"].as_array().unwrap().iter().find(|row| row["tid"] == tid).unwrap();
        assert!(NAMES.iter().zip(bytes).all(|(name, bytes)| row[format!("self_{name}")] == bytes), "{row}");
    }
}

#[test]
fn rows_are_ranked_by_the_bytes_that_are_asked_for() {
    let root = data_set();
    for (sort, name) in [
        (Sort::By(Measure::Moved(Way::Read)), "total_read_bytes"),
        (Sort::By(Measure::Moved(Way::DeviceWritten)), "total_device_written_bytes"),
        (Sort::By(Measure::Allocated), "total_allocated_bytes"),
    ] {
        let json: Value =
            serde_json::from_str(&written(root.path(), &[By::Method, By::Thread], sort, 0, Format::Json)).unwrap();
        for table in json["tables"].as_array().unwrap() {
            assert_eq!(table["sort"], sort.name());
            let bytes: Vec<u64> =
                table["rows"].as_array().unwrap().iter().map(|row| row[name].as_u64().unwrap()).collect();
            assert!(bytes[0] > 0 && bytes.is_sorted_by(|a, b| a >= b), "{name}: {bytes:?}");
        }
    }
}

#[test]
fn without_bytes_nothing_is_ranked_by_them_and_nobody_speaks_of_them() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 4, &[vec![did(100, "main", 300_000, &[(1, 1), (2, 2)])]]);
    let error = tried(root.path(), &[By::Method], Sort::By(Measure::Moved(Way::Sent)), 0, Format::Text).unwrap_err();
    assert!(matches!(error, FootprintError::Data(DataSetError::NothingMeasured { .. })), "{error}");
    let json: Value = serde_json::from_str(&written(root.path(), &[By::Method], Sort::Own, 0, Format::Json)).unwrap();
    assert!(json["moved"].is_null() && json["tables"][0]["rows"][0].get("self_sent_bytes").is_none(), "{json}");
    assert!(!written(root.path(), &[By::Method], Sort::Own, 0, Format::Text).contains("moved "));
}

#[test]
fn people_and_spreadsheets_have_a_column_for_each_way() {
    let root = data_set();
    let text = written(root.path(), &[By::Thread, By::Method], Sort::Own, 3, Format::Text);
    for part in ["moved ", " MB sent on this host, ", " MB read from devices, ", "DEVICE WRITTEN MB", "TOTAL SENT MB"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let csv = written(root.path(), &[By::Method], Sort::Own, 3, Format::Csv);
    let heading = csv.lines().next().unwrap();
    assert!(heading.contains(",self_device_written_bytes,total_device_written_bytes,"), "{csv}");
    assert!(heading.ends_with(",total_device_written_low_bytes,total_device_written_high_bytes"), "{csv}");
    let columns = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.contains('"') || line.split(',').count() == columns), "{csv}");
}

#[test]
fn a_selection_has_what_its_threads_and_paths_moved() {
    let root = data_set();
    let read = |filter: &Filter| Profile::read(root.path(), filter, None).unwrap();
    let names = |texts: &[String]| Names::parse(texts).unwrap();
    let whole = read(&Filter::default());
    let moved = |profile: &Profile| Way::APART.map(|way| profile.measured.facts(Measure::Moved(way)).to_vec()).concat();
    let bytes = IoKind::ALL.map(|kind| whole.measured.amount(Measure::Moved(Way::of_kind(kind))));
    assert_eq!(bytes, expected());
    let all = moved(&whole);
    assert!(all.iter().any(|fact| fact.sampled.samples == 0), "every third thread is not seen");
    let thread = whole.catalog.thread(all[0].thread);
    let filter = Filter { threads: names(&[thread.name.raw().to_owned()]), ..Filter::default() };
    let one = read(&filter);
    let selected = moved(&one);
    assert!(!selected.is_empty() && selected.len() < all.len());
    assert!(selected.iter().all(|fact| one.catalog.thread(fact.thread).name == thread.name));
    let nothing = read(&Filter { methods: names(&["no.such.method".to_owned()]), ..Filter::default() });
    assert!(moved(&nothing).is_empty() && Way::ALL.iter().all(|way| !nothing.has(Measure::Moved(*way))));
}
