//! Shows emissions and cost of a table's rows: the columns that people see, and the figures in files.

use super::{
    command::Report,
    rows::{Figures, RankedRow, Ranking},
};
use crate::{
    report::footprint::{Footprint, statement::MassUnit},
    text::{escape, figures::Places, table::Column},
};

/// A figure of rows, as files have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Grams, of energy and hardware.
    Gco2e,
    EmbodiedGco2e,
    Cost,
}

impl Figure {
    /// The name of a column or key: of paths that end in a row (`self`), or contain it (`total`).
    pub fn name(self, which: &str) -> String {
        let name = match self {
            Self::Gco2e => "gco2e",
            Self::EmbodiedGco2e => "embodied_gco2e",
            Self::Cost => "cost",
        };
        format!("{which}_{name}")
    }

    pub fn of(self, footprint: &Footprint) -> f64 {
        match self {
            Self::Gco2e => footprint.grams(),
            Self::EmbodiedGco2e => footprint.embodied_g,
            Self::Cost => footprint.cost,
        }
    }
}

/// What was asked for.
pub fn figures(report: &Report<'_>) -> Vec<Figure> {
    let Some(choices) = report.footprints.map(|footprints| footprints.choices) else { return Vec::new() };
    let wanted = [
        (choices.carbon.is_some(), Figure::Gco2e),
        (choices.embodied.is_some(), Figure::EmbodiedGco2e),
        (choices.price.is_some(), Figure::Cost),
    ];
    wanted.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, figure)| figure).collect()
}

/// Columns for people, all emissions in the unit that suits their sum.
pub fn columns(table: &Ranking, report: &Report<'_>) -> Vec<Column> {
    let Some(footprints) = report.footprints else { return Vec::new() };
    let mut columns = Vec::new();
    let mut add = |heading: &str, of: &dyn Fn(&Footprint) -> f64| {
        let (own, total) = if table.by.has_total() { ("SELF ", true) } else { ("", false) };
        columns.push(column(table, format!("{own}{heading}"), 1, &|row| shown(&row.own, of)));
        if total {
            columns.push(column(table, format!("TOTAL {heading}"), 3, &|row| shown(&row.total, of)));
        }
    };
    if footprints.choices.carbon.is_some() {
        let unit = MassUnit::of(footprints.whole.grams());
        add(&format!("{}CO2e", unit.name), &|footprint| unit.amount(footprint.grams()));
    }
    if let Some(price) = &footprints.choices.price {
        add(format!("COST {}", escape(&price.currency)).trim_end(), &|footprint| footprint.cost);
    }
    columns
}

fn column(table: &Ranking, heading: String, expendable: u8, cell: &dyn Fn(&RankedRow) -> String) -> Column {
    Column { expendable, ..Column::figures(&heading, table.all_rows(), cell) }
}

/// A figure as fine as the energy that it was made of is known.
fn shown(figures: &Figures, of: &dyn Fn(&Footprint) -> f64) -> String {
    let (value, energy) = (of(&figures.footprint), figures.amounts.energy.joules());
    let error = if energy > 0.0 { value * figures.interval.half().joules() / energy } else { 0.0 };
    Places::derived(value, error).write(value)
}
