use super::*;

/// 2026-03-01T12:00:00Z.
const NOON_S: i64 = 1_772_366_400;

fn read(text: &str, zone: Option<&str>) -> Result<Factors, FactorsError> {
    Factors::read(text.as_bytes(), zone)
}

/// Mean, least and greatest factor of a span in seconds after noon.
fn over(factors: &Factors, from_s: i64, until_s: i64) -> Option<(f64, f64, f64)> {
    let at = |seconds: i64| UnixMicros((NOON_S + seconds) * 1_000_000);
    let spanned = factors.over((at(from_s), at(until_s)), &mut BTreeSet::new())?;
    Some((spanned.mean_g_per_kwh, spanned.min_g_per_kwh, spanned.max_g_per_kwh))
}

const HOURS: &str = "time,zone,g/kWh,source,year\n\
    2026-03-01T12:00:00Z,FR,50,\"RTE, éCO2mix\",2026\n\
    2026-03-01T12:00:00Z,PL,700,PSE,2025\n\
    2026-03-01T13:00:00Z,FR,80,\"RTE, éCO2mix\",2026\n\
    2026-03-01T15:00:00+01:00,FR,20,Ember,\n\
    2026-03-01T14:00:00Z,PL,600,PSE,2025\n";

#[test]
fn a_factor_holds_until_the_next_of_its_zone_and_the_last_for_the_usual_time() {
    let factors = read(HOURS, Some("FR")).unwrap();
    for (from_s, until_s, expected) in [
        (0, 1, Some((50.0, 50.0, 50.0))),
        (3_599, 3_600, Some((50.0, 50.0, 50.0))),
        (3_600, 3_601, Some((80.0, 80.0, 80.0))),
        // A quarter of the span at 50, the rest at 80.
        (3_540, 3_780, Some((72.5, 50.0, 80.0))),
        (0, 10_800, Some((50.0, 20.0, 80.0))),
        (10_799, 10_800, Some((20.0, 20.0, 20.0))),
        (7_200, 7_200, Some((20.0, 20.0, 20.0))),
        (-1, 1, None),
        (10_799, 10_801, None),
        (10_800, 10_800, None),
    ] {
        assert_eq!(over(&factors, from_s, until_s), expected, "{from_s} to {until_s}");
    }
    let poland = read(HOURS, Some("PL")).unwrap();
    assert_eq!(over(&poland, 7_199, 7_201), Some((650.0, 600.0, 700.0)));
    assert_eq!(poland.zone.as_deref(), Some("PL"));
}

#[test]
fn sources_and_years_are_those_of_the_factors_that_were_used() {
    let factors = read(HOURS, Some("FR")).unwrap();
    let origins = |from_s: i64, until_s: i64| {
        let at = |seconds: i64| UnixMicros((NOON_S + seconds) * 1_000_000);
        let mut origins = BTreeSet::new();
        factors.over((at(from_s), at(until_s)), &mut origins).unwrap();
        origins.into_iter().map(|origin| (origin.source.unwrap_or_default(), origin.year)).collect::<Vec<_>>()
    };
    let (rte, ember) = (("RTE, éCO2mix".to_owned(), Some(2026)), ("Ember".to_owned(), None));
    assert_eq!(origins(0, 7_200), std::slice::from_ref(&rte));
    assert_eq!(origins(7_100, 7_300), [ember, rte]);
}

