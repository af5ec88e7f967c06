//! Tests lists and series, and what is selected by what.

use std::collections::BTreeSet;

use flate2::read::GzDecoder;
use joular_data::{
    attribution::window_report::Category,
    report::{
        export::{ExportFormat, Selection as Exported},
        measure::Measure,
        profile::{Access, Allowance},
    },
};

use super::{
    super::messages::{
        AVERAGE, GetProfileStatsRequest, GetProfileStatsResponse, LabelNamesRequest, LabelValuesRequest, NamesResponse,
        ProfileTypesRequest, ProfileTypesResponse, SelectMergeProfileRequest, SelectMergeStacktracesRequest,
        SelectMergeStacktracesResponse, SelectSeriesRequest, SelectSeriesResponse, SeriesRequest, SeriesResponse, TREE,
    },
    *,
};
use crate::serve::terms::SPAN;

const POWER: &str = "joular:power:watts:cpu:nanoseconds";
const START_MS: i64 = fixture::START.0 / 1000;

fn series_of(data: &Data, request: &SelectSeriesRequest) -> SelectSeriesResponse {
    data.call("SelectSeries", request).unwrap()
}

fn request(kind: &str, selector: &str, by: &[&str]) -> SelectSeriesRequest {
    SelectSeriesRequest {
        profile_type: kind.to_owned(),
        label_selector: selector.to_owned(),
        start: START_MS,
        end: START_MS + 60_000,
        group_by: by.iter().map(|name| (*name).to_owned()).collect(),
        step: 7.0,
        ..SelectSeriesRequest::default()
    }
}

/// Points of all series, whole numbers.
fn sum(answer: &SelectSeriesResponse) -> u64 {
    let points = answer.series.iter().flat_map(|series| &series.points);
    points.map(|point| format!("{:.0}", point.value).parse::<u64>().unwrap()).sum()
}

/// Energy of threads of one category, or of all.
fn energy_of(data: &Data, part: Option<Category>) -> u64 {
    let profile = data.profile();
    let is_of = |thread| part.is_none_or(|part| profile.catalog.thread(thread).category == part);
    profile.entries.iter().filter(|entry| is_of(entry.thread)).map(|entry| entry.energy.0).sum()
}

