//! Takes answers of applications, one after the other.

use proptest::prelude::*;

use super::*;
use crate::report::requests::counts;

/// Of Spring Boot 3, shortened.
const MICROMETER: &str = r#"# HELP http_server_requests_active_seconds Of requests
# TYPE http_server_requests_active_seconds summary
http_server_requests_active_seconds_count{exception="none",method="GET",outcome="SUCCESS",status="200",uri="UNKNOWN"} 1
# HELP http_server_requests_seconds Of requests
# TYPE http_server_requests_seconds summary
http_server_requests_seconds_count{error="none",exception="none",method="GET",outcome="SUCCESS",status="200",uri="/cart/{id}"} 40
http_server_requests_seconds_sum{error="none",exception="none",method="GET",outcome="SUCCESS",status="200",uri="/cart/{id}"} 0.5
http_server_requests_seconds_count{error="none",exception="none",method="GET",outcome="CLIENT_ERROR",status="404",uri="/cart/{id}"} 2
http_server_requests_seconds_count{error="none",exception="none",method="POST",outcome="SUCCESS",status="201",uri="/cart"} 7
# HELP jvm_gc_pause_seconds Time spent in GC pause
# TYPE jvm_gc_pause_seconds summary
jvm_gc_pause_seconds_count{action="end of minor GC",cause="G1 Evacuation Pause",gc="G1 Young Generation"} 3
process_start_time_seconds 1.772366E9
"#;

/// OpenMetrics, as the agent of OpenTelemetry exposes it, with an exemplar.
const OTEL: &str = r#"# TYPE http_server_request_duration_seconds histogram
# UNIT http_server_request_duration_seconds seconds
http_server_request_duration_seconds_bucket{http_request_method="GET",http_route="/pay",le="+Inf"} 9 # {span_id="1",trace_id="2"} 0.1
http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="200",http_route="/pay"} 9
http_server_request_duration_seconds_count{http_request_method="GET",http_response_status_code="404"} 1
# EOF
"#;

const GRPC: &str = r#"# TYPE grpc_server_started_total counter
grpc_server_started_total{grpc_type="UNARY",grpc_service="shop.Orders",grpc_method="Place",} 6.0
# TYPE grpc_server_handled_total counter
grpc_server_handled_total{grpc_type="UNARY",grpc_service="shop.Orders",grpc_method="Place",code="OK",grpc_code="OK",} 4.0
grpc_server_handled_total{grpc_type="UNARY",grpc_service="shop.Orders",grpc_method="Place",code="ABORTED",grpc_code="ABORTED",} 1.0
"#;

fn counting() -> Counting {
    Counting::new(RequestCounter::known(), BTreeMap::new()).unwrap()
}

/// Route and count of each row.
fn counts_of(taken: &Taken) -> Vec<(String, u64)> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0].to_owned(), cells[1].parse().unwrap())
    };
    taken.rows.lines().map(row).collect()
}

fn at(second: i64) -> UnixMicros {
    UnixMicros(1_772_366_400_000_000 + second * 1_000_000)
}

/// Takes texts a second apart, and returns the rows of the last one.
fn last(texts: &[&str]) -> Vec<(String, u64)> {
    let mut counting = counting();
    let taken = (0..).zip(texts).map(|(second, text)| counting.take(text, at(second)).unwrap());
    counts_of(&taken.last().unwrap())
}

fn rows(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(route, count)| ((*route).to_owned(), *count)).collect()
}

#[test]
fn differences_of_counters_are_requests_summed_over_statuses() {
    let later = MICROMETER.replace("} 40", "} 52").replace("} 2\n", "} 5\n");
    assert_eq!(last(&[MICROMETER, &later]), rows(&[("GET /cart/{id}", 15), ("POST /cart", 0)]));
    let later = OTEL.replace("} 9\n", "} 12\n").replace("} 1\n", "} 3\n");
    assert_eq!(last(&[OTEL, &later]), rows(&[("GET /pay", 3), ("GET [no route]", 2)]));
    let later = GRPC.replace("} 4.0", "} 1.4E1").replace("} 6.0", "} 600");
    assert_eq!(last(&[GRPC, &later]), rows(&[("shop.Orders/Place", 10)]));
}

