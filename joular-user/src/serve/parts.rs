//! Parts that pages have in common: head, form, power over time, tables of links.

use std::time::Duration;

use joular_data::{
    fleet::choice::Wish,
    model::{domain::Label as EnergyLabel, units::MicroJoules},
    report::{html::Markup, profile::ReadFrom},
    text::{figures, share, time, watts},
};

use super::scan::{Group, Scan};
use crate::query::{Query, TIER};

/// Height of drawings; their width is the number of points.
const HEIGHT: f64 = 100.0;

/// Fields of a form that select a part.
pub const FIELDS: [(&str, &str); 8] = [
    ("from", "From"),
    ("until", "Until"),
    ("service", "Service"),
    ("version", "Version"),
    ("host", "Host"),
    ("process", "Process"),
    ("method", "Method"),
    ("app", "App packages"),
];

/// The head: where else one can go with what is selected.
pub fn head(query: &Query) -> Markup {
    let selected = query.selecting();
    let mut head = Markup::of("<h1><a href=\"");
    head.text(selected.link("/")).raw("\">joular-bpf</a></h1>\n<nav aria-label=\"Pages\">\n");
    for (path, name) in
        [("/", "Services"), ("/part", "All together"), ("/compare", "Compare"), ("/report.html", "Report")]
    {
        head.raw("<a href=\"").text(selected.link(path)).raw("\">").text(name).raw("</a>\n");
    }
    head.raw("<a href=\"/openapi.json\">API</a>\n</nav>\n");
    head
}

