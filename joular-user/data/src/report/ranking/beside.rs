//! Shows bytes and counts beside energy: columns of a table's rows, and the figures in files.

use joular_ebpf::abi::IoKind;

use super::{
    rows::{RankedRow, Ranking},
    sums::{Cell, Figure},
};
use crate::{
    dataset::tables::io::bytes_of,
    model::{counter::Counter, units::MicroJoules},
    report::measure::{Measure, Unit, Way},
    text::{figures::Places, table::Column},
};

/// Bytes of a megabyte, microjoules of a joule.
const MILLION: f64 = 1e6;
/// Counts below it are shown as they are: there are no three digits to round to.
const SMALL: u64 = 1_000;

/// An amount for people, with the digits that it deserves; nothing for no bytes.
pub(super) fn shown(figure: Figure, unit: Unit) -> String {
    match unit {
        Unit::Bytes if figure.amount == 0 => String::new(),
        Unit::Count if figure.is_exact() || figure.amount < SMALL => figure.amount.to_string(),
        _ => {
            let value = scaled(figure.amount, unit);
            Places::derived(value, scaled(figure.interval().half().0, unit)).write(value)
        }
    }
}

/// An amount in the unit that people see: MB, J.
#[allow(clippy::cast_precision_loss, reason = "for people")]
pub(super) const fn scaled(amount: u64, unit: Unit) -> f64 {
    match unit {
        Unit::MicroJoules | Unit::Bytes => amount as f64 / MILLION,
        Unit::Count => amount as f64,
    }
}

/// Columns for people: what a row allocated, moved and counted, as far as the selection has any of it.
pub fn columns(table: &Ranking) -> Vec<Column> {
    let (has_total, mut columns) = (table.by.has_total(), Vec::new());
    let (own_prefix, total_prefix) = if has_total { ("SELF ", "TOTAL ") } else { ("", "") };
    let column = |measure: Measure, prefix: &str, expendable: u8, which: fn(Cell) -> Figure| {
        let cell = |row: &RankedRow| shown(which(table.cell(row, measure)), measure.unit());
        Column { expendable, ..Column::figures(&format!("{prefix}{}", measure.heading()), table.all_rows(), cell) }
    };
    for measure in table.beside.iter().copied() {
        match measure {
            Measure::Allocated => {
                columns.push(column(measure, own_prefix, 5, |cell| cell.own));
                if has_total {
                    columns.push(column(measure, total_prefix, 7, |cell| cell.total));
                }
            }
            Measure::Moved(way) if Way::APART.contains(&way) => {
                let expendable = if matches!(way, Way::DeviceRead | Way::DeviceWritten) { 5 } else { 4 };
                columns.push(column(measure, total_prefix, expendable, |cell| cell.total));
            }
            Measure::Counted(_) => {
                columns.push(column(measure, own_prefix, 4, |cell| cell.own));
                columns.push(per_joule_column(table, measure));
            }
            Measure::Moved(_) | Measure::Energy => {}
        }
    }
    columns.extend(instructions_per_cycle(table));
    columns
}

fn per_joule_column(table: &Ranking, measure: Measure) -> Column {
    let cell = |row: &RankedRow| per_joule(table.cell(row, measure).own.amount, row.own.amounts.energy);
    Column { expendable: 7, ..Column::figures("PER J", table.all_rows(), cell) }
}

/// How many for each joule; nothing where there is no energy.
#[allow(clippy::cast_precision_loss, reason = "for people")]
pub(super) fn per_joule(count: u64, energy: MicroJoules) -> String {
    let value = count as f64 / energy.joules();
    if energy.0 == 0 { String::new() } else { Places::derived(value, 0.0).write(value) }
}

/// `None` unless both were counted.
fn instructions_per_cycle(table: &Ranking) -> Option<Column> {
    let [instructions, cycles] = [Counter::Instructions, Counter::Cycles].map(Measure::Counted);
    let cell = |row: &RankedRow| {
        let [instructions, cycles] = [instructions, cycles].map(|measure| table.cell(row, measure).own.amount);
        ratio(instructions, cycles)
    };
    let are_both = [instructions, cycles].iter().all(|measure| table.beside.contains(measure));
    are_both.then(|| Column { expendable: 3, ..Column::figures("IPC", table.all_rows(), cell) })
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn ratio(instructions: u64, cycles: u64) -> String {
    if cycles == 0 { String::new() } else { format!("{:.2}", instructions as f64 / cycles as f64) }
}

/// A figure of a row in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFile {
    measure: Measure,
    is_total: bool,
    end: End,
}

/// The amount, or an end of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Amount,
    Low,
    High,
}

/// Figures that files have of counters, of what was allocated, and of what was moved, by each kind of bytes.
pub fn counted(table: &Ranking) -> Vec<InFile> {
    in_file(table.beside.iter().copied().filter(|measure| matches!(measure, Measure::Counted(_))), &[End::Amount])
}

pub fn allocated(table: &Ranking) -> Vec<InFile> {
    in_file(table.beside.iter().copied().filter(|measure| *measure == Measure::Allocated), &[End::Amount])
}

pub fn moved(table: &Ranking) -> Vec<InFile> {
    in_file(moved_measures(table), &[End::Amount])
}

/// The intervals of all these.
pub fn intervals(table: &Ranking) -> Vec<InFile> {
    let others = table.beside.iter().copied().filter(|measure| !matches!(measure, Measure::Moved(_)));
    in_file(others.chain(moved_measures(table)), &[End::Low, End::High])
}

fn moved_measures(table: &Ranking) -> impl Iterator<Item = Measure> + '_ {
    let by_kind = IoKind::ALL.into_iter().map(|kind| Measure::Moved(Way::of_kind(kind)));
    by_kind.filter(|measure| table.beside.contains(measure))
}

fn in_file(measures: impl Iterator<Item = Measure>, ends: &[End]) -> Vec<InFile> {
    let figures = |measure| {
        [false, true]
            .into_iter()
            .flat_map(move |is_total| ends.iter().map(move |end| InFile { measure, is_total, end: *end }))
    };
    measures.flat_map(figures).collect()
}

impl InFile {
    /// The name of the column or key: `self_allocated_bytes`, `total_sent_low_bytes`, `self_page_faults`.
    pub fn name(&self) -> String {
        let which = if self.is_total { "total" } else { "self" };
        let end = match self.end {
            End::Amount => "",
            End::Low => "_low",
            End::High => "_high",
        };
        let (stem, suffix) = names(self.measure);
        format!("{which}_{stem}{end}{suffix}")
    }

    pub fn of(&self, table: &Ranking, row: &RankedRow) -> u64 {
        let cell = table.cell(row, self.measure);
        let figure = if self.is_total { cell.total } else { cell.own };
        match self.end {
            End::Amount => figure.amount,
            End::Low => figure.low,
            End::High => figure.high,
        }
    }
}

/// What stands before and behind the end of an interval. Bytes that were moved have the names of table `io`.
fn names(measure: Measure) -> (String, &'static str) {
    match measure {
        Measure::Energy => ("energy".to_owned(), "_uj"),
        Measure::Allocated => ("allocated".to_owned(), "_bytes"),
        Measure::Moved(way) => {
            let name = way.kinds().first().map(|kind| bytes_of(*kind).name().into_owned()).unwrap_or_default();
            (name.strip_suffix("_bytes").map(ToOwned::to_owned).unwrap_or(name), "_bytes")
        }
        Measure::Counted(counter) => (counter.name().replace('-', "_").to_lowercase(), ""),
    }
}
