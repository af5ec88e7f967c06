use joular_data::model::units::MicroJoules;

use super::*;

#[track_caller]
fn check(format: FileFormat, text: &str, expected: Option<u64>) {
    let expected = expected.map(if format == FileFormat::MicroJoules { Reading::CounterUj } else { Reading::PowerUw });
    assert_eq!(parse_report(text, format).ok().map(|report| report.reading()), expected, "{text:?}");
}

#[test]
fn microjoules_are_one_whole_number() {
    for (text, expected) in [
        ("12500000\n", Some(12_500_000)),
        ("1772409571000000 12\n12500000\n", Some(12_500_000)),
        ("0", Some(0)),
        ("18446744073709551615\n", Some(u64::MAX)),
        ("18446744073709551616\n", None),
        ("12.5\n", None),
        ("-1\n", None),
        ("", None),
    ] {
        check(FileFormat::MicroJoules, text, expected);
    }
    let (_directory, path) = written(b"7\n");
    let mut source = SharedFile::open(&path, FileFormat::MicroJoules).unwrap();
    assert_eq!(source.read(), [Reading::CounterUj(7)]);
    assert!(matches!(source.domains()[0].meter, Meter::Counter { range_uj: 0, unit_uj: 1, .. }));
}

#[test]
fn watts_is_one_number() {
    for (text, expected) in [
        ("12.5\n", Some(12_500_000)),
        ("12.5", Some(12_500_000)),
        ("  7 \r\n\n", Some(7_000_000)),
        ("12,5\n", Some(12_500_000)),
        ("1\n2\n", Some(2_000_000)),
        ("", None),
        ("\n\n", None),
        ("NaN\n", None),
        ("-1\n", None),
        ("1e9\n", None),
        ("1 2\n", None),
    ] {
        check(FileFormat::Watts, text, expected);
    }
}

#[test]
fn powerjoular_has_watts_in_the_third_field() {
    for (text, expected) in [
        ("2026-01-01 10:00:00,0.25,31.5\n", Some(31_500_000)),
        ("2026-01-01 10:00:00,0.25,31.5,20.1,11.4\n", Some(31_500_000)),
        ("2026-01-01 10:00:00; 0,25; 31,5\n", Some(31_500_000)),
        ("Date,CPU Utilization,Total Power\nnow,0.1,5\n", Some(5_000_000)),
        ("Date,CPU Utilization,Total Power\n", None),
        ("a,0.1,5\nb,0.1,6\n", Some(6_000_000)),
        ("a,0.1,5\nb,0.1,6", Some(5_000_000)),
        ("b,0.1,6", Some(6_000_000)),
        ("5\n", None),
        ("a,0.1,inf\n", None),
    ] {
        check(FileFormat::PowerJoular, text, expected);
    }
}

fn written(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("power");
    std::fs::write(&path, text).unwrap();
    (directory, path)
}

#[test]
fn only_the_end_of_a_long_file_is_read() {
    let (_directory, path) = written("x,0.1,9.5\n".repeat(100_000).as_bytes());
    let mut source = SharedFile::open(&path, FileFormat::PowerJoular).unwrap();
    assert_eq!(source.read(), [Reading::PowerUw(9_500_000)]);
    assert_eq!(source.domains()[0].label, Label::Reported);
}

#[test]
fn a_file_that_is_no_longer_written_is_a_failed_read() {
    let (_directory, path) = written(b"10\n");
    let mut source = SharedFile::open(&path, FileFormat::Watts).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    let [Reading::Failed(fault)] = &source.read()[..] else { panic!("a stale file was read") };
    assert_eq!(fault.cause, FaultCause::Stale);
    assert!(fault.text.contains("not updated for 60 s"), "{}", fault.text);
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    assert_eq!(source.read(), [Reading::PowerUw(10_000_000)]);
}

/// A total that rose by 1 J in each of the seconds from one to another, seconds ago.
fn rising(from_s: i64, until_s: i64) -> Totals {
    let now_us = clock::unix_micros_at(clock::monotonic_now()).0;
    let mut totals = Totals::from(7);
    for ago_s in (until_s..from_s).rev() {
        totals.add(now_us - (ago_s + 1) * 1_000_000, now_us - ago_s * 1_000_000, MicroJoules(1_000_000));
    }
    totals
}

/// A moment so many ms ago.
fn ago(ms: u64) -> MonotonicNs {
    MonotonicNs(clock::monotonic_now().0 - ms * 1_000_000)
}

