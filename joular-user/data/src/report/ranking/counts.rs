//! Shows what was counted (`--counters`): columns of a table's rows, and the figures in files.

use serde_json::{Map, Value, json};

use super::{
    rows::{Figures, Ranking, Row},
    text::{Column, rows},
};
use crate::{
    model::{counter::Counter, units::MicroJoules},
    report::profile::{Counted, Profile},
    text::figures::Places,
};

/// What a row counted, of paths that end in it and of paths that contain it, in the order of [`Counted::counters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub own: Vec<u64>,
    pub total: Vec<u64>,
}

impl RowCounts {
    pub(super) fn zero(counters: usize) -> Self {
        Self { own: vec![0; counters], total: vec![0; counters] }
    }
}

/// The name of a column or key: `self_page_faults`.
pub fn name(which: &str, counter: Counter) -> String {
    format!("{which}_{}", counter.name().replace('-', "_").to_lowercase())
}

/// Each counter's name for files, and the row's counts.
pub fn cells<'a>(counted: &'a Counted, row: &'a Row) -> impl Iterator<Item = (String, u64)> + 'a {
    counted.counters.iter().enumerate().flat_map(|(at, counter)| {
        let of = |counts: &[u64]| counts.get(at).copied().unwrap_or_default();
        [(name("self", *counter), of(&row.counts.own)), (name("total", *counter), of(&row.counts.total))]
    })
}

/// The columns' names in files.
pub fn names(counted: &Counted) -> impl Iterator<Item = String> + '_ {
    counted.counters.iter().flat_map(|counter| ["self", "total"].map(|which| name(which, *counter)))
}

/// Columns for people: counts of paths that end in the row, and those per joule.
pub fn columns(table: &Ranking, counted: &Counted) -> Vec<Column> {
    let prefix = if table.by.has_total() { "SELF " } else { "" };
    let own = |row: &Row, at: usize| row.counts.own.get(at).copied().unwrap_or_default();
    let column = |heading: String, expendable: u8, cell: &dyn Fn(&Row) -> String| Column {
        heading,
        cells: rows(table).map(cell).collect(),
        expendable,
    };
    let mut columns = Vec::new();
    for (at, counter) in counted.counters.iter().enumerate() {
        let heading = format!("{prefix}{}", counter.name().to_uppercase());
        columns.push(column(heading, 4, &|row| shown(own(row, at), &row.own)));
        columns.push(column("PER J".to_owned(), 7, &|row| per_joule(own(row, at), row.own.amounts.energy)));
    }
    let place = |counter| counted.counters.iter().position(|one| *one == counter);
    if let (Some(instructions), Some(cycles)) = (place(Counter::Instructions), place(Counter::Cycles)) {
        columns.push(column("IPC".to_owned(), 3, &|row| ratio(own(row, instructions), own(row, cycles))));
    }
    columns
}

/// What the selection counted, a line for each counter.
pub fn lines(profile: &Profile) -> Vec<String> {
    let sums = profile.counted.sums(&profile.entries);
    let energy = profile.energy();
    let line = |(counter, sum): (&Counter, &u64)| {
        let per_joule = Some(per_joule(*sum, energy)).filter(|text| !text.is_empty());
        let per_joule = per_joule.map_or(String::new(), |text| format!(", {text} per J"));
        format!("counted {sum} {}{per_joule}", counter.name())
    };
    profile.counted.counters.iter().zip(&sums).map(line).collect()
}

/// What the selection counted, by the counters' names.
pub fn json(profile: &Profile) -> Map<String, Value> {
    let sums = profile.counted.sums(&profile.entries);
    profile.counted.counters.iter().zip(sums).map(|(counter, sum)| (counter.name().to_owned(), json!(sum))).collect()
}

/// As exact as the row's time is known.
#[allow(clippy::cast_precision_loss, reason = "for people")]
fn shown(count: u64, figures: &Figures) -> String {
    let (Figures { amounts, interval, .. }, value) = (figures, count as f64);
    // Below a thousand there are no three digits to round to.
    if interval.is_exact() || amounts.energy.0 == 0 || count < 1_000 {
        return count.to_string();
    }
    Places::derived(value, value * interval.half().joules() / amounts.energy.joules()).write(value)
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn per_joule(count: u64, energy: MicroJoules) -> String {
    let value = count as f64 / energy.joules();
    if energy.0 == 0 { String::new() } else { Places::derived(value, 0.0).write(value) }
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn ratio(instructions: u64, cycles: u64) -> String {
    if cycles == 0 { String::new() } else { format!("{:.2}", instructions as f64 / cycles as f64) }
}
