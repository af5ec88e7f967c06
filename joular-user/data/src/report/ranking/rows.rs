//! Makes a table's rows: sums by group, ranked, with the smaller ones together in one row.

use std::{borrow::Cow, cmp::Reverse};

use super::{
    by::By,
    counts::RowCounts,
    groups::{Group, Groups},
    moved::{self, RowMoved, Way},
    slots::Slots,
};
use crate::{
    report::{
        footprint::Footprint,
        profile::{Amounts, Profile, ThreadIndex, ThreadPath, counted::add},
    },
    sampling::{Group as SampledGroup, Interval, Sampled, Threads},
};

/// Which figure ranks rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Energy of paths that end in the row.
    #[default]
    Own,
    /// Energy of paths with the row anywhere on them.
    Total,
    /// Bytes that such paths allocated.
    Allocated,
    /// Bytes that such paths moved.
    Moved(Way),
}

impl Sort {
    /// All there are.
    pub fn all() -> impl Iterator<Item = Self> {
        [Self::Own, Self::Total, Self::Allocated].into_iter().chain(Way::ALL.map(Self::Moved))
    }

    /// The name on the command line, and in output for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Total => "total",
            Self::Allocated => "allocated",
            Self::Moved(way) => way.name(),
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
pub struct Row {
    pub group: Group,
    pub own: Figures,
    /// Each path counts once, however often it contains the row.
    pub total: Figures,
    /// Empty, unless something was counted.
    pub counts: RowCounts,
    /// Nothing, unless bytes were counted.
    pub moved: RowMoved,
    /// The least number of calls; `None` if that was not asked for, or cannot be told.
    pub activations: Option<u64>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Ranking {
    pub by: By,
    pub sort: Sort,
    /// The sum of all rows: `own` of rows and rest sums to it exactly.
    pub whole: Amounts,
    pub rows: Vec<Row>,
    /// How many rows were cut, and their sum as one row.
    pub rest: Option<(usize, Row)>,
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
        groups: Groups,
        cut: Cut,
        activations: Option<&[u64]>,
        footprints: Option<&[Footprint]>,
    ) -> Self {
        let count = groups.len();
        let identity: Vec<usize> = (0..count).collect();
        let entries = without_threads(profile, groups.by);
        let mut sums = vec![Sums::default(); count];
        let by_group = Slots::of(profile, &groups, &identity, count);
        visit(&entries, &by_group, |_, group, part| sums[group].plus(part));
        allocations(profile, &by_group, |group, own, bytes| sums[group].add_allocated(own, bytes));
        let (shown, hidden) = ranked(&groups, &sums, &moved::sums(profile, &by_group), cut);
        // Shown groups by rank, behind them one for all others.
        let rest = shown.len();
        let mut slots = vec![rest; count];
        shown.iter().enumerate().for_each(|(rank, group)| slots[*group] = rank);
        let slots = Slots::of(profile, &groups, &slots, rest + 1);
        let mut figures = figures(profile, &entries, &groups, &slots, cut.is_partial);
        allocations(profile, &slots, |slot, is_own, bytes| {
            let figures = if is_own { &mut figures[slot].0 } else { &mut figures[slot].1 };
            figures.amounts.allocated_bytes = figures.amounts.allocated_bytes.saturating_add(bytes);
        });
        if let Some(footprints) = footprints {
            add_footprints(profile, &slots, footprints, &mut figures);
        }
        let (counts, moved) = (counts(profile, &slots), moved::sums(profile, &slots));
        let mut whole = Amounts::default();
        profile.entries.iter().for_each(|entry| whole.plus(&entry.amounts()));
        whole.allocated_bytes = profile.allocated.bytes();
        let row = |group: Group, rank: usize, activations| {
            let (own, total) = figures.get(rank).copied().unwrap_or_default();
            let counts = counts.get(rank).cloned().unwrap_or_default();
            Row { group, own, total, counts, moved: moved.get(rank).copied().unwrap_or_default(), activations }
        };
        let rows = shown.iter().enumerate().filter_map(|(rank, group)| {
            let counted = activations.and_then(|counts| counts.get(*group).copied());
            let described = groups.describe(&profile.catalog, *group)?;
            let counted = counted.filter(|count| *count > 0 && !described.is_marker);
            Some(row(described, rank, counted))
        });
        let rows = rows.collect();
        let rest = (hidden > 0).then(|| (hidden, row(Group::others(hidden), rest, None)));
        Self { by: groups.by, sort: cut.sort, whole, rows, rest }
    }
}

/// Groups in order of rank, as many as wanted, and how many are left.
fn ranked(groups: &Groups, sums: &[Sums], moved: &[RowMoved], cut: Cut) -> (Vec<usize>, usize) {
    let moved = |group: usize| moved.get(group).copied().unwrap_or_default();
    let has_any = |group: &usize| sums[*group].total != Amounts::default() || moved(*group) != RowMoved::default();
    let mut order: Vec<usize> = (0..sums.len()).filter(has_any).collect();
    let all = order.len();
    order.sort_by_key(|group| {
        let (own, total) = (sums[*group].own, sums[*group].total);
        let bytes = match cut.sort {
            Sort::Own | Sort::Total => 0,
            Sort::Allocated => total.allocated_bytes,
            Sort::Moved(way) => way.of(&moved(*group).total),
        };
        let (first, second) = if cut.sort == Sort::Own { (own, total) } else { (total, own) };
        let key =
            |amounts: Amounts| Reverse((amounts.energy, amounts.cpu_ns, amounts.samples, amounts.allocated_bytes));
        (Reverse(bytes), key(first), key(second), groups.name(*group), *group)
    });
    if cut.top > 0 {
        order.truncate(cut.top);
    }
    let hidden = all - order.len();
    (order, hidden)
}

/// What a slot has, of one thread or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    own: Amounts,
    own_sampled: Sampled,
    total: Amounts,
    total_sampled: Sampled,
}

