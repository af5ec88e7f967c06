//! Compares two parts of the data set, for people and programs.

use joular_data::report::{
    diff::{self, Choices},
    html::{Markup, ServedPage, served},
};

use super::{
    answer::{Answer, Refusal},
    parts::{form, head},
    query::{Query, SIDES},
    routes::{Asking, Work},
};
use crate::{cli::DiffFlags, config};

/// What each side can select. What is given without a side holds for both.
const FIELDS: [(&str, &str); 6] = [
    ("from", "From"),
    ("until", "Until"),
    ("service", "Service"),
    ("version", "Version"),
    ("host", "Host"),
    ("process", "Process"),
];

/// Choices as `diff` has them.
fn choices(query: &Query) -> Result<Choices, Refusal> {
    const MOST_ROWS: usize = 1_000_000;
    let text = |name: &str| query.one(name).map(str::to_owned);
    let top = query.one("top").map(|_| query.number("top", 0..=MOST_ROWS, 0)).transpose()?;
    if query.one("per") == Some("request") {
        return Err(Refusal::bad("per: 'request' is not one of time, cpu, run, none".to_owned()));
    }
    let flags = DiffFlags {
        measure: text("measure"),
        by: text("by"),
        view: text("view"),
        per: text("per"),
        top,
        as_attributed: true,
        json: true,
        ..DiffFlags::default()
    };
    Ok(config::diff_choices(&flags)?)
}

pub fn json(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let (sides, choices) = (asking.sides()?, choices(asking.query)?);
    Ok(Box::new(move |place| {
        let [left, right] = &sides;
        let found = diff::run_parts(place, [&left.filter, &right.filter], left.app.as_ref(), &choices)?;
        Answer::written(|out| found.write(&choices, None, out))
    }))
}

pub fn page(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let (sides, choices) = (asking.sides()?, choices(asking.query)?);
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
        let [left, right] = &sides;
        let filters = [&left.filter, &right.filter];
        let found = diff::run_parts(place, filters, left.app.as_ref(), &choices)?;
        // The page has a header of its own.
        let mut before = Markup::of(
            "<a class=\"skip\" href=\"#rows\">Skip to the content</a>\n\
             <div class=\"pages\" role=\"region\" aria-label=\"joular-bpf\">\n<div class=\"bar\">\n",
        );
        before.add(&head).raw("</div>\n</div>\n<div class=\"before\">\n").add(&form).raw("</div>\n");
        Ok(Answer::page(found.served_page(&choices, filters, left.app.as_ref(), &before)?))
    }))
}
