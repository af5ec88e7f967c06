//! Compares two parts of the data set, for people and programs.

use joular_data::report::html::{Markup, ServedPage, served};

use super::{
    answer::{Answer, JSON},
    parts::{form, head},
    routes::{Asking, Work},
};
use crate::query::{Refusal, SIDES, comparison};

/// What each side can select. What is given without a side holds for both.
const FIELDS: [(&str, &str); 6] = [
    ("from", "From"),
    ("until", "Until"),
    ("service", "Service"),
    ("version", "Version"),
    ("host", "Host"),
    ("process", "Process"),
];

pub fn json(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let (sides, choices) = (asking.sides()?, comparison::choices(asking.query)?);
    Ok(Box::new(move |place| Ok(Answer { kind: JSON, body: comparison::read(place, &sides, &choices)?.into() })))
}

pub fn page(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let (sides, choices) = (asking.sides()?, comparison::choices(asking.query)?);
    let query = asking.query.clone();
    Ok(Box::new(move |place| {
        let head = head(&query);
        let legends = [(SIDES[0], "Left (A)"), (SIDES[1], "Right (B)")];
        let form = form("/compare", &query, &FIELDS, &legends);
        if !SIDES.iter().any(|side| query.has_any(side)) {
            let mut body = Markup::of("<h2>Compare two parts</h2>\n");
            body.add(&form).raw("<p class=\"note\">Say what is different on the left and on the right, such as a version or a time.</p>\n");
            let page = ServedPage {
                title: "Compare – joular-bpf",
                head: &head,
                body: &body,
                graph: None,
                after: &Markup::default(),
                is_refreshed: false,
            };
            return Ok(Answer::page(served(&page)));
        }
        let found = comparison::of(place, &sides, &choices)?;
        let [left, right] = &sides;
        let filters = [&left.filter, &right.filter];
        // The page has a header of its own.
        let mut before = Markup::of(
            "<a class=\"skip\" href=\"#rows\">Skip to the content</a>\n\
             <div class=\"pages\" role=\"region\" aria-label=\"joular-bpf\">\n<div class=\"bar\">\n",
        );
        before.add(&head).raw("</div>\n</div>\n<div class=\"before\">\n").add(&form).raw("</div>\n");
        Ok(Answer::page(found.served_page(&choices, filters, left.app.as_ref(), &before)?))
    }))
}
