//! Makes pages for people: services, and a part of the data set in detail. Links carry the whole selection.

use std::path::Path;

use joular_data::{
    fleet::choice::{View, Wish},
    model::target_text::TargetText,
    redact::Redaction,
    report::{
        html::{Flights, Markup, PageChoice, ServedPage, page, served},
        measure::Measure,
        profile::{Catalog, Process},
        ranking::{By, Ranking, Sort, groups::Groups, rows::Cut},
        tree::{Levels, Shape},
    },
    text::figures,
};

use super::{
    answer::Answer,
    api::measure_of,
    parts::{FIELDS, form, freshness, groups, head, is_refreshed, joules, linked, power},
    routes::{Asking, Work},
    scan::{Group, Label, Scan},
};
use crate::query::{Part, Query, Refusal, TIER, encoded, exactly};

/// Rows of tables of methods and threads.
const ROWS: usize = 25;

pub fn overview(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let part = asking.part_showing(asking.query, [View::Table(By::Service), View::OverTime])?;
    let (query, span) = (asking.query.clone(), asking.terms.span);
    Ok(Box::new(move |place| {
        let scan = Scan::read(place, &part)?;
        let mut body = form("/", &query, &FIELDS, &[("", "")]);
        body.add(&freshness("/", &query, span, &scan));
        let services = scan.by(&Label::Service);
        let has_many = scan.is_of_sums() || services.iter().filter(|group| group.name.is_some()).count() > 1;
        if services.is_empty() {
            body.add(&nothing());
        } else if has_many {
            // Processes without a service stand beside services.
            let of_service = |_: &Catalog, process: &Process| {
                let key = process.service.clone().ok_or_else(|| process.title().clone());
                (key, None)
            };
            let rows = scan.groups(of_service);
            body.add(&groups(&scan, "Services", "Service", &rows, |group| service_row(&scan, group, &query)));
        } else {
            let rows = scan.groups(|_, process| ((process.run, process.pid, process.start), None));
            body.add(&groups(&scan, "Processes", "Process", &rows, |group| process_row(&scan, group, &query)));
        }
        Ok(shown(
            &Shown { title: "Services", query: &query, body: &body, after: &Markup::default(), graph: None },
            &scan,
        ))
    }))
}

fn service_row(scan: &Scan, group: &Group, query: &Query) -> (String, Option<String>) {
    let Some(process) = first_process(scan, group) else { return (String::new(), None) };
    let query = query.with("service", None);
    match &process.service {
        Some(service) => {
            // A path has room for a name that is a name.
            let link = match service.raw() {
                name if (1..=200).contains(&name.len()) && ![".", ".."].contains(&name) => {
                    query.link(&format!("/service/{}", encoded(name)))
                }
                name => query.with("service", Some(&exactly(name))).link("/part"),
            };
            (service.to_string(), Some(link))
        }
        None => {
            let title = process.title();
            (title.to_string(), Some(query.with("process", Some(&exactly(title.raw()))).link("/part")))
        }
    }
}

fn process_row(scan: &Scan, group: &Group, query: &Query) -> (String, Option<String>) {
    let Some(process) = first_process(scan, group) else { return (String::new(), None) };
    let title = process.title();
    let query = query.with("process", Some(&exactly(title.raw()))).with("pid", Some(&process.pid.to_string()));
    (format!("{title} ({})", process.pid), Some(query.link("/part")))
}

fn first_process<'a>(scan: &'a Scan, group: &Group) -> Option<&'a Process> {
    group.processes.first().map(|process| scan.profile.catalog.process(*process))
}

pub fn service(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let selecting = asking.query.with("service", Some(&exactly(asking.name)));
    detail(asking, &selecting, Some(asking.name.to_owned()))
}

pub fn part(asking: &Asking<'_>) -> Result<Work, Refusal> {
    detail(asking, asking.query, None)
}

