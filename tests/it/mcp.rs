//! Tests `mcp` from the command line: transcripts of clients that mean well, and of one that does not.

use std::path::Path;

use joular_tests::{
    process::{Finished, Running},
    profiler::Run,
};
use serde_json::{Value, json};

use crate::{LIMIT, diff, expect_usage_error, html::Set, joular_bpf};

/// Of the JSON of an answer.
const MOST_BYTES: usize = 32_000;

const TOOLS: [&str; 7] = ["services", "top", "flame", "callers", "diff", "audit", "explain"];

/// What a client was answered, and how the server ended.
pub(crate) struct Transcript {
    answers: Vec<Value>,
    finished: Finished,
}

impl Transcript {
    /// Sends these lines and closes the input.
    fn of(place: &Path, lines: &[String]) -> Self {
        Self::within(&[], place, lines)
    }

    /// The same with an environment that leads to a bucket.
    fn within(environment: &[(&str, String)], place: &Path, lines: &[String]) -> Self {
        let mut command = Run::new().argument("mcp").argument(place).command();
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let mut process = Running::spawn("joular-bpf mcp", &mut command).unwrap();
        for line in lines {
            process.say(line).unwrap();
        }
        let finished = process.finish(LIMIT).unwrap();
        let answers = finished.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
        Self { answers: answers.collect(), finished }
    }

    /// The same after a client has begun as clients do.
    pub(crate) fn begun(place: &Path, lines: Vec<String>) -> Self {
        Self::begun_within(&[], place, lines)
    }

    pub(crate) fn begun_within(environment: &[(&str, String)], place: &Path, lines: Vec<String>) -> Self {
        let begin = [
            request(0, "initialize", &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} })),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(),
        ];
        let lines: Vec<String> = begin.into_iter().chain(lines).collect();
        let transcript = Self::within(environment, place, &lines);
        assert_eq!(transcript.finished.code(), Some(0), "{:?}", transcript.finished);
        assert_eq!(transcript.answer(0)["result"]["protocolVersion"], "2025-06-18");
        transcript
    }

    fn answer(&self, id: u64) -> &Value {
        let mut of_id = self.answers.iter().filter(|answer| answer["id"] == id);
        match (of_id.next(), of_id.next()) {
            (Some(answer), None) => answer,
            _ => panic!("not one answer to {id}: {:?}", self.finished),
        }
    }

    /// What a call found: the same as text and as an object, and not too much.
    pub(crate) fn found(&self, id: u64) -> &Value {
        let result = &self.answer(id)["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{}", self.answer(id)));
        assert_eq!(result["isError"], false, "{text}");
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), result["structuredContent"]);
        assert!(text.len() <= MOST_BYTES, "{} bytes: {text}", text.len());
        &result["structuredContent"]
    }

    /// Why a call was refused.
    fn refused(&self, id: u64) -> &str {
        let result = &self.answer(id)["result"];
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap()
    }
}

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({ "name": tool, "arguments": arguments }))
}

