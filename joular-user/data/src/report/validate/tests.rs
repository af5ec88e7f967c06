//! Tests a comparison of a data set on disk with a log on disk, as the command makes it.

use std::{fmt::Write as _, fs, time::Duration};

use super::*;
use crate::{
    dataset::{OutputDirectory, ParquetOutput},
    fixture::{self, SECOND, SMALL},
};

const WINDOWS: u64 = 60;

/// A data set of a minute, and the log of a meter that reads `10 W + 1.5 ×` its power, once per window.
fn files() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    let mut output = ParquetOutput::new(OutputDirectory::create(&data, None).unwrap(), 7 * SECOND);
    fixture::play(&mut output, SMALL, WINDOWS).unwrap();
    let runs = recorded::allowed(&data, &Filter::default()).unwrap();
    let recorded = Recorded::read(&runs, &Filter::default(), &[]).unwrap();
    let mut log = "time;power\n".to_owned();
    for span in recorded.spans(0) {
        let middle_ms = (span.start_us + span.end_us) / 2_000;
        let _ = writeln!(log, "{middle_ms};{}", (10.0 + 1.5 * span.watts()).to_string().replace('.', ","));
    }
    fs::write(root.path().join("meter.csv"), log).unwrap();
    root
}

fn request(domains: &[&str]) -> Request {
    Request {
        filter: Filter::default(),
        domains: domains.iter().map(ToString::to_string).collect(),
        most_shift: Duration::ZERO,
        utc_offset_s: 0,
        meter_class: None,
        fits_board: false,
        is_json: false,
    }
}

#[test]
fn a_data_set_is_compared_with_a_log() {
    let root = files();
    let found = run(&root.path().join("data"), &root.path().join("meter.csv"), &request(&[])).unwrap();
    assert_eq!((found.windows, found.host.raw(), found.runs), (WINDOWS, "node-1", 1));
    assert_eq!(found.domains, [("cpu".to_owned(), "model".to_owned())]);
    // Spans of two windows, of which the first and the last have no neighbour.
    assert_eq!((found.spans, found.windows_used, found.span_us), (28, 56, 2_000_000));
    assert!((found.fit.gain.value - 1.5).abs() < 0.2, "{:?}", found.fit);
    assert!(found.warnings().iter().any(|warning| warning.contains("modelled")), "{:?}", found.warnings());
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let root = files();
    let data = root.path().join("data");
    let refused_by =
        |log: &str, domains: &[&str]| run(&data, &root.path().join(log), &request(domains)).unwrap_err().to_string();
    let refused = |domains: &[&str]| refused_by("meter.csv", domains);
    assert!(refused(&["dram"]).contains("energy of these domains: there are cpu"));
    assert!(refused_by("absent.csv", &[]).starts_with("opening the meter's log"));
    fs::write(root.path().join("meter.csv"), "time,watts\n1772409570,1\n1772409571,x\n").unwrap();
    assert!(refused(&[]).contains("line 3: 'x' is not a power"));
    fs::write(root.path().join("meter.csv"), "time,watts\n1772409570,1\n1772409571,2\n").unwrap();
    let few = refused(&[]);
    assert!(few.contains("only 0 spans") && few.contains("2026-03-01T23:59:30Z to 2026-03-02T00:00:30Z"), "{few}");
}