impl Sums {
    fn add_own(&mut self, entry: &ThreadPath) {
        self.own.plus(&entry.amounts());
        self.own_sampled.plus(&entry.sampled());
    }

    fn add_total(&mut self, entry: &ThreadPath) {
        self.total.plus(&entry.amounts());
        self.total_sampled.plus(&entry.sampled());
    }

    fn add_allocated(&mut self, is_own: bool, bytes: u64) {
        let amounts = if is_own { &mut self.own } else { &mut self.total };
        amounts.allocated_bytes = amounts.allocated_bytes.saturating_add(bytes);
    }

    fn plus(&mut self, other: &Self) {
        self.own.plus(&other.own);
        self.total.plus(&other.total);
        self.own_sampled.energy = self.own_sampled.energy.saturating_add(other.own_sampled.energy);
        self.total_sampled.energy = self.total_sampled.energy.saturating_add(other.total_sampled.energy);
    }
}

/// Entries for sums that do not depend on threads: one for each path, and one for energy that no
/// sample divided ([`Sampled`]). They are much fewer. If rows are about threads, all are needed.
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

/// Calls `take` with the slots that allocated, whether as the slot's own, and the bytes.
fn allocations(profile: &Profile, slots: &Slots<'_>, mut take: impl FnMut(usize, bool, u64)) {
    for entry in &profile.allocated.entries {
        slots.all_of(entry.thread, entry.path).for_each(|slot| take(slot, false, entry.bytes));
        if let Some(slot) = slots.own_of(entry.thread, entry.path) {
            take(slot, true, entry.bytes);
        }
    }
}

/// Calls `take` with what each slot has of each thread.
fn visit(entries: &[ThreadPath], slots: &Slots<'_>, mut take: impl FnMut(usize, usize, &Sums)) {
    let mut parts = vec![Sums::default(); slots.count];
    let mut touched: Vec<usize> = Vec::new();
    // Which thread counted for a slot last.
    let mut by_thread = vec![usize::MAX; slots.count];
    for of_thread in entries.chunk_by(|a, b| a.thread == b.thread) {
        let thread = of_thread.first().map_or(0, |entry| entry.thread.index());
        for entry in of_thread {
            for slot in slots.all(entry) {
                if by_thread[slot] != thread {
                    by_thread[slot] = thread;
                    parts[slot] = Sums::default();
                    touched.push(slot);
                }
                parts[slot].add_total(entry);
            }
            if let Some(slot) = slots.own(entry) {
                parts[slot].add_own(entry);
            }
        }
        touched.drain(..).for_each(|slot| take(thread, slot, &parts[slot]));
    }
}

