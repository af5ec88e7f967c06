//! Describes the paths for programs, as OpenAPI 3.1 has it.

use serde_json::{Map, Value, json};

use super::{
    answer::Answer,
    routes::{ROUTES, Route},
};
use crate::query::{Parameter, Refusal, SELECTION, SIDES};

/// What is not described here.
const BESIDE: &str = "Beside these paths there is Pyroscope's query API for Grafana: POST /querier.v1.QuerierService/METHOD, \
    GET /pyroscope/render and GET /pyroscope/render-diff. docs/grafana.md says what is answered.";

/// # Errors
/// If it cannot be written, which does not happen in memory.
pub fn document() -> Result<Answer, Refusal> {
    let mut paths: Map<String, Value> =
        ROUTES.iter().map(|route| (route.template.to_owned(), json!({ "get": operation(route) }))).collect();
    for (path, about, kind) in [
        ("/livez", "Whether the server is there", "text/plain"),
        ("/readyz", "Whether there is a run; 503 if not", "text/plain"),
        ("/metrics", "What the server does, for Prometheus", "text/plain"),
        ("/openapi.json", "This description", "application/json"),
    ] {
        paths.insert(path.to_owned(), json!({ "get": { "summary": about, "responses": responses(kind) } }));
    }
    let error = json!({
        "type": "object",
        "required": ["code", "message"],
        "properties": { "code": { "type": "string" }, "message": { "type": "string" } },
    });
    Answer::json(&json!({
        "openapi": "3.1.0",
        "info": { "title": "joular-bpf serve", "version": env!("CARGO_PKG_VERSION"), "description": BESIDE },
        "paths": paths,
        "components": {
            "schemas": { "Error": error },
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    }))
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = route.parameters.iter().copied().flatten().map(|one| parameter("", one)).collect();
    if route.has_sides {
        parameters.extend(SIDES.iter().flat_map(|side| SELECTION.iter().map(move |one| parameter(side, one))));
    }
    if route.template.contains("{name}") {
        parameters.push(json!({ "name": "name", "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    json!({
        "summary": route.about,
        "parameters": parameters,
        "responses": responses(route.kind),
    })
}

fn parameter(side: &str, parameter: &Parameter) -> Value {
    json!({
        "name": format!("{side}{}", parameter.name),
        "in": "query",
        "description": parameter.about,
        "schema": parameter.schema(),
        "explode": parameter.is_list,
    })
}

fn responses(kind: &str) -> Value {
    let error = |about: &str| {
        let schema = json!({ "$ref": "#/components/schemas/Error" });
        json!({ "description": about, "content": { "application/json": { "schema": schema } } })
    };
    let kind = kind.split(';').next().unwrap_or(kind);
    json!({
        "200": { "description": "The answer", "content": { kind: {} } },
        "400": error("A parameter or its value does not fit; the message says what does"),
        "401": error("Nobody is known who asks: no token, or no name by the proxy"),
        "403": error("Whoever asks may not see this"),
        "404": error("There is nothing in the selection, or no such path"),
        "413": error("The question would read more than --scan allows: ask for less"),
        "503": error("Too many questions at once, or reading took too long: ask again later"),
    })
}
