//! Shows tables of one measure: columns for people, and the figures in files.

use serde_json::{Map, Value, json};

use super::{Figure, MeasureRow, MeasureTable};
use crate::{
    report::{
        measure::{Measure, Unit},
        profile::Profile,
        ranking::{beside::scaled, csv::value, rows::Sort},
    },
    text::{
        csv, figures, percent, seconds,
        table::{Column, Table},
    },
};

/// The caption of a table.
pub fn caption(table: &MeasureTable) -> String {
    let (by, measure) = (table.of.by.name(), table.of.measure);
    match (table.of.name(), measure) {
        ("class-allocated", _) => "Allocated bytes by class".to_owned(),
        (_, Measure::Allocated) if table.of.by.has_total() => {
            format!("Allocated bytes by the {by} that allocated: self, and total with what it called")
        }
        _ if table.of.by.has_total() => {
            format!("{} by {by}: self, and total with what it called", measure.title())
        }
        _ => format!("{} by {by}", measure.title()),
    }
}

/// The table for people, names of all rows included.
pub fn laid_out(table: &MeasureTable, profile: &Profile) -> Table {
    let names = table.all_rows().map(|row| row.group.name.clone()).collect();
    Table { columns: columns(table, profile), heading: table.of.name().to_uppercase(), names }
}

/// The same as Markdown.
pub fn markdown(table: &MeasureTable, profile: &Profile) -> String {
    Table { heading: table.of.name().to_owned(), ..laid_out(table, profile) }.markdown(false)
}

/// Figures of all rows for people, so with the digits that they deserve.
fn columns(table: &MeasureTable, profile: &Profile) -> Vec<Column> {
    let unit = table.of.measure.unit();
    let column = |heading: &str, expendable: u8, cell: &dyn Fn(&MeasureRow) -> String| Column {
        expendable,
        ..Column::figures(heading, table.all_rows(), cell)
    };
    let part = |figure: &Figure| format!("{:.1}", percent(figure.amount, table.whole));
    let rate = |figure: &Figure| with_interval(figure, unit, per_second(profile)).0;
    let amount = |figure: &Figure| with_interval(figure, unit, 1.0).0;
    let interval = |figure: &Figure| with_interval(figure, unit, 1.0).1;
    let are_exact = table.all_rows().all(|row| row.own.is_exact() && row.total.is_none_or(|total| total.is_exact()));
    let has_total = table.of.by.has_total();
    let (name, per_second) = headings(table.of.measure);
    let prefix = if has_total { "SELF " } else { "" };
    let mut columns = vec![column(&format!("{prefix}{name}"), 0, &|row| amount(&row.own))];
    if !are_exact {
        columns.push(column("95 % FROM–TO", 4, &|row| interval(&row.own)));
    }
    columns.push(column("%", 1, &|row| part(&row.own)));
    columns.push(column(&per_second, 5, &|row| rate(&row.own)));
    if has_total {
        let total = |shown: &dyn Fn(&Figure) -> String, row: &MeasureRow| row.total.as_ref().map_or("".into(), shown);
        columns.push(column(&format!("TOTAL {name}"), 2, &|row| total(&amount, row)));
        columns.push(column("95 % FROM–TO", 8, &|row| total(&interval, row)));
        columns.push(column("%", 3, &|row| total(&part, row)));
    }
    columns.push(column("SAMPLES", 6, &|row| row.own.samples.to_string()));
    columns
}

/// Headings of the amount, and of the amount per second.
fn headings(measure: Measure) -> (String, String) {
    match measure {
        Measure::Allocated => ("MB".to_owned(), "MB/s".to_owned()),
        measure => (measure.heading(), format!("{}/s", measure.heading())),
    }
}

/// The figure and its interval, for people, times a factor.
fn with_interval(figure: &Figure, unit: Unit, factor: f64) -> (String, String) {
    let [value, low, high] = [figure.amount, figure.low, figure.high].map(|amount| scaled(amount, unit) * factor);
    figures::with_interval(value, (low, high), None)
}