/// Own and total of each slot, with their intervals.
fn figures(
    profile: &Profile,
    without_threads: &[ThreadPath],
    groups: &Groups,
    slots: &Slots<'_>,
    is_partial: bool,
) -> Vec<(Figures, Figures)> {
    let mut sums = vec![Sums::default(); slots.count];
    visit(without_threads, slots, |_, slot, part| sums[slot].plus(part));
    if groups.by.is_of_threads() && !is_partial {
        let exact = |amounts: Amounts| Figures {
            amounts,
            interval: Interval::exact(amounts.energy),
            footprint: Footprint::default(),
        };
        return sums.iter().map(|sums| (exact(sums.own), exact(sums.total))).collect();
    }
    let threads = threads_of(profile, groups, slots.slots, slots.count);
    let mut seen = vec![(SampledGroup::default(), SampledGroup::default()); slots.count];
    visit(&profile.entries, slots, |thread, slot, part| {
        let whole = sampled_thread(profile, thread);
        let (own, total) = &mut seen[slot];
        own.see(&whole, &part.own_sampled);
        total.see(&whole, &part.total_sampled);
    });
    let figures = |sums: &Sums, (own, total): &(SampledGroup, SampledGroup), threads: &Threads| {
        let interval = |group, amounts: Amounts, sampled: Sampled| Figures {
            amounts,
            interval: threads.interval(group, amounts.energy, sampled.energy),
            footprint: Footprint::default(),
        };
        (interval(own, sums.own, sums.own_sampled), interval(total, sums.total, sums.total_sampled))
    };
    sums.iter().zip(&seen).zip(&threads).map(|((sums, seen), threads)| figures(sums, seen, threads)).collect()
}

/// Adds each entry's emissions and cost where its energy is.
fn add_footprints(profile: &Profile, slots: &Slots<'_>, footprints: &[Footprint], figures: &mut [(Figures, Figures)]) {
    for (entry, footprint) in profile.entries.iter().zip(footprints) {
        for slot in slots.all(entry) {
            figures[slot].1.footprint.plus(footprint);
        }
        if let Some(slot) = slots.own(entry) {
            figures[slot].0.footprint.plus(footprint);
        }
    }
}

/// What each slot counted.
fn counts(profile: &Profile, slots: &Slots<'_>) -> Vec<RowCounts> {
    let counted = &profile.counted;
    let mut sums = vec![RowCounts::zero(counted.counters.len()); slots.count];
    for entry in &profile.entries {
        let Some(counts) = counted.of(entry) else { continue };
        for slot in slots.all(entry) {
            add(&mut sums[slot].total, counts);
        }
        if let Some(slot) = slots.own(entry) {
            add(&mut sums[slot].own, counts);
        }
    }
    sums
}

/// Threads that a slot's energy could be in: its own if rows are about threads, else all.
fn threads_of(profile: &Profile, groups: &Groups, slots: &[usize], count: usize) -> Vec<Threads> {
    let mut all = Threads::default();
    let mut by_slot = vec![Threads::default(); count];
    for thread in 0..profile.threads.len() {
        let sampled = sampled_thread(profile, thread);
        all.add(&sampled);
        if let Some(slot) = groups.of_thread(thread).and_then(|group| slots.get(group).copied()) {
            by_slot[slot].add(&sampled);
        }
    }
    if groups.by.is_of_threads() { by_slot } else { vec![all; count] }
}

fn sampled_thread(profile: &Profile, thread: usize) -> Sampled {
    profile.sampled.get(thread).copied().unwrap_or_default()
}
