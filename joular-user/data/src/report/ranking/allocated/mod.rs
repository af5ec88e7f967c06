//! Makes the tables of who allocated most, by class and by the method that allocated.
//!
//! They are like the tables of energy ([`super::rows`]), of bytes: `self` of a method is what it allocated itself, `total`
//! with what it called. A class has no total, because it is on no path. Intervals are those of [`crate::sampling`].

mod shown;

use std::{cmp::Reverse, collections::BTreeSet};

use serde::Serialize;
use serde_json::json;

pub use self::shown::{caption, columns, csv, line, megabytes, names, object, totals};
use super::{
    By,
    groups::{Group, Groups},
    rows::{Cut, Sort},
};
use crate::{
    model::{frame::Marker, target_text::TargetText, units::MicroJoules},
    report::profile::{Allocated, AllocatedPath, Profile, ThreadIndex},
    sampling::{Group as SampledGroup, Sampled, Threads},
};

/// One row per …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AllocatedBy {
    Class,
    Method,
}

impl AllocatedBy {
    pub const ALL: [Self; 2] = [Self::Class, Self::Method];

    /// The name on the command line, and in output for machines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Class => "class-allocated",
            Self::Method => "allocating-method",
        }
    }

    /// Names of the details that a row has beside its name.
    const fn details(self) -> &'static [&'static str] {
        match self {
            Self::Class => &["class"],
            Self::Method => By::Method.details(),
        }
    }
}

/// What a row allocated, and the 95 % interval that sampling leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    pub bytes: u64,
    pub low: u64,
    pub high: u64,
    pub samples: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AllocationRow {
    pub group: Group,
    pub own: Bytes,
    /// Each path counts once, however often it contains the row. `None` for classes.
    pub total: Option<Bytes>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct AllocationTable {
    pub by: AllocatedBy,
    pub sort: Sort,
    /// The sum of all rows: `own` of rows and rest sums to it exactly.
    pub whole: u64,
    pub rows: Vec<AllocationRow>,
    /// How many rows were cut, and their sum as one row.
    pub rest: Option<(usize, AllocationRow)>,
}

impl AllocationTable {
    pub fn of(profile: &Profile, by: AllocatedBy, cut: Cut) -> Self {
        let places = Places::of(profile, by);
        let identity: Vec<usize> = (0..places.len()).collect();
        let (shown, hidden) = ranked(&places, &sums(profile, &places, &identity, identity.len()), cut);
        // Shown groups by rank, behind them one for all others.
        let mut slots = vec![shown.len(); places.len()];
        shown.iter().enumerate().for_each(|(rank, group)| slots[*group] = rank);
        let figures = figures(profile, &places, &slots, shown.len() + 1);
        let row = |group: Group, rank: usize| {
            let (own, total) = figures.get(rank).copied().unwrap_or_default();
            AllocationRow { group, own, total: (by == AllocatedBy::Method).then_some(total) }
        };
        let described = |(rank, group): (usize, &usize)| Some(row(places.describe(profile, *group)?, rank));
        let rows = shown.iter().enumerate().filter_map(described).collect();
        let rest = (hidden > 0).then(|| (hidden, row(Group::others(hidden), shown.len())));
        Self { by, sort: cut.sort, whole: profile.allocated.bytes(), rows, rest }
    }
}

/// Finds the rows that an entry belongs to.
enum Places {
    /// Classes, behind them what no sample tells and what has no name any more.
    Classes(Vec<Group>),
    Methods(Groups),
}

impl Places {
    fn of(profile: &Profile, by: AllocatedBy) -> Self {
        if by == AllocatedBy::Method {
            return Self::Methods(Groups::of(By::Method, &profile.catalog));
        }
        let marker = |name: &str| Group { name: name.into(), details: vec![json!(null)], is_marker: true };
        let class = |name: &TargetText| Group { name: name.clone(), details: vec![json!(name)], is_marker: false };
        let markers = [marker(Marker::NoSample.name()), marker("[unknown class]")];
        Self::Classes(profile.allocated.classes.iter().map(class).chain(markers).collect())
    }

    const fn len(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.len(),
            Self::Methods(methods) => methods.len(),
        }
    }

    fn name(&self, group: usize) -> Option<&TargetText> {
        match self {
            Self::Classes(classes) => classes.get(group).map(|group| &group.name),
            Self::Methods(methods) => methods.name(group),
        }
    }

    fn describe(&self, profile: &Profile, group: usize) -> Option<Group> {
        match self {
            Self::Classes(classes) => classes.get(group).cloned(),
            Self::Methods(methods) => methods.describe(&profile.catalog, group),
        }
    }

    /// Groups of an entry from the root on; the last one has its bytes as its own.
    fn of_entry(&self, profile: &Profile, entry: &AllocatedPath) -> Vec<usize> {
        match self {
            Self::Classes(classes) => {
                let without_class = if entry.samples == 0 { classes.len() - 2 } else { classes.len() - 1 };
                vec![entry.class.unwrap_or(without_class)]
            }
            Self::Methods(methods) => {
                let of_frames = methods.of_frames().unwrap_or_default();
                let path = profile.catalog.paths.path(entry.path).iter();
                path.filter_map(|frame| of_frames.get(frame.index()).copied()).collect()
            }
        }
    }
}