/// What makes an amount a rate; 0 of an empty time.
fn per_second(profile: &Profile) -> f64 {
    let time = seconds(profile.overview.duration_ns);
    if time > 0.0 { 1.0 / time } else { 0.0 }
}

/// Names of figures in files.
const fn figure_names(unit: Unit) -> [&'static str; 6] {
    match unit {
        Unit::MicroJoules => ["uj", "low_uj", "high_uj", "uj_per_s", "percent", "samples"],
        Unit::Bytes => ["bytes", "low_bytes", "high_bytes", "bytes_per_s", "percent", "samples"],
        Unit::Count => ["count", "low_count", "high_count", "count_per_s", "percent", "samples"],
    }
}

/// Values of [`figure_names`].
#[allow(clippy::cast_precision_loss, reason = "a rate")]
fn values(figure: &Figure, table: &MeasureTable, profile: &Profile) -> [Value; 6] {
    let time = seconds(profile.overview.duration_ns);
    let rate = if time > 0.0 { figure.amount as f64 / time } else { 0.0 };
    [
        json!(figure.amount),
        json!(figure.low),
        json!(figure.high),
        json!(rate),
        json!(percent(figure.amount, table.whole)),
        json!(figure.samples),
    ]
}

/// What a row has of each figure, by name: of itself, and in total if it has a total.
fn cells(row: &MeasureRow, table: &MeasureTable, profile: &Profile) -> Vec<(String, Value)> {
    let of = |which: &str, figure: &Figure| {
        let values = values(figure, table, profile).into_iter();
        let names = figure_names(table.of.measure.unit()).into_iter();
        names.zip(values).map(|(name, value)| (format!("{which}_{name}"), value)).collect::<Vec<_>>()
    };
    let total = row.total.as_ref().map_or(Vec::new(), |figure| of("total", figure));
    [of("self", &row.own), total].concat()
}

/// The table as a JSON object, in the shape of the tables of energy.
pub fn object(table: &MeasureTable, profile: &Profile) -> Value {
    let of_row = |row: &MeasureRow| {
        let details = table.of.by.details().iter().map(|name| (*name).to_owned());
        let details = details.zip(row.group.details.iter().cloned());
        let named = [("name".to_owned(), json!(row.group.name))];
        Map::from_iter(named.into_iter().chain(details).chain(cells(row, table, profile)))
    };
    let rest = table.rest.as_ref().map(|(count, row)| {
        let mut object = of_row(row);
        object.insert("rows".to_owned(), json!(count));
        object
    });
    json!({
        "by": table.of.name(),
        "measure": table.of.measure.name(),
        // A table of one measure is ranked by itself or in total.
        "sort": if table.sort == Sort::Own { Sort::Own } else { Sort::Total }.name(),
        "rows": table.rows.iter().map(of_row).collect::<Vec<_>>(),
        "others": rest,
    })
}

/// The table as comma-separated values with a heading.
pub fn csv(table: &MeasureTable, profile: &Profile) -> String {
    let details = table.of.by.details();
    let whiches: &[&str] = if table.of.by.has_total() { &["self", "total"] } else { &["self"] };
    let names = figure_names(table.of.measure.unit());
    let figures = whiches.iter().flat_map(|which| names.iter().map(move |figure| format!("{which}_{figure}")));
    let names = ["name"].iter().chain(details).map(|name| (*name).to_owned());
    let mut text = csv::line(names.chain(figures));
    for row in table.all_rows() {
        let of_detail = |at| row.group.details.get(at).map_or(String::new(), value);
        let cells = cells(row, table, profile).into_iter().map(|(_, cell)| value(&cell));
        let named = [csv::name(row.group.name.raw())].into_iter();
        text.push_str(&csv::line(named.chain((0..details.len()).map(of_detail)).chain(cells)));
    }
    text
}
