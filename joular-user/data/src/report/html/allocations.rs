//! Makes the tables of what was allocated, if anything was.

use serde::Serialize;

use super::strings::Strings;
use crate::report::{
    profile::Profile,
    ranking::{
        AllocatedBy, AllocationTable, Sort,
        allocated::{AllocationRow, Bytes},
        rows::Cut,
    },
};

/// Classes and methods with a row of their own: more than anyone looks through.
const ROWS: usize = 1_000;

#[derive(Debug, Serialize)]
pub(super) struct Allocations {
    bytes: u64,
    samples: u64,
    by_cpu_time_bytes: u64,
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

impl Allocations {
    pub(super) fn of(profile: &Profile, strings: &mut Strings) -> Option<Self> {
        let allocated = &profile.allocated;
        let mut rows = |by| {
            let table = AllocationTable::of(profile, by, Cut { top: ROWS, sort: Sort::Own, is_partial: false });
            let mut row =
                |row: &AllocationRow, total| Row { name: strings.place(row.group.name.raw()), own: row.own, total };
            let mut rows: Vec<Row> = table.rows.iter().map(|shown| row(shown, shown.total)).collect();
            rows.extend(table.rest.as_ref().map(|(_, rest)| row(rest, None)));
            rows
        };
        (!allocated.is_empty()).then(|| Self {
            bytes: allocated.bytes(),
            samples: allocated.samples(),
            by_cpu_time_bytes: allocated.bytes_by_cpu_time(),
            classes: rows(AllocatedBy::Class),
            methods: rows(AllocatedBy::Method),
        })
    }
}