/// What a slot has, of one thread or of all.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    bytes: u64,
    sampled: Sampled,
}

impl Sum {
    fn plus(&mut self, other: &Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.sampled.plus(&other.sampled);
    }
}

/// Own and total.
type Sums = (Sum, Sum);

/// What each slot has, of all threads. `slots` has the slot of each group, of which there are `count`.
fn sums(profile: &Profile, places: &Places, slots: &[usize], count: usize) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); count];
    add(profile, places, slots, &profile.allocated.entries, &mut sums);
    sums
}

fn add(profile: &Profile, places: &Places, slots: &[usize], entries: &[AllocatedPath], sums: &mut [Sums]) {
    for entry in entries {
        let sum = Sum { bytes: entry.bytes, sampled: entry.sampled() };
        let on_path: Vec<usize> = places.of_entry(profile, entry).iter().map(|group| slots[*group]).collect();
        on_path.iter().collect::<BTreeSet<_>>().into_iter().for_each(|slot| sums[*slot].1.plus(&sum));
        if let Some(slot) = on_path.last() {
            sums[*slot].0.plus(&sum);
        }
    }
}

/// Groups in order of rank, as many as wanted, and how many are left.
fn ranked(places: &Places, sums: &[Sums], cut: Cut) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..sums.len()).filter(|group| sums[*group].1.bytes > 0).collect();
    let all = order.len();
    order.sort_by_key(|group| {
        let (own, total) = (sums[*group].0.bytes, sums[*group].1.bytes);
        let key = if cut.sort == Sort::Own { (own, total) } else { (total, own) };
        (Reverse(key), places.name(*group), *group)
    });
    if cut.top > 0 {
        order.truncate(cut.top);
    }
    let hidden = all - order.len();
    (order, hidden)
}

/// Own and total of each slot, with their intervals.
fn figures(profile: &Profile, places: &Places, slots: &[usize], count: usize) -> Vec<(Bytes, Bytes)> {
    let Allocated { entries, threads: of_threads, .. } = &profile.allocated;
    let mut threads = Threads::default();
    of_threads.values().for_each(|whole| threads.add(whole));
    let mut seen = vec![(SampledGroup::default(), SampledGroup::default()); count];
    let mut all = vec![Sums::default(); count];
    for of_thread in entries.chunk_by(|a, b| a.thread == b.thread) {
        let thread = of_thread.first().map_or(ThreadIndex(0), |entry| entry.thread);
        let whole = of_threads.get(&thread).copied().unwrap_or_default();
        let mut parts = vec![Sums::default(); count];
        add(profile, places, slots, of_thread, &mut parts);
        for ((part, sums), seen) in parts.iter().zip(&mut all).zip(&mut seen) {
            if part.1.bytes > 0 {
                sums.0.plus(&part.0);
                sums.1.plus(&part.1);
                seen.0.see(&whole, &part.0.sampled);
                seen.1.see(&whole, &part.1.sampled);
            }
        }
    }
    // As `AllocatedPath::sampled` says, bytes take the place of microjoules.
    let bytes = |sum: &Sum, seen: &SampledGroup| {
        let interval = threads.interval(seen, MicroJoules(sum.bytes), sum.sampled.energy);
        Bytes { bytes: sum.bytes, low: interval.low.0, high: interval.high.0, samples: sum.sampled.samples }
    };
    all.iter().zip(&seen).map(|(sums, seen)| (bytes(&sums.0, &seen.0), bytes(&sums.1, &seen.1))).collect()
}
