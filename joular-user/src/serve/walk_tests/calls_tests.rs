//! Walks over Pyroscope's calls in the same way.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    super::pyroscope::{body_bytes, paths},
    ANN, CID, SECRET, SRE, Served,
};
use crate::query::encoded;

const ENERGY: &str = "joular:energy:microjoules:cpu:nanoseconds";
const CPU: &str = "joular:cpu:nanoseconds:cpu:nanoseconds";

/// None of them has a secret name, because refusals repeat what was asked.
const SELECTORS: [&str; 7] = [
    "{}",
    r#"{service_name=~"pay.*"}"#,
    r#"{service_name!="shop"}"#,
    r#"{host=~"pay.*",namespace!=""}"#,
    r#"{pod=~"p.*|s.*",jvm_part="java"}"#,
    r#"{nobody=""}"#,
    r#"{jvm_part!~".*"}"#,
];

const LABELS: [&str; 11] = [
    "service_name",
    "service_version",
    "host",
    "comm",
    "container",
    "namespace",
    "pod",
    "jvm_part",
    "app",
    "shop_team",
    "__profile_type__",
];

/// A question: its path, and what is posted and how.
struct Asked {
    path: String,
    posted: Option<(&'static str, Vec<u8>)>,
}

impl Served {
    fn call(&self, Asked { path, posted }: &Asked, who: &str) -> (u16, String) {
        let Some((kind, body)) = posted else { return self.get(path, who) };
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{who}\r\n\r\n",
            body.len()
        );
        self.ask(&[head.as_bytes(), body].concat())
    }

    /// What a flame graph has in all.
    fn drawn(&self, selector: &str, who: &str) -> u64 {
        let message = json!({ "profileTypeID": ENERGY, "labelSelector": selector });
        let path = "/querier.v1.QuerierService/SelectMergeStacktraces".to_owned();
        let (status, body) = self.call(&in_json(&path, &message), who);
        assert_eq!(status, 200, "{selector}: {body}");
        let found: Value = serde_json::from_str(&body).unwrap();
        found["flamegraph"]["total"].as_str().unwrap().parse().unwrap()
    }
}

fn in_json(path: &str, message: &Value) -> Asked {
    Asked { path: path.to_owned(), posted: Some(("application/json", message.to_string().into_bytes())) }
}

/// A message whose first two fields are a type of profiles and a selector.
fn in_proto(path: &str, selector: &str) -> Asked {
    let field = |tag: u8, text: &str| [&[tag, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    let body = [field(0x0a, ENERGY), field(0x12, selector)].concat();
    Asked { path: path.to_owned(), posted: Some(("application/proto", body)) }
}

/// Questions of a path. Each message has all fields, since each call takes those that it knows.
fn questions(path: &'static str) -> Vec<Asked> {
    let of_selector = |selector: &'static str| {
        if body_bytes(path).is_none() {
            let query = |kind: &str| encoded(&format!("{kind}{selector}"));
            let (energy, cpu) = (query(ENERGY), query(CPU));
            let asked = |left: &str, right: &str| Asked {
                path: format!("{path}?query={left}&leftQuery={left}&rightQuery={right}"),
                posted: None,
            };
            return vec![asked(&energy, &query(ENERGY)), asked(&cpu, &cpu)];
        }
        let message = |kind: &str, name: &str| {
            let side = |selector: &str| json!({ "profileTypeID": kind, "labelSelector": selector });
            json!({
                "profileTypeID": kind, "labelSelector": selector, "matchers": [selector], "name": name,
                "step": 1, "groupBy": LABELS, "left": side("{service_name=\"shop\"}"), "right": side(selector),
            })
        };
        let mut asked = vec![in_json(path, &message(CPU, "host"))];
        match path.rsplit('/').next() {
            Some("LabelValues") => asked.extend(LABELS.map(|name| in_json(path, &message(ENERGY, name)))),
            Some("SelectMergeProfile" | "SelectMergeStacktraces") => {
                asked.extend([in_json(path, &message(ENERGY, "")), in_proto(path, selector)]);
            }
            _ => asked.push(in_json(path, &message(ENERGY, "host"))),
        }
        asked
    };
    SELECTORS.into_iter().flat_map(of_selector).collect()
}

#[test]
fn no_answer_of_a_call_has_a_name_of_what_may_not_be_seen() {
    let served = Served::new();
    let mut with_secrets = BTreeSet::new();
    for path in paths() {
        for asked in questions(path) {
            let shown = || {
                let body = asked.posted.as_ref().map(|(_, body)| String::from_utf8_lossy(body));
                format!("{} {}", asked.path, body.unwrap_or_default())
            };
            // Whoever may see all asks first, so what is kept is there to be mistaken for an answer.
            let (status, all) = served.call(&asked, SRE);
            assert!([200, 404, 501].contains(&status), "{}: {status} {all}", shown());
            if all.contains(SECRET) {
                with_secrets.insert(path);
            }
            let (of_part, part) = served.call(&asked, ANN);
            let is_as_meant = of_part == status || (status, of_part) == (200, 404);
            assert!(is_as_meant, "{}: {status} {of_part} {part}", shown());
            let around = part.find(SECRET).map(|at| part.get(at.saturating_sub(200)..at + 50).unwrap_or_default());
            assert_eq!(around, None, "{}", shown());
            let (of_nobody, nothing) = served.call(&asked, CID);
            let is_refused = of_nobody == if status == 501 { 501 } else { 403 };
            assert!(is_refused && !nothing.contains(SECRET), "{}: {of_nobody} {nothing}", shown());
        }
    }
    // What is looked for is there to be found, in all that have names.
    let nameless = ["ProfileTypes", "GetProfileStats", "SelectMergeSpanProfile", "SelectHeatmap"];
    let named = paths().filter(|path| !nameless.iter().any(|name| path.ends_with(name)));
    assert_eq!(with_secrets, named.collect());
}

#[test]
fn what_may_be_seen_is_drawn_whole() {
    let served = Served::new();
    let (all, shop) = (served.drawn("{}", SRE), served.drawn(r#"{service_name="shop"}"#, SRE));
    assert!(shop > 0 && shop < all);
    for selector in ["{}", r#"{service_name!="moon"}"#, r#"{service_name="shop"}"#, r#"{host="node-1"}"#] {
        assert_eq!(served.drawn(selector, ANN), shop, "{selector}");
    }
    for selector in [r#"{service_name=~"pay.*"}"#, r#"{host=~"pay.*"}"#, r#"{service_name!="shop"}"#] {
        assert_eq!(served.drawn(selector, ANN), 0, "{selector}");
        assert!(served.drawn(selector, SRE) > 0, "{selector}");
    }
}
