//! Makes the tables and the diagram of what was moved through sockets and files, if anything was.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{clock::Clock, strings::Strings};
use crate::report::{
    measure::{Measure, Way},
    profile::Profile,
    ranking::{By, Cell, Figure, RankedRow, Ranking, Sort, groups::Groups, rows::Cut, selected::moved_samples},
};

/// Methods and threads with a row of their own: more than anyone looks through.
const ROWS: usize = 1_000;

/// Lists of bytes have an item for each of `ways`.
#[derive(Debug, Serialize)]
pub(super) struct Moved {
    ways: Vec<&'static str>,
    bytes: Vec<u64>,
    samples: u64,
    methods: Vec<Row>,
    threads: Vec<Row>,
    /// By way, then bucket.
    over_time: Vec<Vec<u64>>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: usize,
    own: Vec<u64>,
    /// `None` for threads, and for several methods: a path may have more than one of them.
    total: Option<Vec<u64>>,
}

/// Bytes by way and bucket.
#[derive(Debug, Default)]
pub(super) struct MovedOverTime(BTreeMap<(Way, usize), u64>);

impl MovedOverTime {
    pub(super) fn take(&mut self, bucket: usize, way: Way, bytes: u64) {
        let sum = self.0.entry((way, bucket)).or_default();
        *sum = sum.saturating_add(bytes);
    }

    fn series(&self, way: Way, buckets: usize) -> Vec<u64> {
        let mut series = vec![0_u64; buckets];
        for ((part, bucket), bytes) in &self.0 {
            if Measure::Moved(way).includes(Measure::Moved(*part)) {
                series[*bucket] = series[*bucket].saturating_add(*bytes);
            }
        }
        series
    }
}

impl Moved {
    pub(super) fn of(
        profile: &Profile,
        over_time: &MovedOverTime,
        clock: Clock,
        strings: &mut Strings,
    ) -> Option<Self> {
        let measured = &profile.measured;
        let ways: Vec<Way> = Way::APART.into_iter().filter(|way| measured.has(Measure::Moved(*way))).collect();
        let whole = |way: &Way| measured.amount(Measure::Moved(*way));
        let most = ways.iter().copied().max_by_key(whole)?;
        let mut rows = |by: By| {
            let cut = Cut { top: ROWS, sort: Sort::By(Measure::Moved(most)), is_partial: false };
            let table = Ranking::of(profile, &Groups::of(by, profile), cut, None, None);
            let of_row = |row: &RankedRow, which: fn(Cell) -> Figure| {
                ways.iter().map(|way| which(table.cell(row, Measure::Moved(*way))).amount).collect::<Vec<_>>()
            };
            let mut row = |row: &RankedRow, has_total: bool| Row {
                name: strings.place(row.group.name.raw()),
                own: of_row(row, |cell| cell.own),
                total: has_total.then(|| of_row(row, |cell| cell.total)),
            };
            let mut rows: Vec<Row> = table.rows.iter().map(|shown| row(shown, by.has_total())).collect();
            rows.extend(table.rest.as_ref().map(|(_, rest)| row(rest, false)));
            let is_empty = |row: &Row| row.own.iter().chain(row.total.iter().flatten()).all(|bytes| *bytes == 0);
            rows.retain(|row| !is_empty(row));
            rows
        };
        let (methods, threads) = (rows(By::Method), rows(By::Thread));
        Some(Self {
            bytes: ways.iter().map(whole).collect(),
            samples: moved_samples(profile),
            methods,
            threads,
            over_time: ways.iter().map(|way| over_time.series(*way, clock.buckets)).collect(),
            ways: ways.iter().map(|way| way.name()).collect(),
        })
    }
}