/// The fields of `names` as they are, each with what `side` has of it, and all other parameters as they are.
pub fn form(
    path: &str,
    query: &Query,
    names: &[(&'static str, &'static str)],
    sides: &[(&str, &'static str)],
) -> Markup {
    let mut form = Markup::of("<section aria-label=\"Selection\">\n<form class=\"tools\" action=\"");
    form.text(path).raw("\">\n");
    let mut shown = Vec::new();
    for &(side, legend) in sides {
        form.raw("<fieldset>");
        if !legend.is_empty() {
            form.raw("<legend>").raw(legend).raw("</legend>");
        }
        for &(name, title) in names {
            let name = format!("{side}{name}");
            let hint = if name.ends_with("from") { "now-1h" } else { "" };
            let value =
                query.pairs().filter(|(one, _)| *one == name).map(|(_, value)| value).collect::<Vec<_>>().join(",");
            form.raw("<label>").raw(title).raw(" <input name=\"").text(&name).raw("\" value=\"").text(value);
            form.raw("\" placeholder=\"").text(hint).raw("\" autocomplete=\"off\" spellcheck=\"false\"></label>\n");
            shown.push(name);
        }
        form.raw("</fieldset>\n");
    }
    for (name, value) in query.pairs().filter(|(name, _)| !shown.iter().any(|one| one == name)) {
        form.raw("<input type=\"hidden\" name=\"").text(name).raw("\" value=\"").text(value).raw("\">\n");
    }
    form.raw("<button type=\"submit\">Show</button>\n</form>\n</section>\n");
    form
}

/// Until when there is data, since when if nobody asked that, and whether the page asks again.
pub fn freshness(path: &str, query: &Query, span: Option<Duration>, scan: &Scan) -> Markup {
    let is_refreshed = is_refreshed(query);
    let mut line = Markup::of("<p class=\"note\" role=\"status\">");
    match scan.until() {
        // Hours first: that is what changes.
        Some(until) => {
            let moment = time(until);
            let (date, clock) = moment.split_once('T').unwrap_or(("", moment.as_str()));
            line.raw("Data until ").text(clock.trim_end_matches('Z')).raw(" UTC, ").text(date);
        }
        None => {
            line.raw("No data in this selection");
        }
    }
    if let Some(span) = span.filter(|_| query.one("from").is_none()) {
        line.raw(". From is empty: this begins ").text(span.as_secs() / 60).raw(" minutes before Until, or now");
    }
    if let Some(text) = scan.profile.overview.read_from.as_ref().and_then(ReadFrom::text) {
        line.raw(", ").text(text);
        if scan.is_of_sums() {
            let runs = query.with(TIER.name, Some(Wish::Raw.name())).link(path);
            line.raw(" (<a href=\"").text(runs).raw("\">read the runs</a>)");
        }
    }
    line.raw(". <a href=\"").text(query.with("refresh", is_refreshed.then_some("off")).link(path)).raw("\">");
    line.raw(if is_refreshed { "Stop asking every minute" } else { "Ask every minute" }).raw("</a></p>\n");
    line
}

pub fn is_refreshed(query: &Query) -> bool {
    query.one("refresh") != Some("off")
}

/// Energy, with as many digits as its label allows.
pub fn joules(energy: MicroJoules, label: Option<EnergyLabel>) -> String {
    format!("{} J", figures::figure(energy.joules(), label))
}

/// Mean power over time as an area, which a drag selects a part of.
pub fn power(scan: &Scan, whole: &Group) -> Markup {
    let values = scan.watts(&whole.series);
    let highest = values.iter().copied().fold(0.0, f64::max);
    let start = scan.clock.start_us;
    let end = scan.until().map_or(start, |end| end.0);
    let moment = |us: i64| time(joular_data::model::units::UnixMicros(us));
    let mut chart =
        Markup::of("<section aria-labelledby=\"power-title\">\n<h2 id=\"power-title\">Power over time</h2>\n");
    chart.raw("<svg class=\"area\" id=\"power\" role=\"img\" aria-label=\"Mean power, at most ").figure(highest, 2);
    chart.raw(" W\" data-from=\"").text(start / 1000).raw("\" data-until=\"").text(end / 1000).raw("\"");
    line(&mut chart, &values);
    chart.raw("<p class=\"ends\"><span>").text(moment(start)).raw("</span><span>at most ").figure(highest, 2);
    chart.raw(" W</span><span>").text(moment(end)).raw("</span></p>\n");
    chart.raw("<p class=\"note\">Drag over a time to select it, or write it into From and Until.</p>\n</section>\n");
    chart
}

/// The rest of a drawing: an area below a line.
#[allow(clippy::cast_precision_loss, reason = "for a picture")]
fn line(svg: &mut Markup, values: &[f64]) {
    let highest = values.iter().copied().fold(0.0, f64::max);
    let height = |value: f64| if highest > 0.0 { HEIGHT - value / highest * (HEIGHT - 4.0) } else { HEIGHT };
    svg.raw(" viewBox=\"0 0 ").text(values.len()).raw(" 100\" preserveAspectRatio=\"none\">");
    for (shape, is_closed) in [("<polygon points=\"", true), ("<polyline points=\"", false)] {
        svg.raw(shape);
        if is_closed {
            svg.raw("0,100 ");
        }
        // A bucket is as wide as one, so a single one is seen, too.
        for (index, value) in values.iter().enumerate() {
            for end in [index, index + 1] {
                svg.text(end).raw(",").figure(height(*value), 1).raw(" ");
            }
        }
        if is_closed {
            svg.text(values.len()).raw(",100");
        }
        svg.raw("\"/>");
    }
    svg.raw("</svg>\n");
}

/// Rows of a table of groups: name, energy, power, share and how that went over time.
pub fn groups(
    scan: &Scan,
    title: &'static str,
    column: &'static str,
    groups: &[Group],
    link: impl Fn(&Group) -> (String, Option<String>),
) -> Markup {
    const MOST: usize = 200;
    let overview = &scan.profile.overview;
    let whole: MicroJoules = groups.iter().map(|group| group.energy).sum();
    let mut table = Markup::of("<section>\n<h2>");
    table.raw(title).raw("</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"").raw(title);
    table.raw("\"><table>\n<thead><tr><th scope=\"col\">").raw(column);
    table.raw("</th><th scope=\"col\">Energy</th><th scope=\"col\">Power</th><th scope=\"col\">Share</th>");
    table.raw("<th scope=\"col\">Over time</th></tr></thead>\n<tbody>\n");
    for group in groups.iter().take(MOST) {
        let (name, target) = link(group);
        table.raw("<tr><td class=\"name\">");
        linked(&mut table, &name, target.as_deref());
        table.raw("</td><td>").text(joules(group.energy, overview.label)).raw("</td><td>");
        table.figure(watts(group.energy, overview.duration_ns), 2).raw(" W</td><td>");
        table.figure(share(group.energy, whole), 1).raw(" %</td><td><svg class=\"spark\" aria-hidden=\"true\"");
        line(&mut table, &scan.watts(&group.series));
        table.raw("</td></tr>\n");
    }
    table.raw("</tbody></table></div>\n");
    if groups.len() > MOST {
        table.raw("<p class=\"note\">").text(groups.len() - MOST).raw(" with less energy are not shown.</p>\n");
    }
    table.raw("</section>\n");
    table
}

/// A name with a link, if it has one; whole as its title.
pub fn linked(markup: &mut Markup, name: &str, target: Option<&str>) {
    match target {
        Some(target) => {
            markup.raw("<a href=\"").text(target).raw("\" title=\"").text(name).raw("\">").text(name).raw("</a>");
        }
        None => {
            markup.raw("<span title=\"").text(name).raw("\">").text(name).raw("</span>");
        }
    }
}
