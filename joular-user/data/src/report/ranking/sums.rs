//! Sums facts by the slots of a table, all measures alike: what each slot has itself and in total, with the interval that
//! sampling leaves open ([`crate::sampling`]).

use super::slots::Slots;
use crate::{
    model::units::MicroJoules,
    report::{
        measure::Measure,
        profile::{Division, Fact, Profile},
    },
    sampling::{Group as SampledGroup, Interval, Sampled, Threads},
};

/// An amount of a measure, in its unit, and its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figure {
    pub amount: u64,
    pub low: u64,
    pub high: u64,
    /// Samples that divide it; of energy, those of CPU time.
    pub samples: u64,
}

impl Figure {
    pub const fn is_exact(&self) -> bool {
        self.low == self.high
    }

    pub const fn interval(&self) -> Interval {
        Interval { low: MicroJoules(self.low), high: MicroJoules(self.high) }
    }

    /// Adds what samples of another kind divide.
    pub(in crate::report) fn plus(&mut self, other: &Self) {
        let of = |figure: &Self| (MicroJoules(figure.amount), figure.interval());
        let interval = Interval::of_sum(of(self), of(other));
        self.amount = self.amount.saturating_add(other.amount);
        (self.low, self.high) = (interval.low.0, interval.high.0);
    }
}

/// What a row has of a measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Of paths that end in the row.
    pub own: Figure,
    /// Of paths that contain it. Each path counts once, however often it contains the row.
    pub total: Figure,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    amount: u64,
    sampled: Sampled,
}

impl Sum {
    fn add(&mut self, fact: &Fact) {
        self.plus(&Self { amount: fact.amount, sampled: fact.sampled });
    }

    fn plus(&mut self, other: &Self) {
        self.amount = self.amount.saturating_add(other.amount);
        self.sampled.plus(&other.sampled);
    }

    fn figure(&self, seen: &SampledGroup, threads: Option<&Threads>) -> Figure {
        let Self { amount, sampled } = *self;
        let exact = Interval::exact(MicroJoules(amount));
        let interval = threads.map_or(exact, |threads| threads.interval(seen, MicroJoules(amount), sampled.energy));
        Figure { amount, low: interval.low.0, high: interval.high.0, samples: sampled.samples }
    }
}

/// What each slot has of a measure, own and total, without intervals.
pub(in crate::report) fn amounts(profile: &Profile, measure: Measure, slots: &Slots<'_>) -> Vec<[u64; 2]> {
    let mut sums = vec![[0_u64; 2]; slots.count];
    for fact in profile.facts(measure) {
        for slot in slots.all(&fact) {
            sums[slot][1] = sums[slot][1].saturating_add(fact.amount);
        }
        if let Some(slot) = slots.own(&fact) {
            sums[slot][0] = sums[slot][0].saturating_add(fact.amount);
        }
    }
    sums
}

/// What each slot has of a measure. What threads have is exact, unless `is_partial`: paths were selected by their methods.
pub(in crate::report) fn cells(profile: &Profile, measure: Measure, slots: &Slots<'_>, is_partial: bool) -> Vec<Cell> {
    let mut divisions = profile.divisions(measure).into_iter().map(|division| divided(division, slots, is_partial));
    let mut cells = divisions.next().unwrap_or_default();
    for others in divisions {
        for (cell, other) in cells.iter_mut().zip(others) {
            cell.own.plus(&other.own);
            cell.total.plus(&other.total);
        }
    }
    cells
}

fn divided(division: Division<'_>, slots: &Slots<'_>, is_partial: bool) -> Vec<Cell> {
    let by = slots.groups.by;
    let by_pool = if division.by_process { by.is_of_processes() } else { by.is_of_threads() };
    let is_exact = by_pool && !is_partial;
    let wholes = if is_exact { &[] } else { &*division.wholes };
    let mut sums = vec![[Sum::default(); 2]; slots.count];
    let mut seen = vec![[SampledGroup::default(); 2]; slots.count];
    each_pool(division.facts, slots, |pool, slot, part| {
        let whole = wholes.get(pool).copied().unwrap_or_default();
        for which in [0, 1] {
            sums[slot][which].plus(&part[which]);
            seen[slot][which].see(&whole, &part[which].sampled);
        }
    });
    let threads = threads_of(wholes, slots, by_pool && !division.by_process);
    let cell = |slot: usize| {
        let threads = if is_exact { None } else { threads.get(slot).or(threads.first()) };
        let figure = |which: usize| sums[slot][which].figure(&seen[slot][which], threads);
        Cell { own: figure(0), total: figure(1) }
    };
    (0..slots.count).map(cell).collect()
}

/// Calls `take` with what each slot has of each pool, own and total.
fn each_pool(
    facts: impl Iterator<Item = (usize, Fact)>,
    slots: &Slots<'_>,
    mut take: impl FnMut(usize, usize, &[Sum; 2]),
) {
    let mut parts = vec![[Sum::default(); 2]; slots.count];
    let (mut is_touched, mut touched) = (vec![false; slots.count], Vec::new());
    let mut facts = facts.peekable();
    while let Some((pool, fact)) = facts.next() {
        for slot in slots.all(&fact) {
            if !std::mem::replace(&mut is_touched[slot], true) {
                touched.push(slot);
            }
            parts[slot][1].add(&fact);
        }
        if let Some(slot) = slots.own(&fact) {
            parts[slot][0].add(&fact);
        }
        if facts.peek().is_none_or(|(next, _)| *next != pool) {
            for slot in touched.drain(..) {
                is_touched[slot] = false;
                take(pool, slot, &std::mem::take(&mut parts[slot]));
            }
        }
    }
}

/// Pools that a slot could have something of: its own threads, for each slot, `if by_slot`; else all, once.
fn threads_of(wholes: &[Sampled], slots: &Slots<'_>, by_slot: bool) -> Vec<Threads> {
    let mut threads = vec![Threads::default(); if by_slot { slots.count } else { 1 }];
    for (thread, whole) in wholes.iter().enumerate() {
        let slot = if by_slot { slots.of_thread(thread) } else { Some(0) };
        if let Some(threads) = slot.and_then(|slot| threads.get_mut(slot)) {
            threads.add(whole);
        }
    }
    threads
}