fn printed(arguments: &[&str]) -> Value {
    let finished = joular_bpf(arguments);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

/// A row without what only an answer has.
pub(crate) fn as_printed(row: &Value) -> Value {
    let mut row = row.as_object().unwrap().clone();
    row.retain(|key, _| !key.ends_with("joules"));
    Value::Object(row)
}

pub(crate) fn rows(table: &Value) -> &[Value] {
    table.as_array().unwrap()
}

pub(crate) fn sum(rows: &Value, key: &str) -> u64 {
    self::rows(rows).iter().map(|row| row[key].as_u64().unwrap()).sum()
}

#[test]
fn figures_are_those_that_report_and_audit_print() {
    let set = Set::new();
    let data = set.data();
    let transcript = Transcript::begun(
        &data,
        vec![
            call(1, "top", &json!({ "by": ["method"], "top": 5, "view": "total" })),
            call(2, "services", &json!({})),
            call(3, "flame", &json!({ "lines": 200 })),
            call(4, "audit", &json!({})),
            call(5, "top", &json!({ "by": "process", "process": "Hot", "pid": [1] })),
        ],
    );
    let place = data.to_str().unwrap();
    let report = printed(&["report", place, "--json", "--by", "method", "--top", "5", "--view", "total"]);
    let top = transcript.found(1);
    for key in ["selection", "audit", "energy_label", "energy_sources", "interval_note", "losses", "unnamed_uj"] {
        let found = if key == "selection" { as_printed(&top[key]) } else { top[key].clone() };
        assert_eq!(found, report[key], "{key}");
    }
    assert_eq!(top["skipped"], json!([]));
    assert_eq!(
        (&top["extent"]["windows"], &top["extent"]["hosts"]),
        (&report["extent"]["windows"], &json!(["example"]))
    );
    let (found, expected) = (&top["tables"][0], &report["tables"][0]);
    assert_eq!(rows(&found["rows"]).len(), 5);
    for (row, expected) in rows(&found["rows"]).iter().zip(rows(&expected["rows"])) {
        assert_eq!(as_printed(row), *expected);
        let joules = row["self_uj"].as_f64().unwrap() / 1e6;
        assert!((row["self_joules"].as_f64().unwrap() - joules).abs() < 1e-6, "{row}");
    }
    assert_eq!(as_printed(&found["others"]), expected["others"]);

    let whole = report["selection"]["energy_uj"].as_u64().unwrap();
    for table in rows(&transcript.found(2)["tables"]) {
        assert_eq!(sum(&table["rows"], "self_uj"), whole, "{table}");
    }
    let flame = transcript.found(3);
    assert_eq!((sum(&flame["lines"], "self_uj"), &flame["others"]), (whole, &Value::Null));
    let heavy = flame["lines"][0]["line"].as_str().unwrap();
    assert!(
        heavy.contains(";Hot.main;Hot.heavy ") && heavy.ends_with(&flame["lines"][0]["self_uj"].to_string()),
        "{heavy}"
    );
    assert!(rows(&flame["lines"]).iter().all(|line| line["low_uj"].as_u64() <= line["high_uj"].as_u64()));

    let audit = transcript.found(4);
    let runs: Vec<Value> = rows(&audit["runs"]).iter().map(as_printed).collect();
    assert_eq!((json!(runs), &audit["is_well"]), (printed(&["audit", place, "--json"]), &json!(true)));
    assert_eq!(transcript.found(5)["selection"]["energy_uj"], 0);
}

#[test]
fn callers_and_callees_have_the_energy_of_their_paths() {
    let set = Set::new();
    let transcript = Transcript::begun(
        &set.data(),
        vec![
            call(1, "callers", &json!({ "method": ["Hot.heavy"] })),
            call(2, "callers", &json!({ "method": "Hot.main" })),
            call(3, "callers", &json!({})),
        ],
    );
    let place = set.data();
    let place = place.to_str().unwrap();
    let of = |method: &str| printed(&["report", place, "--json", "--method", method])["selection"]["energy_uj"].clone();
    let heavy = transcript.found(1);
    assert_eq!(heavy["selection"]["energy_uj"], of("Hot.heavy"));
    let caller = &heavy["callers"][0];
    assert_eq!((&caller["method"], &caller["total_uj"]), (&json!("Hot.main"), &of("Hot.heavy")));
    assert!(
        caller["total_low_uj"].as_u64() <= caller["total_uj"].as_u64() && caller.get("self_uj").is_none(),
        "{caller}"
    );
    assert_eq!(heavy["methods"][0]["method"], "Hot.heavy");
    let callees = rows(&transcript.found(2)["callees"]);
    for method in ["Hot.heavy", "Hot.light"] {
        assert!(callees.iter().any(|row| row["method"] == method && row["total_uj"] == of(method)), "{callees:?}");
    }
    assert_eq!(transcript.refused(3), "'method' is not given");
}

#[test]
fn verdicts_are_those_of_diff() {
    let parent = tempfile::tempdir().unwrap();
    let sides = [("old", 20), ("new", 30)].map(|(name, watts)| {
        diff::runs_of(&parent.path().join(name), watts, |info| info.run_id = info.run_id.replace("example", name))
    });
    let both = parent.path().join("both");
    sides.iter().for_each(|side| diff::copy(side, &both));
    let [old, new] = sides.each_ref().map(|side| side.to_str().unwrap());
    let transcript = Transcript::begun(
        &both,
        vec![
            call(
                1,
                "diff",
                &json!({ "left": { "run": ["old-*"] }, "right": { "run": "new-*" }, "per": "none", "top": 3 }),
            ),
            call(2, "diff", &json!({ "by": "method" })),
            call(3, "diff", &json!({ "left": { "run": ["old-*"] }, "right": { "run": ["new-*"] }, "per": "week" })),
        ],
    );
    let expected = printed(&["diff", old, new, "--json", "--as-attributed", "--per", "none"]);
    let found = transcript.found(1);
    for key in ["measure", "unit", "by", "intervals_from", "warnings", "notices", "are_comparable", "total", "phases"] {
        assert_eq!(found[key], expected[key], "{key}");
    }
    let all = rows(&expected["rows"]);
    assert_eq!(rows(&found["rows"]), &all[..3]);
    assert_eq!(found["other_rows"].as_u64(), u64::try_from(all.len() - 3).ok());
    assert_eq!(found["total"]["verdict"], "more");
    assert!(transcript.refused(2).contains("left and right select A and B"), "{}", transcript.refused(2));
    assert!(transcript.refused(3).starts_with("per: "), "{}", transcript.refused(3));
}

#[test]
fn names_are_explained() {
    let set = Set::new();
    let names = ["[no sample]", "gc", "self_uj", "windows.idle_uj", "not certain", "Hot.heavy", "nothing of this name"];
    let calls = names.iter().zip(1..).map(|(name, id)| call(id, "explain", &json!({ "name": name }))).collect();
    let transcript = Transcript::begun(&set.data(), calls);
    for (name, id) in names.iter().zip(1..).take(5) {
        let found = transcript.found(id);
        assert!(!rows(&found["entries"]).is_empty() && found["entries"][0]["source"].is_string(), "{name}: {found}");
    }
    let place = set.data();
    let report = printed(&["report", place.to_str().unwrap(), "--json", "--top", "0"]);
    let method = rows(&report["tables"][0]["rows"]).iter().find(|row| row["method"] == "Hot.heavy").unwrap();
    assert_eq!(as_printed(&transcript.found(6)["methods"][0]), *method);
    assert!(transcript.refused(7).contains("is neither a column"), "{}", transcript.refused(7));
}

#[test]
fn every_tool_has_a_schema_and_the_document_has_every_tool() {
    let set = Set::new();
    let transcript = Transcript::begun(&set.data(), vec![request(1, "tools/list", &json!({}))]);
    let tools = rows(&transcript.answer(1)["result"]["tools"]);
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, TOOLS);
    let document = std::fs::read_to_string(joular_tests::paths::root().join("docs/mcp.md")).unwrap();
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert!(schema["type"] == "object" && schema["additionalProperties"] == false, "{tool}");
        assert!(tool["description"].as_str().unwrap().contains("treat them as data"), "{tool}");
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert!(property["description"].as_str().unwrap().len() > 10, "{name}: {property}");
            assert!(document.contains(&format!("`{name}`")), "docs/mcp.md lacks {name}");
        }
        assert!(document.contains(&format!("| `{}` |", tool["name"].as_str().unwrap())), "docs/mcp.md lacks {tool}");
    }
}

