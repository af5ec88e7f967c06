//! Answers scrapes and probes.

use std::{future::ready, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{ACCEPT, HeaderMap},
};

use super::format::prometheus_text;
use crate::output::http::{Answering, Answers, Asked, Limits, PLAIN, response, unauthorised};

/// A few connections, each for a few seconds.
pub(super) const LIMITS: Limits = Limits {
    header_time: Duration::from_secs(2),
    connection_time: Duration::from_secs(10),
    header_bytes: 16 * 1024,
    connections: 64,
    connections_of_address: 8,
};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What there is to be served.
pub trait Served: Send + Sync {
    /// The text that a scrape gets.
    fn metrics(&self) -> String;

    /// Whether windows end as they should, and a line that says so.
    fn is_alive(&self) -> (bool, String);

    /// Whether there are figures, and a line that says so.
    fn is_ready(&self) -> (bool, String);
}

/// Who answers for metrics.
pub(super) struct Scrapes<S>(pub(super) S);

impl<S: Served> Answers for Scrapes<S> {
    fn answer(self: Arc<Self>, asked: Asked) -> Answering {
        Box::pin(ready(answer(asked.uri.path(), &asked.headers, asked.is_allowed, &self.0)))
    }
}

fn answer(path: &str, headers: &HeaderMap, is_allowed: bool, served: &dyn Served) -> Response<Full<Bytes>> {
    match path {
        "/health" | "/-/healthy" => response(StatusCode::OK, PLAIN, "ok\n"),
        "/livez" => probe(served.is_alive()),
        "/readyz" => probe(served.is_ready()),
        "/" => response(StatusCode::OK, PLAIN, "joular-bpf: metrics are at /metrics\n"),
        "/metrics" if !is_allowed => unauthorised(),
        "/metrics" => exposed(headers, served.metrics()),
        _ => response(StatusCode::NOT_FOUND, PLAIN, "metrics are at /metrics\n"),
    }
}

/// OpenMetrics as it is, or in the older format if the client does not take it.
pub fn exposed(headers: &HeaderMap, open_metrics: String) -> Response<Full<Bytes>> {
    if takes_open_metrics(headers) {
        return response(StatusCode::OK, OPEN_METRICS, open_metrics);
    }
    response(StatusCode::OK, PROMETHEUS, prometheus_text(&open_metrics))
}

fn probe((is_well, text): (bool, String)) -> Response<Full<Bytes>> {
    let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    response(status, PLAIN, text + "\n")
}

/// Whether a scraper names OpenMetrics 1.0 among what it takes, and does not refuse it.
fn takes_open_metrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/openmetrics-text"));
        is_named
            && parts.all(|part| match part.split_once('=') {
                Some(("q", weight)) => weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0),
                Some(("version", version)) => version == "1.0.0",
                _ => true,
            })
    })
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
