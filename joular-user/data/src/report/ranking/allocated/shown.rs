//! Shows tables of allocations: columns for people, and the figures in files.

use serde_json::{Map, Value, json};

use super::{AllocatedBy, AllocationRow, AllocationTable, Bytes};
use crate::{
    model::target_text::TargetText,
    report::{
        profile::{Amounts, Profile},
        ranking::{csv::value, rows::Sort, text::Column},
    },
    text::{
        csv,
        figures::{self, Places},
        percent, seconds,
    },
};

/// Bytes of a megabyte, as in MB/s.
const MB: f64 = 1e6;

/// The caption of a table.
pub const fn caption(by: AllocatedBy) -> &'static str {
    match by {
        AllocatedBy::Class => "by class",
        AllocatedBy::Method => "by the method that allocated: self, and total with what it called",
    }
}

/// Names of all rows, the rest's included.
pub fn names(table: &AllocationTable) -> impl Iterator<Item = &TargetText> {
    rows(table).map(|row| &row.group.name)
}

fn rows(table: &AllocationTable) -> impl Iterator<Item = &AllocationRow> {
    table.rows.iter().chain(table.rest.iter().map(|(_, row)| row))
}

/// Figures of all rows for people, so with the digits that they deserve.
pub fn columns(table: &AllocationTable, profile: &Profile) -> Vec<Column> {
    let column = |heading: &str, expendable: u8, cell: &dyn Fn(&AllocationRow) -> String| Column {
        heading: heading.to_owned(),
        cells: rows(table).map(cell).collect(),
        expendable,
    };
    let part = |bytes: &Bytes| format!("{:.1}", percent(bytes.bytes, table.whole));
    let rate = |bytes: &Bytes| {
        let [value, low, high] = [bytes.bytes, bytes.low, bytes.high].map(|bytes| per_second(bytes, profile) / MB);
        figures::with_interval(value, (low, high), None).0
    };
    let prefix = if table.by == AllocatedBy::Method { "SELF " } else { "" };
    let mut columns = vec![
        column(&format!("{prefix}MB"), 0, &|row| with_interval(&row.own).0),
        column("95 % FROM–TO", 4, &|row| with_interval(&row.own).1),
        column("%", 1, &|row| part(&row.own)),
        column("MB/s", 5, &|row| rate(&row.own)),
    ];
    if table.by == AllocatedBy::Method {
        let total = |shown: &dyn Fn(&Bytes) -> String, row: &AllocationRow| row.total.as_ref().map_or("".into(), shown);
        columns.push(column("TOTAL MB", 2, &|row| total(&|bytes| with_interval(bytes).0, row)));
        columns.push(column("95 % FROM–TO", 8, &|row| total(&|bytes| with_interval(bytes).1, row)));
        columns.push(column("%", 3, &|row| total(&part, row)));
    }
    columns.push(column("SAMPLES", 6, &|row| row.own.samples.to_string()));
    columns
}

/// What a row of another table allocated, with three digits.
pub fn megabytes(amounts: &Amounts) -> String {
    let value = real(amounts.allocated_bytes) / MB;
    if amounts.allocated_bytes == 0 { String::new() } else { Places::derived(value, 0.0).write(value) }
}

