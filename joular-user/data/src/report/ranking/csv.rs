//! Writes one table as comma-separated values (RFC 4180), for spreadsheets and scripts.
//!
//! Names come from processes that may be hostile. Characters that control a terminal are spelled
//! out as everywhere ([`escape`]), and a text that a spreadsheet would take for a formula gets an
//! apostrophe before it.

use serde_json::Value;

use super::{
    command::Report,
    counts, footprint,
    rows::{Figures, Ranking, Row},
    text::{activation, precise_percent, rows},
};
use crate::text::{escape, watts};

/// The table with its heading.
pub fn table(report: &Report<'_>, table: &Ranking) -> String {
    let details = table.by.details();
    let mut text = line(
        ["name".to_owned()]
            .into_iter()
            .chain(details.iter().map(|name| (*name).to_owned()))
            .chain(FIGURES.iter().flat_map(|figure| ["self", "total"].map(|which| format!("{which}_{figure}"))))
            .chain(["activations", "activation_uj", "energy_label", "ambiguous"].map(ToOwned::to_owned))
            .chain(
                footprint::figures(report).iter().flat_map(|figure| ["self", "total"].map(|which| figure.name(which))),
            )
            .chain(counts::names(&report.profile.counted)),
    );
    for row in rows(table) {
        text.push_str(&line(cells(report, table, row)));
    }
    text
}

const FIGURES: [&str; 8] = ["uj", "low_uj", "high_uj", "watts", "percent", "cpu_ns", "samples", "inferred_uj"];

fn cells(report: &Report<'_>, table: &Ranking, row: &Row) -> Vec<String> {
    let overview = &report.profile.overview;
    let figures = |figures: &Figures| -> [String; FIGURES.len()] {
        let (amounts, interval) = (figures.amounts, figures.interval);
        [
            amounts.energy.0.to_string(),
            interval.low.0.to_string(),
            interval.high.0.to_string(),
            format!("{:.6}", watts(amounts.energy, overview.duration_ns)),
            format!("{:.6}", precise_percent(amounts.energy, table.whole.energy)),
            amounts.cpu_ns.to_string(),
            amounts.samples.to_string(),
            amounts.inferred.0.to_string(),
        ]
    };
    let mut cells = vec![name(row.group.name.raw())];
    // The row of all others has no details.
    cells.extend((0..table.by.details().len()).map(|at| row.group.details.get(at).map_or(String::new(), value)));
    cells.extend(figures(&row.own).into_iter().zip(figures(&row.total)).flat_map(|(own, total)| [own, total]));
    cells.push(row.activations.map_or(String::new(), |calls| calls.to_string()));
    cells.push(activation(row).map_or(String::new(), |energy| energy.0.to_string()));
    cells.push(overview.label.map_or(String::new(), |label| label.name().to_owned()));
    cells.push((overview.ambiguous > 0).to_string());
    let footprints = footprint::figures(report).into_iter();
    cells.extend(
        footprints.flat_map(|figure| [&row.own, &row.total].map(|figures| figure.of(&figures.footprint).to_string())),
    );
    cells.extend(counts::cells(&report.profile.counted, row).map(|(_, count)| count.to_string()));
    cells
}

fn value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => name(text),
        other => other.to_string(),
    }
}

/// A text that is harmless in a terminal and a spreadsheet.
fn name(text: &str) -> String {
    let safe = escape(text);
    if safe.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) {
        format!("'{safe}")
    } else {
        safe
    }
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let quoted = cells.into_iter().map(|cell| {
        let needs_quotes = cell.contains([',', '"', '\r', '\n']);
        if needs_quotes { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_a_formula_or_a_control() {
        for (text, expected) in [
            ("com.acme.Shop.sell", "com.acme.Shop.sell"),
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            (" =1+1", "' =1+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\\x09=1"),
            ("a\x1b[2J\n", "a\\x1b[2J\\x0a"),
        ] {
            assert_eq!(name(text), expected);
        }
    }

    #[test]
    fn cells_with_separators_are_quoted() {
        assert_eq!(line(["a,b", "say \"x\"", "c"].map(String::from)), "\"a,b\",\"say \"\"x\"\"\",c\r\n");
    }
}