#[test]
fn the_first_answer_is_where_counting_begins_and_later_counters_count_from_0() {
    assert_eq!(last(&[MICROMETER]), rows(&[]));
    assert_eq!(last(&["", MICROMETER]), rows(&[("GET /cart/{id}", 42), ("POST /cart", 7)]));
}

#[test]
fn a_counter_that_began_again_counts_from_0_and_is_told() {
    let mut counting = counting();
    counting.take(OTEL, at(0)).unwrap();
    let taken = counting.take(&OTEL.replace("} 9\n", "} 4\n"), at(1)).unwrap();
    assert_eq!(counts_of(&taken), rows(&[("GET /pay", 4), ("GET [no route]", 0)]));
    assert_eq!(taken.notes, ["1 counter began again at 0: requests just before are not counted"]);
}

#[test]
fn all_counters_of_a_process_that_began_again_count_from_0_even_if_they_are_larger_than_before() {
    let later = MICROMETER.replace("1.772366E9", "1.772367E9").replace("} 40", "} 50");
    let mut counting = counting();
    counting.take(MICROMETER, at(0)).unwrap();
    let taken = counting.take(&later, at(1)).unwrap();
    assert_eq!(counts_of(&taken), rows(&[("GET /cart/{id}", 52), ("POST /cart", 7)]));
    assert!(taken.notes[0].starts_with("the application was started again"), "{:?}", taken.notes);
}

#[test]
fn a_counter_that_is_away_for_a_while_or_not_a_number_goes_on_from_where_it_was() {
    let more = OTEL.replace("} 9\n", "} 11\n");
    let nan = OTEL.replace("} 9\n", "} NaN\n");
    assert_eq!(last(&[OTEL, "", &more]), rows(&[("GET /pay", 2), ("GET [no route]", 0)]));
    assert_eq!(last(&[OTEL, &nan, &more]), rows(&[("GET /pay", 2), ("GET [no route]", 0)]));
}

#[test]
fn requests_that_several_counters_have_are_counted_by_the_first_one_that_was_seen() {
    let both = format!("{OTEL}{MICROMETER}");
    assert_eq!(last(&["", &both]), rows(&[("GET /cart/{id}", 42), ("POST /cart", 7)]));
    let mut counting = counting();
    let first = counting.take(OTEL, at(0)).unwrap();
    assert_eq!(first.notes, ["requests are counted by http_server_request_duration_seconds_count"]);
    let taken = counting.take(&both, at(1)).unwrap();
    assert_eq!(counts_of(&taken), rows(&[("GET /pay", 0), ("GET [no route]", 0)]));
    // HTTP and gRPC are different requests.
    let all = last(&["", &format!("{GRPC}{OTEL}")]);
    assert_eq!(all, rows(&[("GET /pay", 9), ("GET [no route]", 1), ("shop.Orders/Place", 5)]));
}

#[test]
fn counters_of_somebody_are_all_taken() {
    let own = ["a_total{queue}", "b_total"].map(|text| RequestCounter::parse(text).unwrap());
    let mut counting = Counting::new(RequestCounter::each_of_its_kind(own.into()), BTreeMap::new()).unwrap();
    counting.take("", at(0)).unwrap();
    let taken = counting.take(&format!("{MICROMETER}a_total{{queue=\"x\"}} 3\nb_total 4\n"), at(1)).unwrap();
    assert_eq!(counts_of(&taken), rows(&[("b_total", 4), ("x", 3)]));
}