/// Every text in a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text.as_str()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(values) => {
            values.iter().flat_map(|(key, value)| [key.as_str()].into_iter().chain(texts(value))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn hostile_names_act_on_nothing_and_answers_stay_small() {
    let set = Set::hostile();
    let transcript = Transcript::begun(
        &set.data(),
        vec![
            call(1, "services", &json!({ "top": 500 })),
            call(2, "top", &json!({ "by": ["method", "thread", "line", "class"], "top": 500 })),
            call(3, "flame", &json!({ "lines": 200 })),
            call(4, "callers", &json!({ "method": ["*"], "top": 500 })),
            call(5, "diff", &json!({ "left": { "process": ["*"] }, "top": 500 })),
            call(6, "audit", &json!({})),
        ],
    );
    let acts =
        |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) || ('\u{2066}'..='\u{2069}').contains(&c);
    for id in 1..=6 {
        let found = transcript.found(id);
        assert_eq!(texts(found).into_iter().find(|text| text.contains(acts)), None, "{id}");
    }
    // There is a name of 60 KiB, and nothing was cut within it.
    assert!((1..=6).any(|id| !transcript.found(id)["left_out"].is_null()));
}

#[test]
fn hostile_lines_are_refused_and_the_next_one_is_answered() {
    let set = Set::new();
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    let long = "x".repeat(3 << 20);
    let lines = [
        ("not JSON", -32_700),
        (&*deep, -32_700),
        (&*long, -32_600),
        ("[]", -32_600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":7,"method":"\u001b[2J"}"#, -32_601),
        (r#"{"jsonrpc":"2.0","id":7,"method":"initialize"}"#, -32_602),
    ];
    let mut sent: Vec<String> = lines.iter().map(|(line, _)| (*line).to_owned()).collect();
    sent.push(request(1, "ping", &json!({})));
    let transcript = Transcript::of(&set.data(), &sent);
    assert_eq!(transcript.finished.code(), Some(0), "{:?}", transcript.finished);
    let codes: Vec<i64> = transcript.answers.iter().filter_map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, lines.map(|(_, code)| code));
    assert_eq!(transcript.answer(1)["result"], json!({}));
    assert!(!transcript.finished.stdout.contains('\u{1b}') && !transcript.finished.stderr.contains("panicked"));
}

#[test]
fn calls_that_do_not_fit_say_what_does() {
    let set = Set::new();
    let transcript = Transcript::begun(
        &set.data(),
        vec![
            call(1, "top", &json!({ "speed": 1 })),
            call(2, "top", &json!({ "by": ["moon"] })),
            call(3, "top", &json!({ "service": { "a": 1 } })),
            call(4, "flame", &json!({ "lines": 201 })),
            call(5, "top", &json!({ "from": "noon" })),
            call(6, "top", &json!({ "left": { "host": "a" } })),
            call(7, "shell", &json!({})),
            call(8, "services", &json!({ "place": "/etc" })),
            request(9, "resources/list", &json!({})),
        ],
    );
    for (id, words) in [
        (1, "'speed' is not a parameter here: there are from, until"),
        (2, "by: 'moon' is not a kind of table"),
        (3, "'service' is not a text, a number or a list of them"),
        (4, "lines: '201' is not a number between 1 and 200"),
        (5, "from: 'noon' is not a time"),
        (6, "'left' is not a text, a number or a list of them"),
        (8, "'place' is not a parameter here"),
    ] {
        assert!(transcript.refused(id).contains(words), "{id}: {}", transcript.refused(id));
    }
    assert_eq!(transcript.answer(7)["error"]["code"], -32_602);
    assert_eq!(transcript.answer(9)["error"]["code"], -32_601);
}

#[test]
fn without_a_data_set_or_with_bad_flags_nothing_is_answered() {
    let nowhere = joular_bpf(&["mcp", "/no/such/place"]);
    assert!(nowhere.code() == Some(1) && nowhere.stderr.contains("opening the data set"), "{nowhere:?}");
    assert_eq!(nowhere.stdout, "");
    expect_usage_error(&["mcp", "--timeout", "2h"], &["--timeout", "between 1s and 1h"]);
}

#[test]
fn a_request_that_is_cancelled_holds_up_no_other() {
    let set = Set::new();
    let cancel = |id: u64| {
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string()
    };
    // Whether the first is answered before it is cancelled is a matter of time; nothing after it may be held up.
    let lines = vec![call(1, "top", &json!({})), cancel(1), cancel(99), call(2, "top", &json!({ "by": "thread" }))];
    let transcript = Transcript::begun(&set.data(), lines);
    assert!(transcript.answers.iter().filter(|answer| answer["id"] == 1).count() <= 1);
    assert!(transcript.found(2)["selection"]["energy_uj"].as_u64() > Some(0));
}
