//! Tests how messages are written, against bytes that are made by hand from the wire format.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use hyper::header::CONTENT_ENCODING;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::{
        codec::{as_connect, unpacked},
        messages::*,
    },
    *,
};

#[test]
fn a_request_is_the_same_in_both_codecs() {
    let request = SelectSeriesRequest {
        profile_type: "t".to_owned(),
        label_selector: "{}".to_owned(),
        start: 1,
        end: 300,
        group_by: vec!["host".to_owned()],
        step: 15.0,
        aggregation: AVERAGE,
        stack_trace_selector: Vec::new(),
        limit: 5,
    };
    let mut bytes = b"\x0a\x01t\x12\x02{}\x18\x01\x20\xac\x02\x2a\x04host".to_vec();
    bytes.extend(b"\x31\0\0\0\0\0\0\x2e\x40\x38\x01\x48\x05");
    assert_eq!(request.encode_to_vec(), bytes);
    // A field that is not known changes nothing.
    bytes.extend(b"\x50\x01");
    assert_eq!(Codec::Proto.read(&bytes), Ok(request.clone()));
    for text in [
        r#"{"profileTypeID":"t","labelSelector":"{}","start":"1","end":300,"groupBy":["host"],"step":15,
            "aggregation":"TIME_SERIES_AGGREGATION_TYPE_AVERAGE","limit":"5","exemplarType":1,"stackTraceSelector":{}}"#,
        r#"{"profile_typeID":"t","label_selector":"{}","start":1,"end":3e2,"group_by":["host"],"step":"15.0",
            "aggregation":1,"limit":5,"stackTraceSelector":null}"#,
    ] {
        assert_eq!(Codec::Json.read(text.as_bytes()), Ok(request.clone()), "{text}");
    }
}

#[test]
fn a_flame_graph_is_written_as_the_wire_format_has_it() {
    let levels = vec![Level { values: vec![0, 5, 0, 0] }, Level { values: vec![0, 5, 5, 1] }];
    let names = vec!["total".to_owned(), "a".to_owned()];
    let graph = FlameGraph { names, levels, total: 5, max_self: 5 };
    let answer = SelectMergeStacktracesResponse { flamegraph: Some(graph) };
    let mut bytes = b"\x0a\x1e\x0a\x05total\x0a\x01a\x12\x06\x0a\x04\x00\x05\x00\x00".to_vec();
    bytes.extend(b"\x12\x06\x0a\x04\x00\x05\x05\x01\x18\x05\x20\x05");
    assert_eq!(Codec::Proto.write(&answer).unwrap().body, bytes);
    let json: Value = serde_json::from_slice(&Codec::Json.write(&answer).unwrap().body).unwrap();
    let levels = json!([{ "values": ["0", "5", "0", "0"] }, { "values": ["0", "5", "5", "1"] }]);
    let expected = json!({ "names": ["total", "a"], "levels": levels, "total": "5", "maxSelf": "5" });
    assert_eq!(json, json!({ "flamegraph": expected }));
}

#[test]
fn series_and_types_are_written_as_the_wire_format_has_them() {
    let labels = vec![LabelPair { name: "host".to_owned(), value: "b".to_owned() }];
    let series = Series { labels, points: vec![Point { value: 1.5, timestamp: 1000 }] };
    let answer = SelectSeriesResponse { series: vec![series] };
    let mut bytes = b"\x0a\x19\x0a\x09\x0a\x04host\x12\x01b".to_vec();
    bytes.extend(b"\x12\x0c\x09\0\0\0\0\0\0\xf8\x3f\x10\xe8\x07");
    assert_eq!(Codec::Proto.write(&answer).unwrap().body, bytes);
    let json: Value = serde_json::from_slice(&Codec::Json.write(&answer).unwrap().body).unwrap();
    let points = json!([{ "value": 1.5, "timestamp": "1000" }]);
    assert_eq!(json, json!({ "series": [{ "labels": [{ "name": "host", "value": "b" }], "points": points }] }));

    let one = types::ProfileType::Samples.described();
    let bytes = b"\x0a\x24joular:samples:count:cpu:nanoseconds\x12\x06joular\x22\x07samples\x2a\x05count\x32\x03cpu\x3a\x0bnanoseconds";
    assert_eq!(one.encode_to_vec(), bytes);
    let json: Value = serde_json::to_value(&one).unwrap();
    assert!(json["ID"] == "joular:samples:count:cpu:nanoseconds" && json["sampleUnit"] == "count", "{json}");
}