#[test]
fn what_does_not_count_changes_nothing() {
    let mut counting = counting();
    counting.take(OTEL, at(5)).unwrap();
    let broken = OTEL.replace("} 1\n", "} one\n");
    let error = counting.take(&broken, at(6)).unwrap_err().to_string();
    assert_eq!(error, "line 5 of the answer cannot be understood: its value is not a number");
    assert_eq!(counting.take(OTEL, at(5)).unwrap_err(), ScrapeError::Clock);
    let taken = counting.take(&OTEL.replace("} 9\n", "} 10\n"), at(8)).unwrap();
    assert_eq!(
        taken.rows,
        "GET /pay,1,,2026-03-01T12:00:05Z,2026-03-01T12:00:08Z\r\n\
         GET [no route],0,,2026-03-01T12:00:05Z,2026-03-01T12:00:08Z\r\n"
    );
}

#[test]
fn too_many_routes_are_one() {
    let text = |count: usize, of: u32| {
        let line = |route| format!("http_server_requests_seconds_count{{uri=\"/{route:04}\"}} {of}\n");
        (0..count).map(line).collect::<String>()
    };
    let mut counting = counting();
    counting.take(&text(MOST_ROUTES, 1), at(0)).unwrap();
    let taken = counting.take(&text(MOST_ROUTES + 5, 2), at(1)).unwrap();
    let counts = counts_of(&taken);
    assert_eq!((counts.len(), taken.requests), (MOST_ROUTES + 1, 1000 + 5 * 2));
    assert_eq!(counts.last().unwrap(), &(OTHER_ROUTES.to_owned(), 10));
    assert_eq!(taken.notes.len(), 1);
}

#[test]
fn a_file_of_all_rows_is_read_by_the_report_with_handlers_and_odd_names() {
    let handlers = BTreeMap::from([("GET /cart/{id}".to_owned(), "CartController.get".to_owned())]);
    let mut counting = Counting::new(RequestCounter::known(), handlers).unwrap();
    let odd = MICROMETER.replace("uri=\"/cart\"", "uri=\"=a,\\\"b\\\"\\n[x{\"");
    let mut file = Counting::HEADING.to_owned();
    for (second, text) in [(0, MICROMETER), (1, &odd), (2, &odd.replace("} 40", "} 41"))] {
        file.push_str(&counting.take(text, at(second)).unwrap().rows);
    }
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(path.path(), &file).unwrap();
    let counts = counts::read(path.path()).unwrap();
    let found: Vec<_> = counts.routes.iter().map(ToString::to_string).zip(counts.requests()).collect();
    assert_eq!(found, rows(&[("GET /cart/{id}", 1), ("POST /cart", 0), ("POST =a,\"b\"\\x0a[x{", 7)]), "{file}");
    assert_eq!(counting.routes_not_seen().count(), 0);
    assert!(Counting::new(Vec::new(), BTreeMap::from([("/".to_owned(), "[".to_owned())])).is_err());
}

proptest! {
    /// Whichever answers are lost, no request between the first and the last one is.
    #[test]
    fn counts_add_up(steps in prop::collection::vec((0_u32..50, 0_u32..50, any::<bool>()), 1..20)) {
        let text = |a: u32, b: u32| {
            format!("http_server_requests_seconds_count{{uri=\"/a\",status=\"200\"}} {a}\n\
                     http_server_requests_seconds_count{{uri=\"/a\",status=\"500\"}} {b}\n")
        };
        let mut counting = counting();
        counting.take(&text(0, 0), at(0)).unwrap();
        let (mut values, mut seen, mut counted) = ((0, 0), 0, 0);
        for ((a, b, is_lost), second) in steps.into_iter().zip(1..) {
            values = (values.0 + a, values.1 + b);
            let (text, at) = (text(values.0, values.1), at(second));
            if !is_lost {
                counted += counting.take(&text, at).unwrap().requests;
                seen = u64::from(values.0) + u64::from(values.1);
            }
        }
        prop_assert_eq!(counted, seen);
    }
}
