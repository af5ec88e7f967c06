//! Writes one table as comma-separated values.

use serde_json::Value;

use super::{
    beside::{self, InFile},
    command::Report,
    footprint,
    rows::{Figures, RankedRow, Ranking},
    text::{activation, precise_percent},
};
use crate::text::{csv, csv::line, watts};

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
            .chain(names(beside::counted(table)))
            .chain(names(beside::allocated(table)))
            .chain(by_bytes(table).map(|which| format!("{which}_by_bytes_uj")))
            .chain(names(beside::moved(table)))
            .chain(names(beside::intervals(table))),
    );
    for row in table.all_rows() {
        text.push_str(&line(cells(report, table, row)));
    }
    text
}

const FIGURES: [&str; 8] = ["uj", "low_uj", "high_uj", "watts", "percent", "cpu_ns", "samples", "inferred_uj"];

fn cells(report: &Report<'_>, table: &Ranking, row: &RankedRow) -> Vec<String> {
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
    let mut cells = vec![csv::name(row.group.name.raw())];
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
    let values = |figures: Vec<InFile>| figures.into_iter().map(|figure| figure.of(table, row).to_string());
    cells.extend(values(beside::counted(table)));
    cells.extend(values(beside::allocated(table)));
    let of = |which| if which == "self" { &row.own } else { &row.total };
    cells.extend(by_bytes(table).map(|which| of(which).amounts.by_bytes.0.to_string()));
    cells.extend(values(beside::moved(table)));
    cells.extend(values(beside::intervals(table)));
    cells
}

fn names(figures: Vec<InFile>) -> impl Iterator<Item = String> {
    figures.into_iter().map(|figure| figure.name())
}

/// The columns of energy that goes by bytes, if there is any.
fn by_bytes(table: &Ranking) -> impl Iterator<Item = &'static str> {
    let is_none = table.whole.by_bytes.0 == 0;
    ["self", "total"].into_iter().filter(move |_| !is_none)
}

/// A detail as a cell.
pub fn value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => csv::name(text),
        other => other.to_string(),
    }
}
