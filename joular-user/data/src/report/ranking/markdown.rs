//! Writes a report for an issue, a wiki or a pull request: tables of GitHub-flavoured Markdown.
//!
//! Names are code spans, in which nothing is markup. The two characters that could end a span or a
//! table's cell are spelled out like control characters.

use std::fmt::Write as _;

use super::{
    by_measure,
    command::Report,
    context, rootless,
    text::{caption, chosen, note},
    unnamed,
};
use crate::{
    report::footprint::statement,
    text::{figures, table::code},
    totals::audit::audit_rows,
};

pub fn report(report: &Report<'_>) -> String {
    let profile = report.profile;
    let overview = &profile.overview;
    let mut text = format!("{}; energy of {}\n\n", plain(&context::extent(profile)), plain(&context::source(overview)));
    for line in chosen(report) {
        let _ = writeln!(text, "- {}", plain(&line));
    }
    for ranking in report.tables {
        let _ = writeln!(text, "\n### Energy {}\n", caption(ranking.by));
        text.push_str(&super::text::markdown(ranking, report));
    }
    for of_measure in report.of_measures {
        let _ = writeln!(text, "\n### {}\n", by_measure::caption(of_measure));
        text.push_str(&by_measure::markdown(of_measure, profile));
    }
    if let Some(note) = note(report) {
        let _ = writeln!(text, "\n{note}");
    }
    if let Some(footprints) = report.footprints {
        text.push_str("\n### Emissions and cost\n\n");
        for line in statement::text(footprints, overview) {
            let _ = writeln!(text, "- {}", plain(&line));
        }
    }
    let jvms = context::jvms(profile);
    if !jvms.is_empty() {
        text.push_str("\n### VM tax\n\n| J | % of the JVM | JVM | parts |\n|---:|---:|---|---|\n");
        for (process, tally) in jvms {
            let (name, parts) = (code(&format!("{} {}", process.pid, process.title()).into()), tally.tax_parts());
            let tax = figures::figure(tally.tax.joules(), overview.label);
            let _ = writeln!(text, "| {tax} | {:.1} | {name} | {parts} |", tally.tax_percent());
        }
    }
    text.push_str("\n### Audit\n\n| | J | % | W |\n|---|---:|---:|---:|\n");
    for [name, joules, part, power] in audit_rows(&context::sums(overview)) {
        let _ = writeln!(text, "| {name} | {joules} | {part} | {power} |");
    }
    text.push('\n');
    if !report.has_app() {
        let lines = std::iter::once(unnamed::line(profile)).chain(unnamed::hints(profile));
        let lines = lines.chain(rootless::line(profile));
        lines.for_each(|line| {
            let _ = writeln!(text, "- {}", plain(&line));
        });
    }
    let quality = context::quality(overview);
    for (number, line) in quality.iter().enumerate() {
        let before = if number == 0 { "Of the JVMs' stacks " } else { "" };
        let _ = writeln!(text, "- {before}{}", plain(line));
    }
    let warnings = context::warnings(overview);
    if warnings.is_empty() {
        text.push_str("- Nothing was lost\n");
    }
    warnings.iter().for_each(|warning| {
        let _ = writeln!(text, "- **{}**", plain(warning));
    });
    text
}

/// Text with names in it that may not be harmless.
fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '!' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(plain("<img src=x> [a](b) | c"), "&lt;img src=x&gt; \\[a\\](b) \\| c");
    }
}
