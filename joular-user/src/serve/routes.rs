//! Knows the paths: what each answers, and which parameters it has.

use std::path::Path;

use joular_data::{model::units::UnixMicros, report::profile::Stop};
use percent_encoding::percent_decode_str;

use super::{
    answer::{Answer, GZIP, HTML, JSON},
    api, compare, pages, pyroscope,
};
use crate::query::{
    APP, BY, GROUP, MEASURE, NODES, ONE_BY, PER, Parameter, Part, Query, REFRESH, Refusal, SELECTION, TOP, VIEW,
};

/// Reads a data set for an answer.
pub type Work = Box<dyn FnOnce(&Path) -> Result<Answer, Refusal> + Send>;

/// A question that is understood.
pub struct Question {
    /// Equal questions have equal keys.
    pub key: String,
    pub work: Work,
    pub stop: Stop,
}

/// What a path asks for.
pub struct Asking<'a> {
    pub path: &'a str,
    /// What stands in the path instead of `{name}`.
    pub name: &'a str,
    pub query: &'a Query,
    now: UnixMicros,
    stop: &'a Stop,
}

impl Asking<'_> {
    pub fn part(&self) -> Result<Part, Refusal> {
        self.part_of(self.query)
    }

    pub fn part_of(&self, query: &Query) -> Result<Part, Refusal> {
        query.part("", self.now, self.stop)
    }

    pub fn sides(&self) -> Result<[Part; 2], Refusal> {
        self.query.sides(self.now, self.stop)
    }
}

/// A path.
pub struct Route {
    /// A part in braces is anything.
    pub template: &'static str,
    pub about: &'static str,
    pub kind: &'static str,
    pub parameters: &'static [&'static [Parameter]],
    pub has_sides: bool,
    work: fn(&Asking<'_>) -> Result<Work, Refusal>,
}

type Parameters = &'static [&'static [Parameter]];

const PAGE: Parameters = &[SELECTION, &[APP, MEASURE, VIEW, REFRESH]];
const OF_PART: Parameters = &[SELECTION, &[APP]];

const fn route(
    template: &'static str,
    about: &'static str,
    kind: &'static str,
    parameters: Parameters,
    work: fn(&Asking<'_>) -> Result<Work, Refusal>,
) -> Route {
    Route { template, about, kind, parameters, has_sides: false, work }
}

/// All paths but those that need no data set, and Pyroscope's.
pub const ROUTES: &[Route] = &[
    route("/", "Page: services, or processes if there is one service", HTML, PAGE, pages::overview),
    route("/service/{name}", "Page: a service over time, its methods and flame graph", HTML, PAGE, pages::service),
    route("/part", "Page: the same of any part of the data set", HTML, PAGE, pages::part),
    Route {
        has_sides: true,
        ..route(
            "/compare",
            "Page: two parts of the data set side by side",
            HTML,
            &[SELECTION, &[APP, ONE_BY, VIEW, PER, MEASURE]],
            compare::page,
        )
    },
    route("/report.html", "Page: all about a part, as joular-bpf html makes it", HTML, OF_PART, pages::report),
    route("/api/v1/labels", "Names of what can be selected", JSON, OF_PART, api::labels),
    route("/api/v1/labels/{name}/values", "Values of a label, each with its energy", JSON, OF_PART, api::values),
    route(
        "/api/v1/top",
        "Tables, as joular-bpf report --json prints them",
        JSON,
        &[SELECTION, &[APP, BY, TOP, MEASURE, VIEW]],
        api::top,
    ),
    route("/api/v1/series", "Energy and power over time", JSON, &[SELECTION, &[APP, GROUP]], api::series),
    route("/api/v1/flame", "The call tree", JSON, &[SELECTION, &[APP, MEASURE, NODES]], api::flame),
    Route {
        has_sides: true,
        ..route(
            "/api/v1/diff",
            "A comparison, as joular-bpf diff --json prints it",
            JSON,
            &[SELECTION, &[APP, ONE_BY, VIEW, PER, MEASURE, TOP]],
            compare::json,
        )
    },
    route("/api/v1/runs", "Runs, as joular-bpf runs --json prints them", JSON, &[], api::runs),
    route("/api/v1/audit", "The audit of all runs, as joular-bpf audit --json prints it", JSON, &[], api::audit),
    route("/api/v1/pprof", "A profile, as joular-bpf export --format pprof writes it", GZIP, OF_PART, api::pprof),
];

/// The path's route, and what stands for the part in braces.
fn find(path: &str) -> Option<(&'static Route, &str)> {
    ROUTES.iter().find_map(|route| match route.template.split_once("{name}") {
        None => (route.template == path).then_some((route, "")),
        Some((before, after)) => {
            let name = path.strip_prefix(before)?.strip_suffix(after)?;
            (!name.is_empty() && !name.contains('/')).then_some((route, name))
        }
    })
}

/// What metrics call a path.
pub fn name_of(path: &str) -> &'static str {
    let known = find(path).map(|(route, _)| route.template);
    known.or_else(|| pyroscope::name_of(path)).unwrap_or("other")
}