#[test]
fn a_total_with_times_completes_readings_of_earlier_moments() {
    let (_directory, path) = written(rising(6, 1).to_string().as_bytes());
    let mut source = SharedFile::open(&path, FileFormat::MicroJoules).unwrap();
    let late = ago(500);
    let mut readings = source.read();
    assert_eq!(readings, [Reading::CounterUj(5_000_007)]);
    assert!(!source.complete(late, &mut readings), "what was used until then is not known");
    // A moment that the totals have, and one before all of them.
    for (moment, expected) in [(ago(7_000), 0..=0), (ago(2_500), 3_200_000..=3_800_000)] {
        assert!(source.complete(moment, &mut readings));
        let [Reading::CounterUj(total)] = readings[..] else { panic!("{readings:?}") };
        assert!(expected.contains(&(total - 7)), "{total}");
    }
    std::fs::write(&path, rising(6, 0).to_string()).unwrap();
    let mut failed = [Reading::failed(FaultCause::Unreadable, "")];
    source.read();
    assert!(source.complete(late, &mut failed) && matches!(failed, [Reading::CounterUj(_)]), "{failed:?}");
}

#[test]
fn energy_that_does_not_come_is_a_failed_read_in_the_end() {
    let (_directory, path) = written(rising(30, 20).to_string().as_bytes());
    let mut source = SharedFile::open(&path, FileFormat::MicroJoules).unwrap();
    let mut readings = source.read();
    assert!(!source.complete(ago(9_000), &mut readings));
    assert!(source.complete(ago(11_000), &mut readings));
    let [Reading::Failed(fault)] = &readings[..] else { panic!("{readings:?}") };
    assert_eq!(fault.cause, FaultCause::Stale);
    assert!(fault.text.contains("does not say what was used until 11 s ago"), "{}", fault.text);
}

#[test]
fn a_total_without_times_is_complete_when_it_is_read() {
    let (_directory, path) = written(b"7\n");
    let mut source = SharedFile::open(&path, FileFormat::MicroJoules).unwrap();
    let mut readings = source.read();
    assert!(source.complete(clock::monotonic_now(), &mut readings));
    assert_eq!(readings, [Reading::CounterUj(7)]);
    assert_eq!(source.boundary_near(MonotonicNs(5), 500), MonotonicNs(5));
}

#[test]
fn windows_end_where_the_writers_do_if_that_is_near() {
    let (_directory, path) = written(rising(6, 0).to_string().as_bytes());
    let mut source = SharedFile::open(&path, FileFormat::MicroJoules).unwrap();
    source.read();
    let wanted = MonotonicNs(clock::monotonic_now().0 + 1_300_000_000);
    let near = source.boundary_near(wanted, 500_000_000);
    assert!((250_000_000..=310_000_000).contains(&wanted.since(near)), "{}", wanted.since(near));
    assert_eq!(source.boundary_near(wanted, 200_000_000), wanted);
}

#[test]
fn a_file_that_goes_away_and_comes_back() {
    let (_directory, path) = written(b"10\n");
    let mut source = SharedFile::open(&path, FileFormat::Watts).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(source.read()[..], [Reading::Failed(_)]));
    std::fs::write(&path, "11\n").unwrap();
    assert_eq!(source.read(), [Reading::PowerUw(11_000_000)]);
}

#[test]
fn what_is_no_report_is_refused() {
    let (directory, path) = written(&[0xff; 10_000]);
    assert!(matches!(SharedFile::open(&path, FileFormat::Watts), Err(SharedFileError::Malformed { .. })));
    assert!(matches!(SharedFile::open(directory.path(), FileFormat::Watts), Err(SharedFileError::NotAFile { .. })));
    let absent = SharedFile::open(&directory.path().join("absent"), FileFormat::Watts).unwrap_err().to_string();
    assert!(absent.ends_with("check --energy-file"), "{absent}");
}

proptest::proptest! {
    #[test]
    fn no_report_panics_or_exceeds_the_limit(text in "[0-9a-z.,;\\n -]{0,60}|.{0,60}") {
        for format in FileFormat::ALL {
            let is_energy = format == FileFormat::MicroJoules;
            let is_sound = match parse_report(&text, format).map(|report| report.reading()) {
                Ok(Reading::PowerUw(microwatts)) => !is_energy && microwatts <= 100_000_000_000,
                Ok(Reading::CounterUj(_)) => is_energy,
                Ok(_) => false,
                Err(_) => true,
            };
            proptest::prop_assert!(is_sound);
        }
    }
}