#[test]
fn selectors_select_what_they_say() {
    let data = Data::new();
    let (all, java, gc) =
        (energy_of(&data, None), energy_of(&data, Some(Category::Java)), energy_of(&data, Some(Category::Gc)));
    assert!(java > 0 && gc > 0 && java + gc == all);
    for (selector, expected) in [
        ("", all),
        (r#"{service_name="shop"}"#, all),
        (r#"{service_name!="shop"}"#, 0),
        (r#"{service_name=~"sh.p|orders"}"#, all),
        (r#"{service_name=~"ho"}"#, 0),
        (r#"{service_version!~"2.*",comm="java"}"#, all),
        (r#"{host="node-1"}"#, all),
        (r#"{host="node-2"}"#, 0),
        (r#"{host!="node-2"}"#, all),
        (r#"{pod=""}"#, all),
        (r#"{pod!=""}"#, 0),
        (r#"{nobody=~".+"}"#, 0),
        (r#"{nobody=~".*"}"#, all),
        (r#"{jvm_part="gc"}"#, gc),
        (r#"{jvm_part!="gc"}"#, java),
        (r#"{jvm_part=~"g.|jit"}"#, gc),
        (r#"{jvm_part!~".*"}"#, 0),
        (r#"{jvm_part="gc",service_name="orders"}"#, 0),
        (r#"{__profile_type__="joular:energy:microjoules:cpu:nanoseconds"}"#, all),
        (r#"{__profile_type__=~".*:cpu:nanoseconds:cpu:nanoseconds"}"#, 0),
    ] {
        assert_eq!(sum(&series_of(&data, &request(ENERGY, selector, &[]))), expected, "{selector}");
        let request = SelectMergeStacktracesRequest {
            profile_type: ENERGY.to_owned(),
            label_selector: selector.to_owned(),
            ..SelectMergeStacktracesRequest::default()
        };
        let answer: SelectMergeStacktracesResponse = data.call("SelectMergeStacktraces", &request).unwrap();
        let graph = answer.flamegraph.unwrap();
        assert_eq!(u64::try_from(graph.total).unwrap(), expected, "{selector}");
        assert!(graph.names[0] == "total" && graph.levels[0].values.len() == 4, "there is a root: {graph:?}");
    }
}

#[test]
fn points_of_a_step_are_its_windows_and_sum_to_the_whole() {
    let data = Data::new();
    let profile = data.profile();
    let parts = series_of(&data, &request(ENERGY, "", &["jvm_part", "nobody"]));
    let named: Vec<_> = parts.series.iter().map(|series| series.labels.clone()).collect();
    let label = |value: &str| vec![messages::LabelPair { name: "jvm_part".to_owned(), value: value.to_owned() }];
    assert_eq!(named, [label("gc"), label("java")]);
    assert_eq!(sum(&parts), energy_of(&data, None));
    for series in &parts.series {
        let times: Vec<i64> = series.points.iter().map(|point| (point.timestamp - START_MS) / 1000).collect();
        assert_eq!(times, [0, 7, 14, 21, 28, 35, 42, 49, 56]);
    }
    let cpu: u64 = profile.entries.iter().map(|entry| entry.cpu_ns).sum();
    assert_eq!(sum(&series_of(&data, &request("joular:cpu:nanoseconds:cpu:nanoseconds", "", &[]))), cpu);

    // The larger one of both.
    let most = series_of(&data, &SelectSeriesRequest { limit: 1, ..request(ENERGY, "", &["jvm_part"]) });
    assert!(most.series.len() == 1 && sum(&most) > sum(&parts) / 2);
    // A mean of seven windows, or of the four that are left.
    let whole = series_of(&data, &request(ENERGY, "", &[]));
    let mean = series_of(&data, &SelectSeriesRequest { aggregation: AVERAGE, ..request(ENERGY, "", &[]) });
    for (whole, mean) in whole.series[0].points.iter().zip(&mean.series[0].points) {
        let windows = if whole.timestamp == START_MS + 56_000 { 4.0 } else { 7.0 };
        assert!((whole.value - mean.value * windows).abs() < 1e-3, "{whole:?} {mean:?}");
    }
    // Watts by the seconds of a step.
    let power = series_of(&data, &request(POWER, "", &[]));
    for (whole, power) in whole.series[0].points.iter().zip(&power.series[0].points) {
        let seconds = if whole.timestamp == START_MS + 56_000 { 4.0 } else { 7.0 };
        assert!((whole.value - power.value * seconds * 1e6).abs() < 1e-3, "{whole:?} {power:?}");
    }
    // Only windows of the time that is asked for, and the first one sets where steps begin.
    let ten = SelectSeriesRequest { start: 0, end: START_MS + 10_000, step: 1.0, ..request(ENERGY, "", &[]) };
    let ten = series_of(&data, &ten);
    assert!(ten.series[0].points.len() == 10 && ten.series[0].points[0].timestamp == START_MS, "{ten:?}");
    for (start, end, has_all) in [
        (i64::MIN, i64::MAX, true),
        (-1, START_MS * 1000, true),
        (i64::MAX, i64::MAX, false),
        (0, i64::MIN, false),
        (0, -1, false),
    ] {
        let found = series_of(&data, &SelectSeriesRequest { start, end, ..request(ENERGY, "", &[]) });
        assert_eq!(sum(&found), if has_all { sum(&parts) } else { 0 }, "{start} {end}");
    }
    assert!(series_of(&data, &request("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "", &[])).series.is_empty());
}

#[test]
fn lists_have_what_there_is() {
    let data = Data::new();
    let names = |matchers: &[&str]| {
        let matchers = matchers.iter().map(|text| (*text).to_owned()).collect();
        let request = LabelNamesRequest { matchers, ..LabelNamesRequest::default() };
        data.call::<NamesResponse>("LabelNames", &request).unwrap().names
    };
    let all = ["__profile_type__", "comm", "host", "jvm_part", "service_name", "service_version"];
    assert_eq!(names(&[]), all);
    assert_eq!(names(&["{service_name=\"orders\"}", "{jvm_part=\"gc\"}"]), all, "one of them is enough");
    assert_eq!(names(&["{service_name=\"orders\"}"]), [""; 0]);

    let values = |name: &str, matcher: &str, start: i64| {
        let request = LabelValuesRequest { name: name.to_owned(), matchers: vec![matcher.to_owned()], start, end: 0 };
        data.call::<NamesResponse>("LabelValues", &request).unwrap().names
    };
    assert_eq!(values("service_name", "{}", 0), ["shop"]);
    assert_eq!(values("jvm_part", "{comm=~\"j.*\"}", 0), ["gc", "java"]);
    assert_eq!(values("jvm_part", "{jvm_part!=\"gc\"}", 0), ["java"]);
    assert_eq!(values("nobody", "", 0), [""; 0]);
    assert_eq!(values("service_name", "", START_MS + 60_000), [""; 0], "nobody ran then");
    let kinds = ["cpu:nanoseconds", "energy:microjoules", "power:watts", "samples:count"];
    let kinds = kinds.map(|kind| format!("joular:{kind}:cpu:nanoseconds"));
    assert_eq!(values("__profile_type__", "", 0), kinds);

    for (start, end) in [(0, 0), (START_MS, START_MS + 1)] {
        let answer: ProfileTypesResponse = data.call("ProfileTypes", &ProfileTypesRequest { start, end }).unwrap();
        let found: BTreeSet<String> = answer.profile_types.into_iter().map(|kind| kind.id).collect();
        assert_eq!(found, BTreeSet::from(kinds.clone()));
    }
    let label_names = vec!["service_name".to_owned(), "__profile_type__".to_owned()];
    let request = SeriesRequest { label_names, ..SeriesRequest::default() };
    let sets = data.call::<SeriesResponse>("Series", &request).unwrap().labels_set;
    let shown: Vec<String> = sets
        .iter()
        .map(|set| set.labels.iter().map(|pair| format!("{}={};", pair.name, pair.value)).collect())
        .collect();
    let expected = [&kinds[0], &kinds[1], &kinds[3]].map(|kind| format!("__profile_type__={kind};service_name=shop;"));
    assert_eq!(shown, expected, "power has no stacks");
    let stats: GetProfileStatsResponse = data.call("GetProfileStats", &GetProfileStatsRequest {}).unwrap();
    assert!(stats.data_ingested);
    assert_eq!((stats.oldest_profile_time, stats.newest_profile_time), (START_MS, START_MS + 60_000));
}

#[test]
fn a_profile_is_that_of_exports() {
    let data = Data::new();
    let request = SelectMergeProfileRequest { profile_type: ENERGY.to_owned(), ..SelectMergeProfileRequest::default() };
    let answer = data.answer(&asked("SelectMergeProfile", codec::PROTO, request.encode_to_vec())).unwrap();
    let (filter, mut packed, mut expected) = (Filter::default(), Vec::new(), Vec::new());
    let exported = Exported { data: data.0.path(), filter: &filter, app: None, measure: Measure::Energy };
    ExportFormat::of("pprof").unwrap().write(&exported, &mut packed).unwrap();
    std::io::Read::read_to_end(&mut GzDecoder::new(packed.as_slice()), &mut expected).unwrap();
    assert_eq!(answer.body, expected);
    let text = format!("{{\"profileTypeID\":\"{ENERGY}\"}}");
    let refusal = data.answer(&asked("SelectMergeProfile", "application/json", text)).unwrap_err();
    assert_eq!((refusal.status.as_u16(), refusal.code), (501, "unimplemented"));
}

#[test]
fn what_cannot_be_answered_is_refused_as_connect_has_it() {
    let data = Data::new();
    let json = |method: &str, text: &str| data.answer(&asked(method, "application/json", text.to_owned())).unwrap_err();
    for (method, text, status, code, words) in [
        ("SelectHeatmap", "", 501, "unimplemented", "is not answered"),
        ("SelectMergeSpanProfile", "{}", 501, "unimplemented", "is not answered"),
        ("Moon", "{}", 501, "unimplemented", "there is no Moon here"),
        ("LabelNames", "{", 400, "invalid_argument", "reading the message"),
        ("LabelNames", r#"{"matchers":["{"]}"#, 400, "invalid_argument", "name of a label"),
        ("LabelNames", r#"{"start":"5","end":"4"}"#, 400, "invalid_argument", "before it begins"),
        ("LabelValues", "{}", 400, "invalid_argument", "name: it is empty"),
        ("SelectSeries", "{}", 400, "invalid_argument", "is not a type of profiles"),
        ("SelectSeries", r#"{"profileTypeID":"a:b:c:d:e"}"#, 400, "invalid_argument", "step: 0"),
        ("SelectSeries", r#"{"profileTypeID":"a:b:c:d:e","step":"NaN"}"#, 400, "invalid_argument", "step: NaN"),
        (
            "SelectSeries",
            r#"{"profileTypeID":"a:b:c:d:e","step":1,"aggregation":7}"#,
            400,
            "invalid_argument",
            "aggregation: 7",
        ),
        (
            "SelectSeries",
            r#"{"profileTypeID":"a:b:c:d:e","step":1,"stackTraceSelector":{"callSite":[{"name":"x"}]}}"#,
            501,
            "unimplemented",
            "stack_trace_selector",
        ),
        (
            "SelectMergeStacktraces",
            r#"{"profileTypeID":"joular:power:watts:cpu:nanoseconds"}"#,
            400,
            "invalid_argument",
            "no power",
        ),
        ("Diff", r#"{"left":{"profileTypeID":"a:b:c:d:e"}}"#, 400, "invalid_argument", "right: it is missing"),
    ] {
        let refusal = json(method, text);
        assert_eq!((refusal.status.as_u16(), refusal.code), (status, code), "{method} {text}");
        assert!(refusal.message.contains(words), "{method} {text}: {}", refusal.message);
    }
    let tree = SelectMergeStacktracesRequest { profile_type: ENERGY.to_owned(), format: TREE, ..Default::default() };
    let refusal = data.call::<SelectMergeStacktracesResponse>("SelectMergeStacktraces", &tree).unwrap_err();
    assert_eq!(refusal.code, "unimplemented");
    let refusal = data.answer(&asked("LabelNames", "application/grpc", Bytes::new())).unwrap_err();
    assert_eq!(refusal.status, 415);
    let bytes = data.answer(&asked("LabelNames", codec::PROTO, &b"\x0a\xff"[..])).unwrap_err();
    assert_eq!(bytes.code, "invalid_argument");
}

#[test]
fn equal_questions_have_equal_keys_however_they_are_written() {
    let key = |kind: &'static str, body: Vec<u8>| {
        question(&asked("SelectSeries", kind, body), &terms()).unwrap().map(|question| question.key).unwrap()
    };
    let request = request(ENERGY, "{}", &["host"]);
    let mut longer = request.encode_to_vec();
    longer.extend(b"\x50\x01");
    assert_eq!(key(codec::PROTO, request.encode_to_vec()), key(codec::PROTO, longer));
    let other = SelectSeriesRequest { limit: 1, ..request.clone() };
    assert_ne!(key(codec::PROTO, request.encode_to_vec()), key(codec::PROTO, other.encode_to_vec()));
    assert!(name_of("/querier.v1.QuerierService/SelectSeries").is_some() && name_of("/querier.v1.X").is_none());
    assert!(body_bytes("/querier.v1.QuerierService/X").is_some() && body_bytes("/pyroscope/render").is_none());
}

/// What is asked for, a part for each side, without any time.
fn without_a_time(path: &str) -> (Asked, usize) {
    let side = format!(r#"{{"profileTypeID":"{ENERGY}"}}"#);
    let body = match path.rsplit('/').next().unwrap() {
        "LabelValues" => r#"{"name":"host"}"#.to_owned(),
        "SelectSeries" => format!(r#"{{"profileTypeID":"{ENERGY}","step":1}}"#),
        "SelectMergeStacktraces" => side,
        "Diff" => format!(r#"{{"left":{side},"right":{side}}}"#),
        _ => "{}".to_owned(),
    };
    let is_of_sides = path.ends_with("Diff") || path.ends_with("render-diff");
    let mut asked = asked("", "application/json", body);
    asked.uri = format!("{path}?query={ENERGY}&leftQuery={ENERGY}&rightQuery={ENERGY}").parse().unwrap();
    if path.ends_with("SelectMergeProfile") {
        let profile_type = ENERGY.to_owned();
        let body = SelectMergeProfileRequest { profile_type, ..SelectMergeProfileRequest::default() }.encode_to_vec();
        asked.headers.insert(CONTENT_TYPE, HeaderValue::from_static(codec::PROTO));
        asked.body = body.into();
    }
    (asked, if is_of_sides { 2 } else { 1 })
}

#[test]
fn every_call_is_about_parts_that_the_terms_limit() {
    let of = |access: Access| {
        let sight = Sight { access, key: "rules 0".to_owned() };
        Terms { span: Some(SPAN), sight, ..terms() }
    };
    let (limited, nothing) = (of(Access::of([Allowance::default()])), of(Access::of([])));
    let mut answered = 0;
    for path in paths() {
        let (asked, parts) = without_a_time(path);
        let understood = match question(&asked, &limited).unwrap() {
            Ok(question) => question,
            Err(refusal) => {
                assert_eq!(refusal.status, 501, "{path}: {refusal:?}");
                continue;
            }
        };
        answered += 1;
        assert!(understood.reads == Reads::Parts && understood.parts.len() == parts, "{path}");
        assert!(understood.parts.iter().all(|part| !part.access.is_everything() && part.since.is_some()), "{path}");
        let hour = UnixMicros(terms().now.0 - 3_600_000_000);
        assert_eq!(understood.begin, Some(hour), "{path}");
        let refusal = refused(path, question(&asked, &nothing).unwrap().err().unwrap());
        let code = if path.starts_with(SERVICE) { "permission_denied" } else { "forbidden" };
        assert_eq!((refusal.status.as_u16(), refusal.code), (403, code), "{path}");
        let other = question(&asked, &of(Access::default())).unwrap().unwrap();
        assert_eq!(other.key, understood.key, "those who have the same rules ask the same");
        let everything = question(&asked, &terms()).unwrap().unwrap();
        assert!(everything.key != understood.key && everything.begin.is_none(), "{path}");
    }
    assert_eq!(answered, paths().count() - 2, "spans and heatmaps are not there");
}

#[test]
fn what_allows_nothing_is_within_the_terms_too() {
    let terms = Terms { span: Some(SPAN), ..terms() };
    for selector in [r#"{jvm_part!~".*"}"#, r#"{__profile_type__="x"}"#] {
        let asked = asked("SelectSeries", codec::PROTO, request(ENERGY, selector, &[]).encode_to_vec());
        let question = question(&asked, &terms).unwrap().unwrap();
        assert_eq!((question.parts.len(), question.begin), (1, None), "it says where it begins");
    }
}