/// A part in detail: `selecting` says which.
fn detail(asking: &Asking<'_>, selecting: &Query, service: Option<String>) -> Result<Work, Refusal> {
    // Of sums, tables of what they lack are left out.
    let views = [View::OverTime, View::Table(By::Method), View::Tree(Levels::Frames)];
    let part = asking.part_showing(selecting, views)?;
    let measure = measure_of(asking.query)?;
    let sort = match asking.query.one("view") {
        None | Some("self") => Sort::Own,
        Some("total") => Sort::Total,
        Some(other) => {
            let other = TargetText::from(other);
            return Err(Refusal::bad(format!("view: '{other}' is not one of self, total")));
        }
    };
    let (query, selecting, path) = (asking.query.clone(), selecting.clone(), asking.path.to_owned());
    let span = asking.terms.span;
    Ok(Box::new(move |place| {
        let scan = Scan::read(place, &part)?;
        let title = service
            .as_ref()
            .map_or_else(|| "All together".to_owned(), |name| TargetText::from(name.as_str()).to_string());
        let fields: Vec<_> = FIELDS.into_iter().filter(|(name, _)| service.is_none() || *name != "service").collect();
        let mut body = Markup::of("<h2>");
        body.text(&title).raw("</h2>\n").add(&form(&path, &query, &fields, &[("", "")]));
        body.add(&freshness(&path, &query, span, &scan));
        let mut after = Markup::default();
        match scan.whole() {
            None => {
                body.add(&nothing());
            }
            Some(whole) => {
                body.add(&power(&scan, &whole)).add(&methods(&scan, &part, sort, &query, &path));
                let labels = [
                    (Label::Version, "Versions", "Version"),
                    (Label::Host, "Hosts", "Host"),
                    (Label::Process, "Processes", "Process"),
                ];
                let shown = if scan.is_of_sums() { 1 } else { labels.len() };
                for (label, title, column) in labels.into_iter().take(shown) {
                    let rows = scan.by(&label);
                    let link = |group: &Group| {
                        let target = group
                            .name
                            .as_ref()
                            .map(|name| query.with(&label.name(), Some(&exactly(name.raw()))).link(&path));
                        (group.name.as_ref().map_or_else(|| "not known".to_owned(), ToString::to_string), target)
                    };
                    after.add(&groups(&scan, title, column, &rows, link));
                }
                if scan.is_of_sums() {
                    after.add(&beyond_sums(&query, &path));
                } else {
                    after.add(&threads(&scan, &part, &query, &path));
                }
            }
        }
        let head = selecting.selecting();
        let shown_page = Shown { title: &title, query: &query, body: &body, after: &after, graph: Some(measure) };
        Ok(shown_with(&shown_page, &scan, &head))
    }))
}

fn methods(scan: &Scan, part: &Part, sort: Sort, query: &Query, path: &str) -> Markup {
    let label = scan.profile.overview.label;
    let table = ranking(scan, part, By::Method, sort);
    let mut markup = Markup::of(
        "<section>\n<h2>Methods</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Methods\"><table>\n<thead><tr>\
         <th scope=\"col\">Method</th><th scope=\"col\">Self J</th><th scope=\"col\">95 %</th><th scope=\"col\">Total J</th>\
         <th scope=\"col\">95 %</th><th scope=\"col\">Share of self</th><th scope=\"col\">Samples</th></tr></thead>\n<tbody>\n",
    );
    for row in table.all_rows() {
        let method = row.group.details.first().and_then(serde_json::Value::as_str);
        let target = method.map(|name| query.with("method", Some(&exactly(name))).link(path));
        markup.raw("<tr><td class=\"name\">");
        linked(&mut markup, &row.group.name.to_string(), target.as_deref());
        for of in [&row.own, &row.total] {
            let (energy, range) = figures::with_interval(of.amounts.energy.joules(), of.interval.joules(), label);
            markup.raw("</td><td>").text(energy).raw("</td><td>").text(range);
        }
        markup.raw("</td><td>").figure(joular_data::text::share(row.own.amounts.energy, table.whole.energy), 1);
        markup.raw(" %</td><td>").text(row.own.amounts.samples).raw("</td></tr>\n");
    }
    let (other, name) = if sort == Sort::Own { ("total", "total") } else { ("self", "self") };
    markup.raw("</tbody></table></div>\n<p class=\"note\">The last row sums up the rest. <a href=\"");
    markup.text(query.with("view", Some(other)).link(path)).raw("\">Rank by ").raw(name).raw("</a></p>\n</section>\n");
    markup
}