/// Understands a question.
///
/// # Errors
/// If there is no such path, or a parameter or its value does not fit.
pub fn question(path: &str, query: &str, now: UnixMicros) -> Result<Question, Refusal> {
    let (route, name) = find(path).ok_or_else(Refusal::nowhere)?;
    let name = percent_decode_str(name).decode_utf8_lossy();
    let query = Query::parse(query, &route.parameters.concat(), route.has_sides)?;
    let stop = Stop::default();
    let asking = Asking { path, name: &name, query: &query, now, stop: &stop };
    let work = (route.work)(&asking)?;
    // Where time is relative, the moment is part of the question.
    let is_time = |name: &str| ["from", "until"].iter().any(|end| name.ends_with(end));
    let is_relative = query.pairs().any(|(name, value)| is_time(name) && value.starts_with("now"));
    let moment = if is_relative { now.0 } else { 0 };
    Ok(Question { key: format!("{}#{moment}", query.link(path)), work, stop })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMicros = UnixMicros(1_772_409_600_000_000);

    #[test]
    fn paths_are_found_whole() {
        for (path, expected) in [
            ("/", Some(("/", ""))),
            ("/service/shop", Some(("/service/{name}", "shop"))),
            ("/service/a%2Fb", Some(("/service/{name}", "a%2Fb"))),
            ("/api/v1/labels/host/values", Some(("/api/v1/labels/{name}/values", "host"))),
            ("/service/", None),
            ("/service/a/b", None),
            ("/api/v1/labels//values", None),
            ("/api/v1/top/", None),
            ("//", None),
            ("/../etc/passwd", None),
        ] {
            assert_eq!(find(path).map(|(route, name)| (route.template, name)), expected, "{path}");
        }
    }

    #[test]
    fn every_path_refuses_what_it_does_not_know() {
        for route in ROUTES {
            let path = route.template.replace("{name}", "service");
            assert!(question(&path, "", NOW).is_ok(), "{path}");
            let refusal = question(&path, "speed=1", NOW).err().unwrap();
            assert_eq!(refusal.status, 400, "{path}");
            assert!(refusal.message.contains("'speed' is not a parameter here"), "{}", refusal.message);
        }
    }

    #[test]
    fn equal_questions_are_known_by_their_keys() {
        let key = |query: &str, now: i64| question("/api/v1/top", query, UnixMicros(now)).unwrap().key;
        assert_eq!(key("service=a&host=b", 1), key("host=b&service=a", 2));
        assert_ne!(key("service=a", 1), key("service=b", 1));
        assert_ne!(key("from=now-1h", 1_000_000), key("from=now-1h", 2_000_000));
    }
}