/// The figure and its interval.
fn with_interval(bytes: &Bytes) -> (String, String) {
    let [value, low, high] = [bytes.bytes, bytes.low, bytes.high].map(|bytes| real(bytes) / MB);
    figures::with_interval(value, (low, high), None)
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
const fn real(bytes: u64) -> f64 {
    bytes as f64
}

fn per_second(bytes: u64, profile: &Profile) -> f64 {
    let time = seconds(profile.overview.duration_ns);
    if time > 0.0 { real(bytes) / time } else { 0.0 }
}

/// What the selection allocated, as a line; `None` if nothing was seen.
pub fn line(profile: &Profile) -> Option<String> {
    let allocated = &profile.allocated;
    let bytes = allocated.bytes();
    let by_cpu_time = match allocated.bytes_by_cpu_time() {
        0 => String::new(),
        bytes => format!("; of {:.3} MB samples of CPU time tell where, and nothing tells a class", real(bytes) / MB),
    };
    (!allocated.is_empty()).then(|| {
        format!(
            "allocated {:.3} MB, {:.3} MB/s, by {} samples{by_cpu_time}",
            real(bytes) / MB,
            per_second(bytes, profile) / MB,
            allocated.samples()
        )
    })
}

/// What the selection allocated, with names as in [`object`]; nothing if nothing was seen.
pub fn totals(profile: &Profile) -> Option<Value> {
    let allocated = &profile.allocated;
    (!allocated.is_empty()).then(|| {
        json!({
            "bytes": allocated.bytes(),
            "samples": allocated.samples(),
            "by_cpu_time_bytes": allocated.bytes_by_cpu_time(),
        })
    })
}

const FIGURES: [&str; 6] = ["bytes", "low_bytes", "high_bytes", "bytes_per_s", "percent", "samples"];

/// Values of [`FIGURES`].
fn values(bytes: &Bytes, table: &AllocationTable, profile: &Profile) -> [Value; FIGURES.len()] {
    [
        json!(bytes.bytes),
        json!(bytes.low),
        json!(bytes.high),
        json!(per_second(bytes.bytes, profile)),
        json!(percent(bytes.bytes, table.whole)),
        json!(bytes.samples),
    ]
}

/// What a row has of each figure, by name: of itself, and in total if it has a total.
fn cells(row: &AllocationRow, table: &AllocationTable, profile: &Profile) -> Vec<(String, Value)> {
    let of = |which: &str, bytes: &Bytes| {
        let values = values(bytes, table, profile).into_iter();
        FIGURES.iter().zip(values).map(|(figure, value)| (format!("{which}_{figure}"), value)).collect::<Vec<_>>()
    };
    let total = row.total.as_ref().map_or(Vec::new(), |bytes| of("total", bytes));
    [of("self", &row.own), total].concat()
}

/// The table as a JSON object, in the shape of the tables of energy.
pub fn object(table: &AllocationTable, profile: &Profile) -> Value {
    let of_row = |row: &AllocationRow| {
        let details = table.by.details().iter().map(|name| (*name).to_owned()).zip(row.group.details.iter().cloned());
        let named = [("name".to_owned(), json!(row.group.name))];
        Map::from_iter(named.into_iter().chain(details).chain(cells(row, table, profile)))
    };
    let rest = table.rest.as_ref().map(|(count, row)| {
        let mut object = of_row(row);
        object.insert("rows".to_owned(), json!(count));
        object
    });
    json!({
        "by": table.by.name(),
        // Tables of bytes know of no other order.
        "sort": if table.sort == Sort::Own { Sort::Own } else { Sort::Total }.name(),
        "rows": table.rows.iter().map(of_row).collect::<Vec<_>>(),
        "others": rest,
    })
}

/// The table as comma-separated values with a heading.
pub fn csv(table: &AllocationTable, profile: &Profile) -> String {
    let details = table.by.details();
    let whiches: &[&str] = if table.by == AllocatedBy::Method { &["self", "total"] } else { &["self"] };
    let figures = whiches.iter().flat_map(|which| FIGURES.iter().map(move |figure| format!("{which}_{figure}")));
    let names = ["name"].iter().chain(details).map(|name| (*name).to_owned());
    let mut text = csv::line(names.chain(figures));
    for row in rows(table) {
        let of_detail = |at| row.group.details.get(at).map_or(String::new(), value);
        let cells = cells(row, table, profile).into_iter().map(|(_, cell)| value(&cell));
        let named = [csv::name(row.group.name.raw())].into_iter();
        text.push_str(&csv::line(named.chain((0..details.len()).map(of_detail)).chain(cells)));
    }
    text
}
