//! Makes the tables of what was allocated, if anything was.

use serde::Serialize;

use super::strings::Strings;
use crate::{
    attribution::allocated::SampledBy,
    report::{
        measure::Measure,
        profile::Profile,
        ranking::{By, Figure, MeasureTable, Sort, TableOf, by_measure::MeasureRow, rows::Cut},
    },
};

/// Classes and methods with a row of their own: more than anyone looks through.
const ROWS: usize = 1_000;

#[derive(Debug, Serialize)]
pub(super) struct Allocations {
    bytes: u64,
    samples: u64,
    by_cpu_time_bytes: u64,
    in_step_bytes: u64,
    classes: Vec<Row>,
    methods: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: usize,
    own: Bytes,
    /// `None` for classes, and for several methods: a path may have more than one of them.
    total: Option<Bytes>,
}

/// With the ends of the 95 % interval.
#[derive(Debug, Serialize)]
struct Bytes {
    bytes: u64,
    low: u64,
    high: u64,
    samples: u64,
}

impl From<Figure> for Bytes {
    fn from(Figure { amount, low, high, samples }: Figure) -> Self {
        Self { bytes: amount, low, high, samples }
    }
}

impl Allocations {
    pub(super) fn of(profile: &Profile, strings: &mut Strings) -> Option<Self> {
        let (measured, of) = (&profile.measured, Measure::Allocated);
        let mut rows = |by| {
            let of = TableOf { by, measure: Measure::Allocated };
            let table = MeasureTable::of(profile, of, Cut { top: ROWS, sort: Sort::Own, is_partial: false });
            let mut row = |row: &MeasureRow, total: Option<Figure>| Row {
                name: strings.place(row.group.name.raw()),
                own: row.own.into(),
                total: total.map(Into::into),
            };
            let mut rows: Vec<Row> = table.rows.iter().map(|shown| row(shown, shown.total)).collect();
            rows.extend(table.rest.as_ref().map(|(_, rest)| row(rest, None)));
            rows
        };
        measured.has(of).then(|| Self {
            bytes: measured.amount(of),
            samples: measured.samples(of),
            by_cpu_time_bytes: measured.allocated_by(SampledBy::CpuTime),
            in_step_bytes: measured.allocated_by(SampledBy::AllocationInStep),
            classes: rows(By::ClassAllocated),
            methods: rows(By::Method),
        })
    }
}
