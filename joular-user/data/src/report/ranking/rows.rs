//! Makes a table's rows: sums by group, ranked, with the smaller ones together in one row.

use std::{borrow::Cow, cmp::Reverse};

use super::{
    by::By,
    groups::{Group, Groups},
    slots::Slots,
    sums::{self, Cell},
};
use crate::{
    report::{
        footprint::Footprint,
        measure::Measure,
        profile::{Amounts, Fact, Profile, ThreadIndex, ThreadPath},
    },
    sampling::Interval,
};

/// Which figure ranks rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// What paths have that end in the row.
    #[default]
    Own,
    /// What paths have with the row anywhere on them.
    Total,
    /// What such paths have of another measure.
    By(Measure),
}

impl Sort {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        let beside = Measure::all().filter(|measure| *measure != Measure::Energy);
        [Self::Own, Self::Total].into_iter().chain(beside.map(Self::By))
    }

    /// The name on the command line, and in output for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Total => "total",
            Self::By(measure) => measure.name(),
        }
    }
}

/// What a row has, and how far its energy may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    pub amounts: Amounts,
    pub interval: Interval,
    /// Nothing, unless it was asked for.
    pub footprint: Footprint,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RankedRow {
    pub group: Group,
    pub own: Figures,
    /// Each path counts once, however often it contains the row.
    pub total: Figures,
    /// Of each of [`Ranking::beside`].
    pub beside: Vec<Cell>,
    /// The least number of calls; `None` if that was not asked for, or is not known.
    pub activations: Option<u64>,
}

/// A table of energy, with what there is beside it.
#[derive(Clone, Debug)]
pub struct Ranking {
    pub by: By,
    pub sort: Sort,
    /// The sum of all rows: `own` of rows and rest sums to it exactly.
    pub whole: Amounts,
    /// Bytes and counts that the selection has.
    pub beside: Vec<Measure>,
    pub rows: Vec<RankedRow>,
    /// How many rows were cut, and their sum as one row.
    pub rest: Option<(usize, RankedRow)>,
}

/// How many rows, and in which order.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// 0: all.
    pub top: usize,
    pub sort: Sort,
    /// Whether paths were selected by their methods, so that no thread's figures are exact.
    pub is_partial: bool,
}

impl Ranking {
    /// `activations` of each group and `footprints` of each entry, if they are wanted.
    pub fn of(
        profile: &Profile,
        groups: &Groups,
        cut: Cut,
        activations: Option<&[u64]>,
        footprints: Option<&[Footprint]>,
    ) -> Self {
        let beside: Vec<Measure> = profile.measures_beside_energy().collect();
        let (shown, hidden) = ranked(groups, &GroupSums::of(profile, groups, &beside), cut);
        let slots = Slots::shown(profile, groups, &shown);
        let mut figures = figures(profile, &slots, cut.is_partial);
        if let Some(footprints) = footprints {
            add_footprints(profile, &slots, footprints, &mut figures);
        }
        let of_beside: Vec<Vec<Cell>> =
            beside.iter().map(|measure| sums::cells(profile, *measure, &slots, cut.is_partial)).collect();
        let row = |group: Group, rank: usize, activations| {
            let [own, total] = figures.get(rank).copied().unwrap_or_default();
            let beside = of_beside.iter().map(|cells| cells.get(rank).copied().unwrap_or_default()).collect();
            RankedRow { group, own, total, beside, activations }
        };
        let rows = shown.iter().enumerate().filter_map(|(rank, group)| {
            let counted = activations.and_then(|counts| counts.get(*group).copied());
            let described = groups.describe(&profile.catalog, *group)?;
            let counted = counted.filter(|count| *count > 0 && !described.is_marker);
            Some(row(described, rank, counted))
        });
        let rows = rows.collect();
        let rest = (hidden > 0).then(|| (hidden, row(Group::others(hidden), shown.len(), None)));
        let mut whole = Amounts::default();
        profile.entries.iter().for_each(|entry| whole.plus(&entry.amounts()));
        Self { by: groups.by, sort: cut.sort, whole, beside, rows, rest }
    }

    /// What a row has of a measure beside energy; nothing if the selection has nothing of it.
    pub fn cell(&self, row: &RankedRow, measure: Measure) -> Cell {
        let at = self.beside.iter().position(|one| *one == measure);
        at.and_then(|at| row.beside.get(at)).copied().unwrap_or_default()
    }

    /// Shown rows and what was cut.
    pub fn all_rows(&self) -> impl Iterator<Item = &RankedRow> {
        self.rows.iter().chain(self.rest.iter().map(|(_, row)| row))
    }
}

/// What ranks groups: own and total of each.
struct GroupSums {
    energy: Vec<[Amounts; 2]>,
    beside: Vec<(Measure, Vec<[u64; 2]>)>,
}

