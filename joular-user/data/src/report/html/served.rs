//! Makes pages of a server: markup that the server made, and below it a flame graph if there is one.

use super::{document, markup::Markup};
use crate::report::{flamegraph, measure::Measure, profile::Profile};

/// What a page of a server has.
#[derive(Clone, Copy, Debug)]
pub struct ServedPage<'a> {
    pub title: &'a str,
    /// Stands in the page's head.
    pub head: &'a Markup,
    pub body: &'a Markup,
    /// What a flame graph is drawn of, if there is any of the measure.
    pub graph: Option<(&'a Profile, Measure)>,
    /// Stands below the flame graph.
    pub after: &'a Markup,
    /// Whether the page asks for itself again every minute.
    pub is_refreshed: bool,
}

/// The page. It loads nothing from elsewhere, and its forms lead to where it is from.
pub fn served(page: &ServedPage<'_>) -> Vec<u8> {
    let mut title = Markup::default();
    title.text(page.title);
    let refresh = if page.is_refreshed { " data-refresh=\"60\"" } else { "" };
    let mut places = vec![
        ("title-text", title.as_str()),
        ("head", page.head.as_str()),
        ("body", page.body.as_str()),
        ("after", page.after.as_str()),
        ("refresh", refresh),
    ];
    match page.graph.and_then(|(profile, measure)| flamegraph::page::figures_of(profile, measure)) {
        Some(figures) => {
            places.push(("flame", document::FLAME_SECTION));
            document::page_with(&document::SERVED_GRAPH, &figures, &places)
        }
        None => {
            places.push(("flame", ""));
            document::page_with(&document::SERVED, &(), &places)
        }
    }
}
