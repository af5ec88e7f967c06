//! Reads and writes messages of JSON-RPC 2.0, as the Model Context Protocol has them: one a line, no batches.

use serde_json::{Map, Value, json};

/// Versions of the protocol, the newest first. Not 2025-03-26, which has batches.
pub const VERSIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2024-11-05"];

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    NotJson,
    NotARequest,
    NoSuchMethod,
    BadParameters,
}

impl Fault {
    /// As JSON-RPC has them.
    pub const fn code(self) -> i32 {
        match self {
            Self::NotJson => -32_700,
            Self::NotARequest => -32_600,
            Self::NoSuchMethod => -32_601,
            Self::BadParameters => -32_602,
        }
    }
}

/// The id of a request: a text or an integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Id(Value);

impl Id {
    pub fn of(value: &Value) -> Option<Self> {
        let is_id = value.is_string() || value.is_i64() || value.is_u64();
        is_id.then(|| Self(value.clone()))
    }
}

/// A message from a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    Request {
        id: Id,
        method: String,
        /// Empty if there are none.
        params: Map<String, Value>,
    },
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// To a request, of which none is sent.
    Answer,
}

/// What is answered to a message that is not one.
#[derive(Clone, Debug, PartialEq)]
pub struct Bad {
    pub id: Option<Id>,
    pub fault: Fault,
    pub message: &'static str,
}

impl Message {
    /// # Errors
    /// If the line is not a message.
    pub fn parse(line: &[u8]) -> Result<Self, Bad> {
        let bad = |id, fault, message| Err(Bad { id, fault, message });
        // Its depth is bounded: serde_json refuses more than 128 levels.
        let Ok(value) = serde_json::from_slice::<Value>(line) else {
            return bad(None, Fault::NotJson, "this line is not JSON");
        };
        let Value::Object(mut message) = value else {
            return bad(None, Fault::NotARequest, "a message is a JSON object, one a line, without batches");
        };
        let id = message.get("id").map(Id::of);
        let known = id.clone().flatten();
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return bad(known, Fault::NotARequest, "jsonrpc is not \"2.0\"");
        }
        let is_answer =
            !message.contains_key("method") && ["result", "error"].iter().any(|key| message.contains_key(*key));
        if is_answer {
            return Ok(Self::Answer);
        }
        let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else {
            return bad(known, Fault::NotARequest, "method is not a text");
        };
        let params = match message.remove("params") {
            None => Map::new(),
            Some(Value::Object(params)) => params,
            // Nobody waits for an answer.
            Some(_) if id.is_none() => Map::new(),
            Some(_) => return bad(known, Fault::BadParameters, "params is not an object"),
        };
        match id {
            None => Ok(Self::Notification { method, params }),
            Some(None) => bad(None, Fault::NotARequest, "id is not a text or an integer"),
            Some(Some(id)) => Ok(Self::Request { id, method, params }),
        }
    }
}

/// The newest version that both know: clients know all that are older than theirs. Without one, our newest.
pub fn agreed(wanted: &str) -> &'static str {
    // Versions are dates, so their order is that of their texts.
    let is_date =
        wanted.len() == "2025-11-25".len() && wanted.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    let [newest, ..] = VERSIONS;
    VERSIONS.into_iter().find(|version| is_date && *version <= wanted).unwrap_or(newest)
}

/// The line that answers a request.
pub fn result(id: &Id, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id.0, "result": result }).to_string()
}

/// The line that answers what cannot be done.
pub fn error(id: Option<&Id>, fault: Fault, message: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": id.map(|id| &id.0), "error": { "code": fault.code(), "message": message } })
        .to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_newest_version_that_both_know_is_agreed() {
        for (wanted, expected) in [
            ("2025-11-25", "2025-11-25"),
            ("2025-06-18", "2025-06-18"),
            ("2025-03-26", "2024-11-05"),
            ("2024-11-05", "2024-11-05"),
            ("2099-01-01", "2025-11-25"),
            ("2024-10-07", "2025-11-25"),
            ("latest", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(agreed(wanted), expected, "{wanted}");
        }
    }

    #[test]
    fn what_is_not_a_message_is_answered_with_its_id_if_it_has_one() {
        let one = Id::of(&json!(1));
        for (line, id, fault) in [
            ("", None, Fault::NotJson),
            ("{", None, Fault::NotJson),
            ("\u{feff}{}", None, Fault::NotJson),
            ("[]", None, Fault::NotARequest),
            ("7", None, Fault::NotARequest),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None, Fault::NotARequest),
            (r#"{"id":1,"method":"ping"}"#, one.clone(), Fault::NotARequest),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, one.clone(), Fault::NotARequest),
            (r#"{"jsonrpc":"2.0","id":1}"#, one.clone(), Fault::NotARequest),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, one.clone(), Fault::NotARequest),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None, Fault::NotARequest),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None, Fault::NotARequest),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, None, Fault::NotARequest),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#, one, Fault::BadParameters),
        ] {
            let bad = Message::parse(line.as_bytes()).unwrap_err();
            assert_eq!((bad.id, bad.fault), (id, fault), "{line}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(Message::parse(deep.as_bytes()).unwrap_err().fault, Fault::NotJson);
    }

    #[test]
    fn requests_have_an_id_and_notifications_none() {
        let parse = |line: &str| Message::parse(line.as_bytes()).unwrap();
        let request = parse(r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":1}}"#);
        let params = Map::from_iter([("x".to_owned(), json!(1))]);
        let id = Id::of(&json!("a")).unwrap();
        assert_eq!(request, Message::Request { id, method: "ping".to_owned(), params });
        for line in [r#"{"jsonrpc":"2.0","method":"x"}"#, r#"{"jsonrpc":"2.0","method":"x","params":[]}"#] {
            assert_eq!(parse(line), Message::Notification { method: "x".to_owned(), params: Map::new() });
        }
        assert_eq!(parse(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Message::Answer);
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _message = Message::parse(&line);
        }
    }
}
