//! Knows the paths: what each answers, and which parameters it has.

use joular_data::fleet::choice::View;
use percent_encoding::percent_decode_str;

pub use super::question::{Question, Work};
use super::{
    answer::{GZIP, HTML, JSON},
    api, compare, pages, pyroscope,
    question::Bounds,
    terms::{Reads, Terms},
};
use crate::query::{
    APP, BY, GROUP, MEASURE, NODES, ONE_BY, PER, Parameter, Part, Query, REFRESH, Refusal, SELECTION, TIER, TOP, VIEW,
};

/// What a path asks for.
pub struct Asking<'a> {
    pub path: &'a str,
    /// What stands in the path instead of `{name}`.
    pub name: &'a str,
    pub query: &'a Query,
    pub terms: &'a Terms,
    bounds: &'a Bounds<'a>,
}

impl Asking<'_> {
    pub fn part(&self) -> Result<Part, Refusal> {
        Ok(self.limited(self.query.part("", self.terms.now, self.bounds.stop())?))
    }

    /// What a query selects, read from where these views can be had.
    pub fn part_showing(&self, query: &Query, views: impl IntoIterator<Item = View>) -> Result<Part, Refusal> {
        Ok(self.limited(query.part_showing(views, self.terms.now, self.bounds.stop())?))
    }

    pub fn sides(&self) -> Result<[Part; 2], Refusal> {
        let sides = self.query.sides(self.terms.now, self.bounds.stop())?;
        Ok(sides.map(|side| self.limited(side)))
    }

    fn limited(&self, Part { filter, app }: Part) -> Part {
        Part { filter: self.bounds.limited(filter), app }
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
    pub reads: Reads,
    work: fn(&Asking<'_>) -> Result<Work, Refusal>,
}

type Parameters = &'static [&'static [Parameter]];

const PAGE: Parameters = &[SELECTION, &[APP, MEASURE, VIEW, REFRESH, TIER]];
const OF_PART: Parameters = &[SELECTION, &[APP]];
const OF_VALUES: Parameters = &[SELECTION, &[APP, TIER]];

const fn route(
    template: &'static str,
    about: &'static str,
    kind: &'static str,
    parameters: Parameters,
    work: fn(&Asking<'_>) -> Result<Work, Refusal>,
) -> Route {
    Route { template, about, kind, parameters, has_sides: false, reads: Reads::Parts, work }
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
    route("/api/v1/labels/{name}/values", "Values of a label, each with its energy", JSON, OF_VALUES, api::values),
    route(
        "/api/v1/top",
        "Tables, as joular-bpf report --json prints them",
        JSON,
        &[SELECTION, &[APP, BY, TOP, MEASURE, VIEW, TIER]],
        api::top,
    ),
    route("/api/v1/series", "Energy and power over time", JSON, &[SELECTION, &[APP, GROUP, TIER]], api::series),
    route("/api/v1/flame", "The call tree", JSON, &[SELECTION, &[APP, MEASURE, NODES, TIER]], api::flame),
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
    Route {
        reads: Reads::Rows,
        ..route("/api/v1/runs", "Runs, as joular-bpf runs --json prints them", JSON, &[], api::runs)
    },
    Route {
        reads: Reads::Everything,
        ..route("/api/v1/audit", "The audit of all runs, as joular-bpf audit --json prints it", JSON, &[], api::audit)
    },
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
/// If there is no such path, a parameter or its value does not fit, or whoever asks may not see what it is about.
pub fn question(path: &str, query: &str, terms: &Terms) -> Result<Question, Refusal> {
    let (route, name) = find(path).ok_or_else(Refusal::nowhere)?;
    let name = percent_decode_str(name).decode_utf8_lossy();
    let query = Query::parse(query, &route.parameters.concat(), route.has_sides)?;
    let bounds = Bounds::new(terms);
    let work = (route.work)(&Asking { path, name: &name, query: &query, terms, bounds: &bounds })?;
    let is_time = |name: &str| ["from", "until"].iter().any(|end| name.ends_with(end));
    let is_relative = query.pairs().any(|(name, value)| is_time(name) && value.starts_with("now"));
    bounds.question(&query.link(path), is_relative, route.reads, work)
}

#[cfg(test)]
mod tests {
    use joular_data::{
        model::units::UnixMicros,
        report::profile::{Access, Allowance},
    };

    use super::{super::terms::SPAN, *};
    use crate::config::Sight;

    fn terms(now: i64) -> Terms {
        Terms { now: UnixMicros(now), span: None, most_nodes: 100, sight: Sight::default() }
    }

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
            assert!(question(&path, "", &terms(1)).is_ok(), "{path}");
            let refusal = question(&path, "speed=1", &terms(1)).err().unwrap();
            assert_eq!(refusal.status, 400, "{path}");
            assert!(refusal.message.contains("'speed' is not a parameter here"), "{}", refusal.message);
        }
    }

    #[test]
    fn equal_questions_are_known_by_their_keys() {
        let key = |query: &str, now: i64| question("/api/v1/top", query, &terms(now)).unwrap().key;
        assert_eq!(key("service=a&host=b", 1), key("host=b&service=a", 2));
        assert_ne!(key("service=a", 1), key("service=b", 1));
        assert_ne!(key("from=now-1h", 1_000_000), key("from=now-1h", 2_000_000));
    }

    #[test]
    fn who_may_see_something_else_asks_another_question() {
        let key = |rules: &str| {
            let sight = Sight { key: rules.to_owned(), ..Sight::default() };
            question("/api/v1/top", "service=a", &Terms { sight, ..terms(1) }).unwrap().key
        };
        assert_eq!(key("rules 1"), key("rules 1"));
        assert!(key("rules 1") != key("rules 2") && key("rules 1") != key(""));
    }

    #[test]
    fn every_path_is_about_parts_that_the_terms_limit_or_about_the_whole() {
        let access = Access::of([Allowance::default()]);
        let limited = Terms { span: Some(SPAN), sight: Sight { access, key: "rules 0".to_owned() }, ..terms(1) };
        for route in ROUTES {
            let path = route.template.replace("{name}", "service");
            let asked = question(&path, "", &limited);
            if route.reads != Reads::Parts {
                assert_eq!(asked.err().unwrap().status, 403, "{path}");
                continue;
            }
            let asked = asked.unwrap_or_else(|refusal| panic!("{path}: {refusal:?}"));
            assert_eq!(asked.parts.len(), if route.has_sides { 2 } else { 1 }, "{path}");
            assert!(asked.parts.iter().all(|part| !part.access.is_everything() && part.since.is_some()), "{path}");
            assert!(asked.begin.is_some(), "{path}");
        }
    }
}