impl GroupSums {
    fn of(profile: &Profile, groups: &Groups, beside: &[Measure]) -> Self {
        let slots = Slots::each(profile, groups);
        let beside = beside.iter().map(|measure| (*measure, sums::amounts(profile, *measure, &slots))).collect();
        Self { energy: amounts(profile, &slots), beside }
    }

    fn of_measure(&self, measure: Measure, group: usize) -> [u64; 2] {
        let of_measure = self.beside.iter().find(|(one, _)| *one == measure);
        of_measure.and_then(|(_, sums)| sums.get(group)).copied().unwrap_or_default()
    }

    fn has_any(&self, group: usize) -> bool {
        self.energy[group][1] != Amounts::default() || self.beside.iter().any(|(_, sums)| sums[group][1] > 0)
    }
}

/// Groups in order of rank, as many as wanted, and how many are left.
fn ranked(groups: &Groups, sums: &GroupSums, cut: Cut) -> (Vec<usize>, usize) {
    in_order(
        groups,
        cut.top,
        |group| sums.has_any(group),
        |group| {
            let [own, total] = [0, 1].map(|which| {
                let Amounts { energy, cpu_ns, samples, .. } = sums.energy[group][which];
                Reverse((energy, cpu_ns, samples, sums.of_measure(Measure::Allocated, group)[which]))
            });
            match cut.sort {
                Sort::Own => (Reverse(0), own, total),
                Sort::Total => (Reverse(0), total, own),
                Sort::By(measure) => (Reverse(sums.of_measure(measure, group)[1]), total, own),
            }
        },
    )
}

/// Groups that have anything, in the order of a key, then of their names, as many as wanted; and how many are left.
pub(super) fn in_order<K: Ord>(
    groups: &Groups,
    top: usize,
    has_any: impl Fn(usize) -> bool,
    key: impl Fn(usize) -> K,
) -> (Vec<usize>, usize) {
    let mut order: Vec<(K, usize)> =
        (0..groups.len()).filter(|group| has_any(*group)).map(|group| (key(group), group)).collect();
    let all = order.len();
    order.sort_by(|(a, one), (b, other)| {
        a.cmp(b).then_with(|| groups.name(*one).cmp(&groups.name(*other))).then_with(|| one.cmp(other))
    });
    if top > 0 {
        order.truncate(top);
    }
    let hidden = all - order.len();
    (order.into_iter().map(|(_, group)| group).collect(), hidden)
}

/// Entries for sums that do not depend on threads: one for each path, and one for energy that no
/// sample divided ([`crate::sampling::Sampled`]). They are much fewer. If rows are about threads, all are needed.
fn without_threads(profile: &Profile, by: By) -> Cow<'_, [ThreadPath]> {
    if by.is_of_threads() {
        return Cow::Borrowed(&profile.entries);
    }
    let mut sums: Vec<[Option<ThreadPath>; 2]> = vec![[None; 2]; profile.catalog.paths.len()];
    for entry in &profile.entries {
        match &mut sums[entry.path.index()][usize::from(entry.is_sampled())] {
            Some(sum) => sum.plus(entry),
            none => *none = Some(ThreadPath { thread: ThreadIndex(0), ..*entry }),
        }
    }
    Cow::Owned(sums.into_iter().flatten().flatten().collect())
}

/// Own and total energy of each slot, and what goes with it.
pub(in crate::report) fn amounts(profile: &Profile, slots: &Slots<'_>) -> Vec<[Amounts; 2]> {
    let mut sums = vec![[Amounts::default(); 2]; slots.count];
    for entry in without_threads(profile, slots.groups.by).iter() {
        let (fact, amounts) = (Fact::of_energy(entry), entry.amounts());
        slots.all(&fact).for_each(|slot| sums[slot][1].plus(&amounts));
        if let Some(slot) = slots.own(&fact) {
            sums[slot][0].plus(&amounts);
        }
    }
    sums
}

/// Own and total of each slot, with their intervals.
fn figures(profile: &Profile, slots: &Slots<'_>, is_partial: bool) -> Vec<[Figures; 2]> {
    let cells = sums::cells(profile, Measure::Energy, slots, is_partial);
    let figures = |([own, total], cell): ([Amounts; 2], &Cell)| {
        [(own, &cell.own), (total, &cell.total)].map(|(amounts, figure)| Figures {
            amounts,
            interval: figure.interval(),
            footprint: Footprint::default(),
        })
    };
    amounts(profile, slots).into_iter().zip(&cells).map(figures).collect()
}

/// Adds each entry's emissions and cost where its energy is.
fn add_footprints(profile: &Profile, slots: &Slots<'_>, footprints: &[Footprint], figures: &mut [[Figures; 2]]) {
    for (entry, footprint) in profile.entries.iter().zip(footprints) {
        let fact = Fact::of_energy(entry);
        for slot in slots.all(&fact) {
            figures[slot][1].footprint.plus(footprint);
        }
        if let Some(slot) = slots.own(&fact) {
            figures[slot][0].footprint.plus(footprint);
        }
    }
}