#[test]
fn integers_of_64_bits_are_texts_and_whole() {
    let stats = |text: &str| Codec::Json.read::<ProfileTypesRequest>(format!("{{\"start\":{text}}}").as_bytes());
    for (text, expected) in [
        ("\"9223372036854775807\"", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("\"-5\"", -5),
        ("1.7e12", 1_700_000_000_000),
        ("null", 0),
    ] {
        assert_eq!(stats(text).map(|request| request.start), Ok(expected), "{text}");
    }
    for text in ["\"9223372036854775808\"", "1.5", "\"x\"", "[]", "true", "1e30"] {
        assert_eq!(stats(text).unwrap_err().status, 400, "{text}");
    }
    let times =
        GetProfileStatsResponse { data_ingested: true, oldest_profile_time: i64::MIN, newest_profile_time: i64::MAX };
    let json: Value = serde_json::from_slice(&Codec::Json.write(&times).unwrap().body).unwrap();
    let (oldest, newest) = ("-9223372036854775808", "9223372036854775807");
    assert_eq!(json, json!({ "dataIngested": true, "oldestProfileTime": oldest, "newestProfileTime": newest }));
}

#[test]
fn codecs_are_known_by_their_names_and_bodies_may_be_packed() {
    for (kind, expected) in [
        ("application/proto", Some(Codec::Proto)),
        ("Application/JSON; charset=utf-8", Some(Codec::Json)),
        ("application/grpc", None),
        ("application/connect+proto", None),
        ("text/plain", None),
        ("", None),
    ] {
        let headers = asked("X", kind, Bytes::new()).headers;
        match expected {
            Some(codec) => assert_eq!(Codec::of(&headers), Ok(codec), "{kind}"),
            None => assert_eq!(Codec::of(&headers).unwrap_err().status, 415, "{kind}"),
        }
    }
    let headers = |packed: &'static str| HeaderMap::from_iter([(CONTENT_ENCODING, HeaderValue::from_static(packed))]);
    let gzip = |bytes: &[u8]| {
        let mut out = GzEncoder::new(Vec::new(), Compression::default());
        out.write_all(bytes).unwrap();
        Bytes::from(out.finish().unwrap())
    };
    assert_eq!(unpacked(&headers("gzip"), &gzip(b"abc")), Ok(Bytes::from_static(b"abc")));
    assert_eq!(unpacked(&headers("identity"), &Bytes::from_static(b"abc")), Ok(Bytes::from_static(b"abc")));
    assert_eq!(unpacked(&headers("gzip"), &gzip(&[b' '; MOST_BYTES])).unwrap().len(), MOST_BYTES);
    let large = gzip(&[b' '; MOST_BYTES + 1]);
    for (packed, body, status, code) in [
        ("gzip", large, 413, "resource_exhausted"),
        ("gzip", Bytes::from_static(b"abc"), 400, "invalid_argument"),
        ("zstd", Bytes::new(), 501, "unimplemented"),
    ] {
        let refusal = as_connect(unpacked(&headers(packed), &body).unwrap_err());
        assert_eq!((refusal.status.as_u16(), refusal.code), (status, code), "{packed}");
    }
}

proptest! {
    #[test]
    fn no_message_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..60), text in ".{0,60}", place in 0..CALLS.len()) {
        let method = CALLS[place].0.strip_prefix(SERVICE).unwrap();
        for (kind, body) in [
            (codec::PROTO, bytes),
            ("application/json", text.clone().into_bytes()),
            ("application/json", format!("{{\"profileTypeID\":\"a:b:c:d:e\",\"labelSelector\":{text:?},\"step\":1}}").into_bytes()),
        ] {
            if let Err(refusal) = question(&asked(method, kind, body), &terms()).unwrap() {
                prop_assert!(refusal.status.is_client_error() || refusal.status == 501, "{refusal:?}");
            }
        }
    }
}
