//! Makes tables of one measure that is not energy: who allocated most, who sent most.
//!
//! They are like the tables of energy ([`super::rows`]). A class that was allocated is on no path, so it has no total.

mod shown;

use std::cmp::Reverse;

pub use self::shown::{caption, csv, laid_out, markdown, object};
use super::{
    By,
    groups::{Group, Groups},
    rows::{Cut, Sort, in_order},
    slots::Slots,
    sums::{self, Figure},
};
use crate::report::{measure::Measure, profile::Profile};

/// What a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOf {
    pub by: By,
    pub measure: Measure,
}

impl TableOf {
    /// By what methods allocated: such tables had a name before there were others of bytes.
    pub const ALLOCATING_METHOD: &'static str = "allocating-method";

    pub const fn of_energy(by: By) -> Self {
        Self { by, measure: Measure::Energy }
    }

    /// The table of such rows, of a measure unless rows or name say of which.
    pub fn named(name: &str, measure: Measure) -> Option<Self> {
        if name == Self::ALLOCATING_METHOD {
            return Some(Self { by: By::Method, measure: Measure::Allocated });
        }
        let by = By::named(name)?;
        Some(Self { by, measure: if by == By::ClassAllocated { Measure::Allocated } else { measure } })
    }

    /// The name in output for machines.
    pub const fn name(self) -> &'static str {
        match (self.by, self.measure) {
            (By::Method, Measure::Allocated) => Self::ALLOCATING_METHOD,
            (by, _) => by.name(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct MeasureRow {
    pub group: Group,
    pub own: Figure,
    /// Each path counts once, however often it contains the row. `None` where it is the same as `own`.
    pub total: Option<Figure>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct MeasureTable {
    pub of: TableOf,
    pub sort: Sort,
    /// The sum of all rows: `own` of rows and rest sums to it exactly.
    pub whole: u64,
    pub rows: Vec<MeasureRow>,
    /// How many rows were cut, and their sum as one row.
    pub rest: Option<(usize, MeasureRow)>,
}

impl MeasureTable {
    pub fn of(profile: &Profile, of: TableOf, cut: Cut) -> Self {
        let TableOf { by, measure } = of;
        let groups = Groups::of(by, profile);
        let amounts = sums::amounts(profile, measure, &Slots::each(profile, &groups));
        let key = |group: usize| {
            let [own, total] = amounts[group];
            Reverse(if cut.sort == Sort::Own { (own, total) } else { (total, own) })
        };
        let (shown, hidden) = in_order(&groups, cut.top, |group| amounts[group][1] > 0, key);
        let cells = sums::cells(profile, measure, &Slots::shown(profile, &groups, &shown), cut.is_partial);
        let row = |group: Group, rank: usize| {
            let cell = cells.get(rank).copied().unwrap_or_default();
            MeasureRow { group, own: cell.own, total: by.has_total().then_some(cell.total) }
        };
        let described = |(rank, group): (usize, &usize)| Some(row(groups.describe(&profile.catalog, *group)?, rank));
        let rows = shown.iter().enumerate().filter_map(described).collect();
        let rest = (hidden > 0).then(|| (hidden, row(Group::others(hidden), shown.len())));
        let whole = profile.facts(measure).fold(0_u64, |sum, fact| sum.saturating_add(fact.amount));
        Self { of, sort: cut.sort, whole, rows, rest }
    }

    /// Shown rows and what was cut.
    pub fn all_rows(&self) -> impl Iterator<Item = &MeasureRow> {
        self.rows.iter().chain(self.rest.iter().map(|(_, row)| row))
    }
}
