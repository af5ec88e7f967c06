//! Knows counters of requests: of which names they are, and which of their labels make a route.

use std::borrow::Cow;

/// Stands for a request that the application has no route for.
const NO_ROUTE: &str = "[no route]";
/// Longer names of routes are cut.
const LONGEST_ROUTE_BYTES: usize = 300;

/// A counter of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestCounter {
    pub(super) name: String,
    /// The last one is the route proper.
    labels: Vec<String>,
    between: &'static str,
    /// Of counters of one kind, an application's requests are in each: only one of them counts.
    pub(super) kind: usize,
}

const HTTP: usize = 0;
const RPC: usize = 1;

/// Of each kind, the one that comes first is preferred: those of frameworks, then of agents; of answers, then of questions.
const KNOWN: [(usize, &str, &[&str]); 7] = [
    // Micrometer: Spring Boot, Quarkus, Micronaut.
    (HTTP, "http_server_requests_seconds_count", &["method", "uri"]),
    // OpenTelemetry, and before its conventions were stable.
    (HTTP, "http_server_request_duration_seconds_count", &["http_request_method", "http_route"]),
    (HTTP, "http_server_duration_milliseconds_count", &["http_method", "http_route"]),
    // grpc-ecosystem's libraries of all languages.
    (RPC, "grpc_server_handled_total", &["grpc_service", "grpc_method"]),
    (RPC, "grpc_server_started_total", &["grpc_service", "grpc_method"]),
    // OpenTelemetry, and before: its method has the service.
    (RPC, "rpc_server_call_duration_seconds_count", &["rpc_method"]),
    (RPC, "rpc_server_duration_milliseconds_count", &["rpc_service", "rpc_method"]),
];

impl RequestCounter {
    /// Those of common frameworks and agents.
    pub fn known() -> Vec<Self> {
        let known = |(kind, name, labels): (usize, &str, &[&str])| Self {
            name: name.to_owned(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            between: if kind == HTTP { " " } else { "/" },
            kind,
        };
        KNOWN.map(known).into()
    }

    /// Reads `NAME` or `NAME{LABEL,…}`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_name = |name: &str| {
            let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
            !name.is_empty() && name.bytes().all(is_of_name)
        };
        let (name, labels) = match text.split_once('{') {
            None => (text, Some(Vec::new())),
            Some((name, labels)) => {
                let labels = labels.strip_suffix('}').map(|labels| labels.split(',').map(str::trim).collect());
                (name, labels)
            }
        };
        let labels: Option<Vec<&str>> = labels.filter(|labels| labels.iter().all(|label| is_name(label)));
        match labels {
            Some(labels) if is_name(name) => Ok(Self {
                name: name.to_owned(),
                labels: labels.into_iter().map(ToOwned::to_owned).collect(),
                between: " ",
                kind: HTTP,
            }),
            _ => Err(format!(
                "'{}' is not a counter: write NAME or NAME{{LABEL,…}}, such as \
                 vertx_http_server_requests_total{{method,route}}",
                text.escape_debug()
            )),
        }
    }

    /// Takes only these, and all of them.
    #[must_use]
    pub fn each_of_its_kind(counters: Vec<Self>) -> Vec<Self> {
        counters.into_iter().enumerate().map(|(kind, counter)| Self { kind, ..counter }).collect()
    }

    /// `POST /orders/{id}`, `shop.Orders/Place`.
    pub(super) fn route(&self, labels: &[(&str, Cow<'_, str>)]) -> String {
        let Some((last, others)) = self.labels.split_last() else { return self.name.clone() };
        let value = |name: &String| {
            let found = labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.trim());
            found.filter(|value| !value.is_empty())
        };
        let mut parts: Vec<&str> = others.iter().filter_map(value).collect();
        parts.push(value(last).unwrap_or(NO_ROUTE));
        let mut route = parts.join(self.between);
        route.truncate(route.floor_char_boundary(LONGEST_ROUTE_BYTES));
        route
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_a_route() {
        let labels = |pairs: &[(&'static str, &'static str)]| -> Vec<(&'static str, Cow<'static, str>)> {
            pairs.iter().map(|(name, value)| (*name, Cow::Borrowed(*value))).collect()
        };
        let known = RequestCounter::known();
        let named = |name: &str| known.iter().find(|counter| counter.name == name).unwrap();
        let micrometer = named("http_server_requests_seconds_count");
        let found = micrometer.route(&labels(&[("status", "200"), ("uri", "/cart/{id}"), ("method", "GET")]));
        assert_eq!(found, "GET /cart/{id}");
        assert_eq!(micrometer.route(&labels(&[("uri", " /a ")])), "/a");
        let otel = named("http_server_request_duration_seconds_count");
        assert_eq!(otel.route(&labels(&[("http_request_method", "GET"), ("http_route", "")])), "GET [no route]");
        let grpc = named("grpc_server_handled_total");
        let found = grpc.route(&labels(&[("grpc_method", "Place"), ("grpc_service", "shop.Orders")]));
        assert_eq!(found, "shop.Orders/Place");
        let long = "ä".repeat(1000);
        assert_eq!(micrometer.route(&[("uri", Cow::Owned(long))]).len(), LONGEST_ROUTE_BYTES);
    }

    #[test]
    fn a_counter_of_somebody_has_a_name_and_maybe_labels() {
        let parsed = RequestCounter::parse("jobs_total{queue, kind}").unwrap();
        assert_eq!(
            (parsed.name.as_str(), parsed.labels.as_slice()),
            ("jobs_total", &["queue", "kind"].map(String::from)[..])
        );
        assert_eq!(RequestCounter::parse("jobs_total").unwrap().route(&[]), "jobs_total");
        for text in ["", "a b", "a{", "a{}", "a{b", "a{b}c", "a{b,}", "{a}", "a{b=\"c\"}"] {
            assert!(RequestCounter::parse(text).unwrap_err().contains("is not a counter"), "{text}");
        }
    }
}