fn threads(scan: &Scan, part: &Part, query: &Query, path: &str) -> Markup {
    let label = scan.profile.overview.label;
    let table = ranking(scan, part, By::ThreadPool, Sort::Own);
    let mut markup = Markup::of(
        "<section>\n<h2>Threads</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Threads\"><table>\n<thead><tr>\
         <th scope=\"col\">Threads of equal names</th><th scope=\"col\">Energy</th><th scope=\"col\">Share</th>\
         <th scope=\"col\">CPU s</th></tr></thead>\n<tbody>\n",
    );
    for row in table.all_rows() {
        let name = row.group.details.first().and_then(serde_json::Value::as_str);
        // A pool's name has stars for numbers, which a pattern has, too.
        let pattern = name.map(|name| exactly(name).replace("[*]", "*"));
        let target = pattern.map(|pattern| query.with("thread", Some(&pattern)).link(path));
        markup.raw("<tr><td class=\"name\">");
        linked(&mut markup, &row.group.name.to_string(), target.as_deref());
        let amounts = &row.own.amounts;
        markup.raw("</td><td>").text(joules(amounts.energy, label)).raw("</td><td>");
        markup.figure(joular_data::text::share(amounts.energy, table.whole.energy), 1).raw(" %</td><td>");
        markup.figure(joular_data::text::seconds(amounts.cpu_ns), 2).raw("</td></tr>\n");
    }
    markup.raw("</tbody></table></div>\n</section>\n");
    markup
}

fn ranking(scan: &Scan, part: &Part, by: By, sort: Sort) -> Ranking {
    let cut = Cut { top: ROWS, sort, is_partial: !part.filter.allows_all_paths() };
    Ranking::of(&scan.profile, &Groups::of(by, &scan.profile), cut, None, None)
}

/// Where tables are that sums do not have.
fn beyond_sums(query: &Query, path: &str) -> Markup {
    let mut line = Markup::of("<p class=\"note\">Hosts, processes and threads are in the runs. <a href=\"");
    line.text(query.with(TIER.name, Some(Wish::Raw.name())).link(path)).raw("\">Read the runs</a></p>\n");
    line
}

fn nothing() -> Markup {
    Markup::of(
        "<section><p>Nothing was recorded in this selection. Names are matched whole, and * stands for any part of one.</p></section>\n",
    )
}

/// A page's own parts.
struct Shown<'a> {
    title: &'a str,
    query: &'a Query,
    body: &'a Markup,
    after: &'a Markup,
    graph: Option<Measure>,
}

fn shown(page: &Shown<'_>, scan: &Scan) -> Answer {
    shown_with(page, scan, page.query)
}

/// Links in its head have `selected`.
fn shown_with(page: &Shown<'_>, scan: &Scan, selected: &Query) -> Answer {
    let title = format!("{} – joular-bpf", page.title);
    Answer::page(served(&ServedPage {
        title: &title,
        head: &head(selected),
        body: page.body,
        graph: page.graph.map(|measure| (&scan.profile, measure)),
        after: page.after,
        is_refreshed: is_refreshed(page.query),
    }))
}

/// The page that `joular-bpf html` makes.
pub fn report(asking: &Asking<'_>) -> Result<Work, Refusal> {
    let Part { filter, app } = asking.part()?;
    let view = format!("application view of {}", asking.query.many("app").join(", "));
    Ok(Box::new(move |place: &Path| {
        let choice = PageChoice {
            data: place.to_owned(),
            filter,
            app,
            shape: Shape { levels: Levels::Processes, ..Shape::default() },
            is_apart: false,
            footprint: None,
            redaction: Redaction::default(),
            view,
            flights: Flights::default(),
        };
        Ok(Answer::page(page(&choice)?.bytes))
    }))
}
