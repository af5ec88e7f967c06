//! Tests `mcp` of a bucket: its answers are what the command line says of it.

use std::path::Path;

use joular_tests::s3::S3;
use serde_json::{Value, json};

use crate::{
    mcp::{Transcript, as_printed, call, rows, sum},
    shipping::{done, recorded, with},
};

#[test]
fn a_bucket_answers_as_the_command_line_does() {
    let parent = tempfile::tempdir().unwrap();
    let data = recorded(parent.path());
    let server = S3::with_bucket("fleet").unwrap();
    let (environment, place) = (server.environment(), "s3://fleet/energy");
    let shipped = done(&with(&environment, &["ship", &data, place, "--json"]));
    // Recordings of tests are older than what may be asked for by itself.
    let since = "1970-01-02T00:00:00Z";
    let transcript = Transcript::begun_within(
        &environment,
        Path::new(place),
        vec![
            call(1, "top", &json!({ "by": ["method"], "top": 5, "view": "total", "from": since })),
            call(2, "services", &json!({ "from": since })),
            call(3, "audit", &json!({})),
        ],
    );
    let report = ["report", place, "--json", "--by", "method", "--top", "5", "--view", "total", "--since", since];
    let report = done(&with(&environment, &report));
    let top = transcript.found(1);
    assert_eq!((&top["audit"], &top["skipped"]), (&report["audit"], &json!([])));
    let found: Vec<Value> = rows(&top["tables"][0]["rows"]).iter().map(as_printed).collect();
    assert_eq!(json!(found), report["tables"][0]["rows"]);
    for table in rows(&transcript.found(2)["tables"]) {
        assert_eq!(sum(&table["rows"], "self_uj"), report["selection"]["energy_uj"].as_u64().unwrap(), "{table}");
    }
    let audit = transcript.found(3);
    let runs: Vec<Value> = rows(&audit["runs"]).iter().map(as_printed).collect();
    assert_eq!(
        (&json!(runs), &audit["is_well"]),
        (&done(&with(&environment, &["audit", place, "--json"])), &json!(true))
    );
    assert_eq!(Some(runs.len()), shipped["runs"].as_u64().and_then(|runs| usize::try_from(runs).ok()));
}
