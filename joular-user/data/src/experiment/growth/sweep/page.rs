//! Writes a sweep as a web page: one file without scripts, that loads nothing.

use std::fmt::Write as _;

use super::{Curve, Sweep, render};
use crate::{
    experiment::{
        cells::{number, sized},
        growth::Growth,
        plot::svg::xml,
    },
    model::{domain::Label, target_text::TargetText},
    text::figures,
};

/// Values beyond those that were measured, as multiples of the largest one.
const BEYOND: [f64; 3] = [2.0, 5.0, 10.0];

/// An R² below is shown as 0: the fit explains nothing.
const LEAST_EXPLAINED: f64 = 5e-4;

/// An energy that may be so many times as much is not known.
const MOST_TIMES: f64 = 1e3;

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
    <title>How energy grows</title>\n<style>\n\
    :root { color-scheme: light dark; }\n\
    body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }\n\
    table { border-collapse: collapse; }\n\
    .scroll { overflow-x: auto; }\n\
    th, td { padding: 0.2rem 0.7rem; text-align: right; border-bottom: 1px solid #8884; white-space: nowrap; }\n\
    th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 18rem; }\n\
    td:nth-child(4), td:last-child { white-space: normal; min-width: 12rem; }\n\
    svg { max-width: 100%; height: auto; }\n\
    </style>\n</head>\n<body>\n";

impl Sweep {
    /// The page, with the total and at most `top` methods.
    pub fn page(&self, top: usize) -> String {
        let mut page = String::from(HEAD);
        let label = self.label_line().map_or_else(String::new, |label| format!(": {}", xml(&label)));
        let _ = writeln!(page, "<h1>How energy grows with n</h1>\n<p>{}{label}.</p>", runs(&self.total));
        let named = self.named(Some(top));
        self.classes(&mut page, &named);
        page.push_str(
            "<h2>Points and fitted models</h2>\n<p>Bars are 95 % intervals of sampling, bands are where 95 % of runs are.</p>\n",
        );
        page.push_str(&self.svg(top));
        predictions(&mut page, &named, self.label());
        page.push_str("</body>\n</html>\n");
        page
    }

    fn classes(&self, page: &mut String, named: &[(TargetText, &Curve)]) {
        let what = if self.with_callees { "Method, with what it calls" } else { "Method" };
        let headings = [what, "J at largest n", "Samples", "Class", "Sure", "R²", "Formula"];
        table(
            page,
            &headings,
            named.iter().map(|(name, curve)| {
                let row = render::row(curve, self.label());
                let class = curve.growth.as_ref().map_or_else(|| row.class.clone(), Growth::described);
                vec![
                    name.to_string(),
                    row.joules,
                    curve.samples.to_string(),
                    class,
                    row.sure,
                    row.r_squared,
                    row.formula,
                ]
            }),
        );
        let hidden = self.methods.len().saturating_sub(named.len().saturating_sub(1));
        if hidden > 0 {
            let _ = writeln!(page, "<p>{hidden} more methods need less.</p>");
        }
    }
}

/// How many runs and values there are.
fn runs(total: &Curve) -> String {
    let mut values: Vec<f64> = total.points.iter().map(|point| point.value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (least, most) = (values.first().copied().unwrap_or_default(), values.last().copied().unwrap_or_default());
    let [least, most] = [least, most].map(number);
    format!("{} runs with {} values of n, {least} to {most}", total.points.len(), values.len())
}

/// What larger values will need, if the growth goes on so.
fn predictions(page: &mut String, named: &[(TargetText, &Curve)], label: Option<Label>) {
    let most = named.iter().flat_map(|(_, curve)| &curve.points).map(|point| point.value).fold(0.0, f64::max);
    let values = BEYOND.map(|times| times * most);
    page.push_str(
        "<h2>Beyond what was measured</h2>\n<p>J of a run, with the 95 % interval of a single one. It spans all classes that \
         cannot be told apart. Nothing tells whether the growth goes on like this. A dash stands where no class fits, \
         where the fit explains nothing (R² is 0), and where classes that cannot be told apart are a thousandfold apart.</p>\n",
    );
    let headings: Vec<String> =
        std::iter::once("Method".to_owned()).chain(values.map(|value| format!("n = {}", number(value)))).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    table(
        page,
        &headings,
        named.iter().map(|(name, curve)| {
            std::iter::once(name.to_string()).chain(values.map(|value| predicted(curve, value, label))).collect()
        }),
    );
}

pub(super) fn predicted(curve: &Curve, value: f64, label: Option<Label>) -> String {
    let explains = |growth: &&Growth| growth.fit().is_some_and(|fit| fit.r_squared >= LEAST_EXPLAINED);
    let found = curve.growth.as_ref().filter(explains).and_then(|growth| growth.predict(value));
    let Some(joules) = found.map(|found| found.joules).filter(|joules| joules.high <= MOST_TIMES * joules.value) else {
        return "–".to_owned();
    };
    let (prefix, factor) = sized(joules.value);
    let (energy, interval) =
        figures::with_interval(joules.value * factor, (joules.low * factor, joules.high * factor), label);
    format!("{energy} {prefix}J ({interval})")
}

fn table(page: &mut String, headings: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    page.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    headings.iter().for_each(|heading| {
        let _ = write!(page, "<th scope=\"col\">{}</th>", xml(heading));
    });
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", xml(cell))).collect();
        let _ = writeln!(page, "<tr>{cells}</tr>");
    }
    page.push_str("</tbody>\n</table></div>\n");
}