#[test]
fn columns_come_in_any_order_and_zone_source_and_year_need_not_be_there() {
    for text in [
        "time,g/kWh\n2026-03-01T12:00:00Z,50\n2026-03-01T12:05:00Z,60\n",
        "# exported\n\u{feff}gCO2eq/kWh , Station, TIME\r\n50,a,2026-03-01T12:00:00Z\r\n60,b,2026-03-01T12:05:00Z\r\n",
        "\"time\",\"zone\",\"gCO2e/kWh\"\n2026-03-01T12:00:00Z,,50\n2026-03-01T12:05:00Z,,60",
    ] {
        let factors = read(text, None).unwrap();
        assert_eq!(factors.zone, None);
        assert_eq!(over(&factors, 299, 301), Some((55.0, 50.0, 60.0)), "{text}");
        assert_eq!(over(&factors, 599, 601), None);
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let long = "x".repeat(10_000);
    let rows = "2026-03-01T12:00:00Z,50,\n2026-03-01T13:00:00Z,60,\n";
    for (text, zone, expected) in [
        ("", None, "names no column time: it has nothing"),
        ("when,g/kWh\n", None, "names no column time: it has 'when', 'g/kwh'"),
        ("time,kg/kWh\n", None, "names no column g/kWh: it has 'time', 'kg/kwh'"),
        ("time,g/kWh\n", None, "0 lines are of this zone"),
        ("time,g/kWh\n2026-03-01T12:00:00Z,50\n", None, "1 lines are of this zone, and at least 2"),
        ("time,g/kWh\nnoon,50\n", None, "line 2: 'noon' is not a time: write RFC 3339"),
        ("time,g/kWh\n2026-03-01T12:00:00,50\n", None, "line 2: '2026-03-01T12:00:00' is not a time"),
        ("time,g/kWh\n2026-03-01T12:00:00Z,-1\n", None, "line 2: '-1' is not a factor: write g/kWh"),
        ("time,g/kWh\n\n2026-03-01T12:00:00Z,NaN\n", None, "line 3: 'NaN' is not a factor"),
        ("time,g/kWh\n2026-03-01T12:00:00Z,inf\n", None, "line 2: 'inf' is not a factor"),
        ("time,g/kWh\n2026-03-01T12:00:00Z,\n", None, "line 2: '' is not a factor"),
        ("time,g/kWh\n2026-03-01T12:00:00Z,20000\n", None, "line 2: '20000' is not a factor"),
        ("time,g/kWh,year\n2026-03-01T12:00:00Z,20,26\n", None, "line 2: '26' is not a year"),
        ("time,g/kWh\n2026-03-01T12:00:00Z\n", None, "found record with 1 fields, but the previous record has 2"),
        (
            "time,g/kWh\n2026-03-01T12:00:01Z,50\n2026-03-01T12:00:00Z,50\n",
            None,
            "line 3: its time '2026-03-01T12:00:00Z' is not after",
        ),
        ("time,g/kWh\n2026-03-01T12:00:00Z,50\n2026-03-01T12:00:00Z,60\n", None, "line 3: its time"),
        (HOURS, None, "the file has several zones: choose one with --zone: 'FR', 'PL'"),
        (HOURS, Some("DE"), "no line is of zone 'DE'; the file has 'FR', 'PL'"),
        (&format!("time,g/kWh,zone\n{rows}"), Some("DE"), "no line is of zone 'DE'; the file has ''"),
        ("time,g/kWh\n", Some("DE"), "no line is of zone 'DE'; the file has no lines"),
        (
            &format!("time,g/kWh,zone\n2026-03-01T12:00:00Z,50,{long}\n"),
            None,
            "line 2: its zone has 10000 bytes, at most 256",
        ),
        (&format!("time,g/kWh\n{long},50\n"), None, "line 2: 'xxxxx"),
        (&format!("{long},g/kWh\n"), None, "names no column time: it has 'xxxxx"),
        ("time,g/kWh\n\x1b[2J\n", None, "found record with 1 fields"),
        ("time,g/kWh\n\x1b[2J,1\n", None, "'\\x1b[2J' is not a time"),
    ] {
        let message = read(text, zone).unwrap_err().to_string();
        assert!(message.contains(expected), "{:.80}: {message}", text);
        assert!(message.len() < 400, "{message}");
    }
    let absent = Factors::open(Path::new("/nonexistent/factors.csv"), None).unwrap_err().to_string();
    assert!(absent.starts_with("opening /nonexistent/factors.csv: "), "{absent}");
    assert!(absent.ends_with("write a figure such as 250g/kWh, or name a CSV file"), "{absent}");
}

#[test]
fn of_many_zones_an_error_lists_some() {
    let rows: String = (0..1_000).map(|zone| format!("2026-03-01T12:00:00Z,Z{zone:04},50\n")).collect();
    let message = read(&format!("time,zone,g/kWh\n{rows}"), None).unwrap_err().to_string();
    assert!(message.contains("'Z0000', 'Z0001'") && message.ends_with("'Z0019' and 980 more"), "{message}");
}

#[test]
fn a_file_without_end_is_refused() {
    let endless = "time,zone,g/kWh\n".as_bytes().chain(io::repeat(b'x'));
    let message = Factors::read(endless, Some("DE")).unwrap_err().to_string();
    assert!(message.contains("more than 64 MiB"), "{message}");
}

proptest::proptest! {
    #[test]
    fn any_file_is_a_table_or_an_error(
        bytes: Vec<u8>,
        lines in proptest::collection::vec("[0-9.,;eT:Z+\"-]{0,30}", 0..5),
        zone in proptest::option::of("[A-Z]{0,2}"),
    ) {
        let _ = Factors::read(&bytes[..], zone.as_deref());
        let _ = read(&format!("time,zone,g/kWh\n{}", lines.join("\n")), zone.as_deref());
    }
}
